import { assertEquals } from "@std/assert";
import { QUIET_MS, Running } from "./running.ts";

Deno.test("Running: says what runs once nothing was shown for a while, and then again", () => {
  const running = new Running();
  assertEquals(running.line(9 * QUIET_MS, 0), undefined);
  const endFirst = running.begin("kit", 1_000);
  const endSecond = running.begin("kit", 2_000);
  const [quiet, later] = [3_000 + QUIET_MS, 3_000 + 2 * QUIET_MS];
  assertEquals(running.line(quiet - 1, 3_000), undefined);
  assertEquals(running.line(quiet, 3_000), "running: kit for 22 s, kit for 21 s");
  assertEquals(running.line(later - 1, 3_000), undefined);
  endFirst();
  assertEquals(running.line(later, later - 1), undefined);
  assertEquals(running.line(later, 3_000), "running: kit for 41 s");
  endSecond();
  assertEquals(running.line(9 * QUIET_MS, 0), undefined);
});
