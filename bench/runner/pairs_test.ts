import { assertEquals } from "@std/assert";
import { inverse, ratioOf } from "./pairs.ts";
import type { Repetition, Row } from "./results.ts";

type Mark = [figure: number, at_ms: number, ping_ns?: [number, number]];

function row(peer: string, ...marks: Mark[]): Row {
  const repetitions = marks.map(([figure, at_ms, ping_ns]): Repetition => ({
    count: 1,
    elapsed_ns: 1,
    figure,
    at_ms,
    ...ping_ns === undefined ? {} : { ping_ns },
  }));
  return { scenario: "s", place: "deno", driver: "deno", peer, repetitions };
}

function ratio(own: Row, other: Row): (number | boolean | undefined)[] {
  const { median, min, max, pairs, steady } = ratioOf("round-trip", own, other) ?? {};
  return [median, min, max, pairs, steady];
}

Deno.test("ratioOf pairs each repetition with the nearest in time, and takes the median", () => {
  const own = row("ours", [100, 1], [1000, 11], [300, 21]);
  const other = row("other", [50, 2], [500, 12], [100, 22]);
  assertEquals(ratio(own, other), [2, 2, 3, 3, true]);
  // Not of the medians, which are of two states: 300 / 100.
  const gone = row("other", [50, 2], [500, 12]);
  assertEquals(ratio(row("ours", [100, 1], [1000, 11], [900, 13]), gone), [2, 1.8, 2, 3, true]);
});

Deno.test("ratioOf prefers a repetition of the same state to one that is nearer", () => {
  const own = row("ours", [1000, 10, [500, 520]]);
  const other = row("other", [100, 11, [100, 110]], [400, 50, [480, 500]]);
  assertEquals(ratio(own, other), [2.5, 2.5, 2.5, 1, true]);
});

Deno.test("ratioOf leaves out repetitions in which the machine changed, if others remain", () => {
  const other = row("other", [100, 2, [100, 100]], [100, 12, [100, 100]]);
  const own = row("ours", [900, 1, [100, 500]], [200, 11, [100, 120]]);
  assertEquals(ratio(own, other), [2, 2, 2, 1, true]);
  assertEquals(ratio(row("ours", [900, 1, [100, 500]]), other), [9, 9, 9, 1, false]);
});

Deno.test("what is much slower than the ping-pong is paired whatever that was", () => {
  const other = row("other", [50_000, 2, [100, 500]], [90_000, 99, [100, 100]]);
  assertEquals(ratio(row("ours", [100, 1, [100, 100]]), other), [0.002, 0.002, 0.002, 1, true]);
});

Deno.test("the floor of words is the ping-pong around each repetition itself", () => {
  const floor = row("floor-atomics-spin", [9999, 1, [9, 9]]);
  const own = row("ours", [300, 1, [90, 110]], [1500, 2, [500, 500]], [999, 3, [100, 500]]);
  assertEquals(ratio(own, floor), [3, 3, 3, 2, true]);
  // Without a ping-pong, the floor's own repetitions count.
  assertEquals(ratio(row("ours", [19998, 1]), floor), [2, 2, 2, 1, true]);
});

Deno.test("ratioOf has nothing where one peer has nothing, or nothing to divide by", () => {
  assertEquals(ratioOf("round-trip", row("ours", [1, 1]), row("other")), undefined);
  assertEquals(ratioOf("round-trip", row("ours"), row("other", [1, 1])), undefined);
  assertEquals(ratioOf("processor", row("ours", [1, 1]), row("other", [0, 1])), undefined);
  // Turned round, it would be without end.
  assertEquals(ratioOf("round-trip", row("ours", [0, 1]), row("other", [1, 1])), undefined);
});

Deno.test("inverse turns the spread round", () => {
  const { median, min, max } = inverse({ median: 2, min: 1, max: 4, pairs: 3, steady: true });
  assertEquals([median, min, max], [0.5, 0.25, 1]);
});
