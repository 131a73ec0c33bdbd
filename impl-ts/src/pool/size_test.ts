/** How many workers a pool has, and how many tasks each of them gets. */

import { assertEquals } from "@std/assert";
import {
  GAUGE_SIZE,
  GaugeReader,
  hasBegun,
  numberAfter,
  recentMean,
  WorkGauge,
} from "./work_gauge.ts";
import { printedApart } from "../testing/fixture.ts";
import { eventually, poolOf } from "./fixture.ts";
import { aheadOf, wantsMore } from "./size.ts";

const IDLE = { waiting: 0, oldest: 0, service: 0, workers: 1, starting: 0 };

Deno.test("wantsMore asks for a worker when the last that waits would wait too long", () => {
  assertEquals(wantsMore(IDLE, 20), false);
  // 10 tasks of 4 ms at two workers: 20 ms.
  const busy = { ...IDLE, waiting: 10, service: 4, workers: 2 };
  assertEquals(wantsMore(busy, 20), false);
  assertEquals(wantsMore({ ...busy, waiting: 11 }, 20), true);
  assertEquals(wantsMore({ ...busy, waiting: 11, workers: 3 }, 20), false);
  // Long tasks, none of which has ended.
  assertEquals(wantsMore({ ...IDLE, waiting: 1, oldest: 20 }, 20), false);
  assertEquals(wantsMore({ ...IDLE, waiting: 1, oldest: 21 }, 20), true);
  // Only one worker starts at a time; the first one starts at once.
  assertEquals(wantsMore({ ...busy, waiting: 99, starting: 1 }, 20), false);
  assertEquals(wantsMore({ ...IDLE, waiting: 1, workers: 0 }, 20), true);
});

Deno.test("aheadOf gives a worker 4 ms of work, and none after a task that takes longer", () => {
  const services = [0, 0.001, 0.01, 0.1, 1, 4, 4.1, 1000];
  assertEquals(services.map(aheadOf), [1, 255, 255, 40, 4, 1, 0, 0]);
});

Deno.test("hasBegun knows what was before, also where numbers begin again", () => {
  const begun = (last: number, ...numbers: number[]) => numbers.map((n) => hasBegun(n, last));
  assertEquals(begun(0, 0, 1), [true, false]);
  assertEquals(begun(5, 4, 5, 6), [true, true, false]);
  const most = 0x7fffffff;
  assertEquals([most - 1, most].map(numberAfter), [most, 0]);
  assertEquals(begun(most, most, 0, 1), [true, false, false]);
  assertEquals(begun(1, most, 0, 1, 2), [true, true, true, false]);
});

Deno.test("a gauge that is sealed lets no task begin, until it is opened for the next", () => {
  const memory = new SharedArrayBuffer(GAUGE_SIZE);
  const [worker, reader] = [new WorkGauge(memory), new GaugeReader(memory)];
  assertEquals([worker.begin(1), worker.begin(2), reader.seal()], [true, true, 2]);
  assertEquals([worker.begin(3), worker.begin(4)], [false, false]);
  reader.open(7);
  assertEquals(worker.begin(8), false); // the old worker cannot begin tasks
  const next = new WorkGauge(memory);
  assertEquals([next.begin(8), reader.seal()], [true, 8]);
});

Deno.test("a gauge says how long tasks take, of which the latest count most", () => {
  const memory = new SharedArrayBuffer(GAUGE_SIZE);
  const [worker, reader] = [new WorkGauge(memory), new GaugeReader(memory)];
  reader.update();
  assertEquals(reader.service, 0);
  for (let n = 0; n < 1000; n++) worker.end(0.0005);
  reader.update();
  assertEquals(reader.service, 0.0005);
  worker.end(0.001, 2);
  reader.update();
  assertEquals(reader.service, 0.0005);
  worker.end(1);
  reader.update();
  assertEquals(reader.service, recentMean(0.0005, 1));
});

Deno.test("a pool grows while tasks wait, up to its most, and shrinks to its least", async () => {
  await using pool = poolOf({ least: 1, most: 3, patience: 0, idle: 30, ahead: 0 });
  const states = () => pool.stats().workers.map(({ state }) => state);
  await pool.run(1, { name: "twice" });
  assertEquals(states(), ["ready", "none", "none"]);
  const stop = new AbortController();
  const { signal } = stop;
  const hanging = Array.from({ length: 5 }, () => pool.run(1, { name: "hang", signal }));
  await eventually(() => states().every((state) => state === "ready"));
  await eventually(() => pool.stats().running === 3);
  assertEquals(pool.stats().waiting, 2);
  stop.abort();
  await Promise.allSettled(hanging);
  await eventually(() => states().filter((state) => state === "none").length === 2);
  assertEquals(await pool.run(2, { name: "twice" }), 4);
  assertEquals(pool.stats().restarted, 0);
});

Deno.test("a pool without least has no workers before it has tasks", async () => {
  await using pool = poolOf({ least: 0, most: 1, idle: 20 });
  const state = () => pool.stats().workers[0]!.state;
  assertEquals(state(), "none");
  for (let round = 0; round < 2; round++) {
    assertEquals(await pool.run(4, { name: "twice" }), 8);
    await eventually(() => state() === "none");
  }
});

Deno.test("a pool grows for a map that it holds back", async () => {
  await using pool = poolOf({ least: 1, most: 2, patience: 10 });
  function* source() {
    for (;;) yield 1;
  }
  let taken = 0;
  for await (const _ of pool.map(source(), { name: "later" })) {
    if (pool.stats().workers.every(({ state }) => state === "ready")) break;
    if (++taken > 5000) throw new Error("it does not grow");
  }
});

Deno.test("limits of time that no timer accepts are as good as none", async () => {
  const printed = JSON.parse(await printedApart("pool/timer_fixture.ts"));
  const [settled, names] = [[0, "ready,none"], Array(2).fill("nobody answers")];
  const states = [...Array(4).fill(settled).flat(), ...names];
  assertEquals(printed, { delays: [], states });
});
