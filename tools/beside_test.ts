import { assertEquals } from "@std/assert";
import { runBeside } from "./beside.ts";

Deno.test("runBeside: so many at a time, the next when one ends, results in order", async () => {
  const told: string[] = [];
  const ends: (() => void)[] = [];
  const jobs = ["a", "b", "c", "d"].map((name, index) => async () => {
    told.push(name);
    const { promise, resolve } = Promise.withResolvers<void>();
    ends[index] = resolve;
    await promise;
    return name.toUpperCase();
  });
  const turn = () => new Promise((resolve) => setTimeout(resolve));
  const all = runBeside(jobs, 2);
  await turn();
  assertEquals(told.join(""), "ab");
  ends[1]!();
  await turn();
  assertEquals(told.join(""), "abc");
  ends[0]!();
  await turn();
  assertEquals(told.join(""), "abcd");
  ends[3]!();
  ends[2]!();
  assertEquals(await all, ["A", "B", "C", "D"]);
});

Deno.test("runBeside: fewer jobs than may run, or none", async () => {
  assertEquals(await runBeside([() => Promise.resolve(1)], 5), [1]);
  assertEquals(await runBeside([], 5), []);
});
