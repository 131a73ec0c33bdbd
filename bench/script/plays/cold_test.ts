import { assert, assertEquals } from "@std/assert";
import type { Result, Scenario } from "../../contract.ts";
import { Control, controlMemory } from "../control.ts";
import type { BlockingEnd, Order, Role } from "../peer.ts";
import { playCold, playColdStream } from "./cold.ts";

const SCENARIO: Scenario = {
  name: "cold",
  payload: "json-118",
  size: 118,
  format: "json",
  ends: "workers",
  wait: "own",
  pin: "free",
  fresh: true,
  parts: ["1", "2-10", "11-30"],
  duration_ms: 1,
  warmup_ms: 1000,
};
const SLOW_MS = 30;

/** An end whose messages come back, the first of them late; and how many it has received. */
class LateEnd implements BlockingEnd {
  readonly kind = "blocking";
  received = 0;

  send(): void {}

  receive(): number {
    const until = performance.now() + (this.received === 0 ? SLOW_MS : 0);
    while (performance.now() < until);
    return this.received++ & 255;
  }

  close(): void {}
}

function orderOf(role: Role, scenario: Scenario): Order {
  const control = controlMemory();
  new Control(control).addReady();
  new Control(control).addReady();
  return { peer: "p", role, scenario, gear: undefined, isNew: true, control };
}

/** The counts of the parts, of which the first is slow; together they take all of the time. */
function countsOf({ elapsed_ns = 0, parts = {} }: Partial<Result>): number[] {
  const all = Object.values(parts);
  assert(all[0]!.elapsed_ns >= SLOW_MS * 1e6);
  const sum = all.reduce((sum, part) => sum + part.elapsed_ns, 0);
  assert(Math.abs(sum - elapsed_ns) <= all.length, `${sum} ns of ${elapsed_ns}`);
  return all.map(({ count }) => count);
}

Deno.test("playCold times the first messages apart from those after them", async () => {
  const end = new LateEnd();
  const order = orderOf("a", SCENARIO);
  const report = await playCold(end, order);
  assertEquals([report.count, countsOf(report)], [30, [1, 9, 20]]);
  assertEquals(Object.values(report.parts!).map(({ latency }) => latency !== undefined), [
    false,
    true,
    true,
  ]);
  // The other end learns from a last message that it was enough.
  assertEquals([end.received, new Control(order.control).total], [31, 31]);
});

Deno.test("playColdStream times at the receiver, from when the sender began", async () => {
  const end = new LateEnd();
  const order = orderOf("b", { ...SCENARIO, name: "burst", burst: 30, parts: ["1-10", "11-30"] });
  const control = new Control(order.control);
  control.start = performance.timeOrigin + performance.now();
  control.total = 30;
  const report = await playColdStream(end, order);
  assertEquals([report.count, countsOf(report)], [30, [10, 20]]);
  assertEquals([end.received, control.stopped], [30, true]);
});
