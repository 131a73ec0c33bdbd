import { assertEquals, assertThrows } from "@std/assert";
import { layout } from "../memory/layout.ts";
import { Port } from "../mod.ts";
import { GEOMETRY, Place, test } from "./host_fixture.ts";
import { SegmentFile } from "./mod.ts";

const A = { endpoint: 0 };

const IS_DENO = globalThis.Deno !== undefined;
/**
 * The most asynchronous sleeps of a thread: eight in Deno; in Node, as many as one call of Linux
 * takes.
 */
const SLEEPS_MAX = IS_DENO ? 8 : 127;

test("a sleep too many polls, and so does one of Deno that must not hold it", async () => {
  using place = new Place();
  using file = SegmentFile.create(place.path, GEOMETRY, A);
  const words = file.segment.words(0, 128);
  const [ready, ms] = [words[layout.SEGMENT_READY_WORD]!, 20];
  const sleep = (keep?: boolean) =>
    file.mechanism.sleepAsync(words, layout.SEGMENT_READY_WORD, ready, ms, keep);
  const unheld = sleep(false);
  assertEquals(unheld === undefined, IS_DENO);
  const hold = setTimeout(() => {}, 10_000);
  if (!IS_DENO) assertEquals(await unheld, "timed-out");
  clearTimeout(hold);
  const sleeps = Array.from({ length: SLEEPS_MAX + 1 }, () => sleep());
  const found = sleeps.map((each) => each !== undefined);
  assertEquals(found, [...Array(SLEEPS_MAX).fill(true), false]);
  assertEquals(new Set(await Promise.all(sleeps.slice(0, -1))), new Set(["timed-out"]));
  assertEquals(await sleep(), "timed-out");
});

test("the mechanism of a file refuses to sleep on other memory", () => {
  using place = new Place();
  using file = SegmentFile.create(place.path, GEOMETRY, A);
  const { mechanism } = file;
  assertThrows(() => mechanism.sleep(new Int32Array(4), 0, 0, 1), TypeError, "in that file");
  assertThrows(() => Port.create({ mechanism }), TypeError, "in that file");
});
