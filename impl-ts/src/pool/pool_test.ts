/** Tasks, their results and errors; giving tasks up; ending a pool. */

import { assertEquals, assertRejects, assertThrows } from "@std/assert";
import { cbor } from "../codec/cbor.ts";
import { CallError } from "../call/error.ts";
import { codeOf, printedApart, withoutSlices } from "../testing/fixture.ts";
import { Pool, PoolError, work } from "./pool.ts";
import { countingPool, eventually, pause, poolOf, WORK_URL } from "./fixture.ts";
import { LateRings } from "./runner.ts";
import { MillraceError } from "../error.ts";

Deno.test("run gives each task to a worker, and settles with its result", async () => {
  await using pool = poolOf({ least: 2, most: 2 });
  const values = Array.from({ length: 500 }, (_, n) => n);
  const results = await Promise.all(values.map((n) => pool.run(n, { name: "twice" })));
  assertEquals(results, values.map((n) => 2 * n));
  const { done, failed, waiting, running, workers } = pool.stats();
  assertEquals([done, failed, waiting, running], [500, 0, 0, 0]);
  assertEquals(workers.map(({ done }) => done).reduce((sum, each) => sum + each), 500);
});

Deno.test("run carries texts, bytes, JSON and undefined, up to 1 MB", async () => {
  await using pool = poolOf();
  const bytes = Uint8Array.from({ length: 1_000_000 }, (_, n) => n % 251);
  for (const value of ["text", undefined, null, { a: [1, "two"] }, Uint8Array.of(7), bytes]) {
    assertEquals(await pool.run(value, { name: "echo" }), value);
  }
  const long = "é".repeat(500_000);
  const both = [bytes, long].map((value) => pool.run(value, { name: "echo" }));
  assertEquals(await Promise.all(both), [bytes, long]);
});

Deno.test("run rejects with name, message and data of what the handler throws", async () => {
  await using pool = poolOf();
  const error = await assertRejects(() => pool.run("too many", { name: "fail" }), CallError);
  const { code, name, remoteName, message, data } = error;
  assertEquals([code, message], ["call.thrown", "too many"]);
  assertEquals([name, remoteName], ["RangeError", "RangeError"]);
  assertEquals(data, { text: "too many" });
  const missing = await assertRejects(() => pool.run(1, { name: "none" as "twice" }), CallError);
  const text = "Cannot call none: the other side has no method of that name";
  assertEquals([missing.code, missing.name, missing.message], ["call.method", "CallError", text]);
  assertEquals(await pool.run(1, { name: "twice" }), 2);
  assertEquals(pool.stats().failed, 2);
});

Deno.test("run rejects a value, or a result, that cannot be carried, and goes on", async () => {
  await using pool = poolOf({ ahead: 0 });
  await assertRejects(() => pool.run(1n, { name: "echo" }), TypeError);
  assertEquals(await codeOf(pool.run(undefined, { name: "unsendable" })), "call.result");
  assertEquals(await pool.run(1, { name: "twice" }), 2);
  assertEquals(pool.stats().running, 0);
});

Deno.test("run rejects where a handler gives several results", async () => {
  await using pool = poolOf();
  assertEquals(await codeOf(pool.run(3, { name: "each" })), "call.items");
  assertEquals(await pool.run(1, { name: "twice" }), 2);
});

Deno.test("run rejects a result that is larger than the pool takes, and goes on", async () => {
  await using pool = poolOf({ maxMessageSize: 100, ahead: 2 });
  const long = [90, 1000, 100_000].map((n) => pool.run(n, { name: "long" }));
  const codes = await Promise.all(long.map(codeOf));
  assertEquals(codes, Array(3).fill("message.size"));
  assertEquals(await pool.run(5, { name: "long" }), "x".repeat(5));
  assertEquals([pool.stats().running, pool.stats().failed], [0, 3]);
});

Deno.test("a result comes while a task after it, which was given with it, blocks", async () => {
  const { pool, counts } = countingPool(1, { ahead: 8 });
  await using _ = pool;
  await pool.run(0, { name: "twice" });
  const first = pool.run(1, { name: "twice" });
  const blocked = pool.run(0, { name: "gate" });
  assertEquals(await first, 2);
  Atomics.store(counts, 0, 1);
  Atomics.notify(counts, 0);
  // Where the store comes first, it has not slept.
  assertEquals(await blocked === "timed-out", false);
});

Deno.test("a result comes while a task after it blocks, also of a late worker", async () => {
  const { pool, counts } = countingPool(1, { ahead: 8 });
  await using _ = pool;
  await withoutSlices(async () => {
    await pool.run(60, { name: "pausesBehind" });
    await pause(5);
    const first = pool.run(1, { name: "twice" });
    const blocked = pool.run(0, { name: "gate" });
    assertEquals(await first, 2);
    Atomics.store(counts, 0, 1);
    Atomics.notify(counts, 0);
    assertEquals(await blocked === "timed-out", false); // otherwise it has ended by itself
  });
});

Deno.test("a promise of its own kind that throws fails its task, and no other", async () => {
  await using pool = poolOf();
  assertEquals(await codeOf(pool.run(0, { name: "thenThrows" })), "call.thrown");
  assertEquals(await pool.run(1, { name: "twice" }), 2);
});

Deno.test("an odd result, or error, of a handler fails its task, and no other", async () => {
  await using pool = poolOf();
  const codes = { jsonLost: "call.result", jsonRevoked: "call.result" };
  const kinds = ["nextGetter", "hasTrap", "revoked", "later", "rejected", "thrown"];
  for (
    const [kind, code] of [...kinds.map((kind) => [kind, "call.thrown"]), ...Object.entries(codes)]
  ) {
    assertEquals(await codeOf(pool.run(kind!, { name: "odd" })), code, kind);
  }
  assertEquals(await pool.run("twice", { name: "odd" }), 1);
  assertEquals(await pool.run(1, { name: "twice" }), 2);
  assertEquals(pool.stats().restarted, 0);
});

Deno.test("a value whose code throws an error of ours fails its task only", async () => {
  await using pool = poolOf();
  const { proxy, revoke } = Proxy.revocable({}, {});
  revoke();
  for (const reason of [new MillraceError("peer.closed", "of the value's own"), proxy]) {
    const toJSON = () => {
      throw reason;
    };
    const run = pool.run({ toJSON }, { name: "echo" });
    assertEquals(await run.then(() => false, (error) => Object.is(error, reason)), true);
  }
  assertEquals(await pool.run(1, { name: "twice" }), 2);
  assertEquals(pool.stats().restarted, 0);
});

Deno.test("close settles though the last task, when a worker comes, cannot be sent", async () => {
  const pool = poolOf();
  const refused = assertRejects(
    () => pool.run(1n as unknown as number, { name: "twice" }),
    TypeError,
  );
  await pool.close();
  await refused;
});

Deno.test("a pool that has no worker any more lets its process end", async () => {
  assertEquals(await printedApart("pool/idle_fixture.ts"), "2\n");
});

Deno.test("rings are held back while they are to be, and then one is made", () => {
  const rings = new LateRings();
  const words = new Int32Array(new SharedArrayBuffer(8));
  const rung: unknown[] = [];
  const real = Atomics.notify;
  Atomics.notify = (words, index) => real(words as Int32Array, rung.push(index) && index);
  try {
    rings.mechanism.notify(words, 1);
    rings.flush();
    assertEquals(rung, [1]);
    rings.isHolding = true;
    for (let n = 0; n < 3; n++) rings.mechanism.notify(words, 1);
    assertEquals(rung, [1]);
    rings.mechanism.notify(words, 0); // another bell
    assertEquals(rung, [1, 0]);
    rings.flush();
    rings.flush();
    assertEquals(rung, [1, 0, 1]);
  } finally {
    Atomics.notify = real;
  }
});

Deno.test("a codec of both sides carries what JSON cannot", async () => {
  const library = import.meta.resolve("./pool.ts");
  const source = `
    import { work } from "${library}";
    import { cbor } from "${import.meta.resolve("../codec/cbor.ts")}";
    work((names) => names.size, { codec: cbor });`;
  const url = URL.createObjectURL(new Blob([source], { type: "text/javascript" }));
  await using pool = new Pool(url, { most: 1, codec: cbor });
  assertEquals(await pool.run(new Set(["a", "b"])), 2);
});

Deno.test("no worker has more tasks than it runs, and those ahead", async () => {
  await using pool = poolOf({ least: 2, most: 2, ahead: 1 });
  await eventually(() => pool.stats().workers.every(({ state }) => state === "ready"));
  const tasks = Array.from({ length: 7 }, () => pool.run(20, { name: "later" }));
  const { waiting, workers } = pool.stats();
  assertEquals([waiting, ...workers.map(({ running }) => running)], [3, 2, 2]);
  await Promise.all(tasks);
});

Deno.test("a task goes to the worker that has the fewest", async () => {
  await using pool = poolOf({ least: 2, most: 2, ahead: 5 });
  await eventually(() => pool.stats().workers.every(({ state }) => state === "ready"));
  const stop = new AbortController();
  const { signal } = stop;
  const long = pool.run(1, { name: "hang", signal }).catch(() => {});
  for (let n = 0; n < 10; n++) await pool.run(n, { name: "twice" });
  assertEquals(pool.stats().workers.map(({ done }) => done), [0, 10]);
  stop.abort();
  await long;
});

Deno.test("concurrency runs several tasks of a worker at a time, and no more", async () => {
  await using pool = poolOf({ concurrency: 3, ahead: 2 });
  await pool.run(0, { name: "twice" });
  const stop = new AbortController();
  const { signal } = stop;
  const hanging = [1, 2, 3].map((n) => pool.run(n, { name: "hang", signal }));
  const behind = pool.run(4, { name: "twice" });
  await assertRejects(() => pool.run(1, { name: "twice", signal: AbortSignal.timeout(50) }));
  assertEquals(pool.stats().running, 5);
  stop.abort();
  for (const each of hanging) await assertRejects(() => each);
  assertEquals(await behind, 8);
});

Deno.test("a signal takes a task back that waits", async () => {
  await using pool = poolOf({ ahead: 0 });
  await pool.run(0, { name: "twice" });
  const long = pool.run(50, { name: "later" });
  const stop = new AbortController();
  const waiting = pool.run(1, { name: "twice", signal: stop.signal });
  const last = pool.run(2, { name: "twice" });
  assertEquals(pool.stats().waiting, 2);
  stop.abort(new Error("not needed"));
  assertEquals(pool.stats().waiting, 1);
  await assertRejects(() => waiting, Error, "not needed");
  assertEquals([await long, await last], [50, 4]);
  assertEquals([pool.stats().cancelled, pool.stats().done], [1, 3]);
  const aborted = AbortSignal.abort(new Error("too late"));
  await assertRejects(() => pool.run(3, { name: "twice", signal: aborted }), Error, "too late");
});

Deno.test("a signal tells the handler, whose task keeps its place until it ends", async () => {
  await using pool = poolOf({ ahead: 0 });
  await pool.run(0, { name: "twice" });
  for (let round = 0; round < 20; round++) {
    const stop = new AbortController();
    const running = pool.run(1, { name: "hang", signal: stop.signal });
    const behind = pool.run(round, { name: "twice" });
    stop.abort();
    // The handler has not ended, so its worker is not free.
    assertEquals([pool.stats().running, pool.stats().waiting], [1, 1]);
    await assertRejects(() => running, DOMException);
    assertEquals(await behind, 2 * round);
  }
  assertEquals(pool.stats().running, 0);
});

Deno.test("a task that was given up before its turn at the worker does not begin", async () => {
  const { pool: counting, counts } = countingPool(3, { ahead: 4 });
  await using _ = counting;
  await counting.run(0, { name: "count" });
  const stop = new AbortController();
  const before = new AbortController();
  const first = counting.run(0, { name: "hang", signal: before.signal });
  const second = counting.run(1, { name: "count", signal: stop.signal });
  const third = counting.run(2, { name: "count" });
  stop.abort();
  before.abort();
  await assertRejects(() => second);
  await assertRejects(() => first);
  await third;
  assertEquals([...counts], [1, 0, 1]);
});

Deno.test("the worker of a task that never ends is replaced after the grace", async () => {
  const { pool, counts } = countingPool(1, { ahead: 1, grace: 20 });
  await using _ = pool;
  await pool.run(0, { name: "twice" });
  const stop = new AbortController();
  const { signal } = stop;
  const behind = [pool.run(0, { name: "never", signal }), pool.run(7, { name: "twice" })];
  await eventually(() => Atomics.load(counts, 0) === 1);
  stop.abort();
  await assertRejects(() => behind[0]!, DOMException);
  assertEquals(await behind[1], 14); // the task had not begun
  assertEquals(pool.stats().workers[0]!.generation, 1);
});

Deno.test("a blocking handler holds its own worker alone", async () => {
  const { pool, counts } = countingPool(1, { least: 2, most: 2, ahead: 0 });
  await using _ = pool;
  await eventually(() => pool.stats().workers.every(({ state }) => state === "ready"));
  const blocked = pool.run(0, { name: "gate" });
  for (let n = 0; n < 20; n++) assertEquals(await pool.run(n, { name: "twice" }), 2 * n);
  Atomics.store(counts, 0, 1);
  Atomics.notify(counts, 0);
  // Where the store comes first, it has not slept.
  assertEquals(await blocked === "timed-out", false);
});

Deno.test("close waits for what runs and what waits, and refuses the rest", async () => {
  const pool = poolOf({ ahead: 0 });
  const tasks = [10, 11, 12].map((ms) => pool.run(ms, { name: "later" }));
  const closing = pool.close();
  const error = await assertRejects(() => pool.run(1, { name: "twice" }), PoolError);
  assertEquals(error.code, "pool.closed");
  await closing;
  assertEquals(await Promise.all(tasks), [10, 11, 12]);
  await pool.close();
});

Deno.test("abort rejects all tasks with its reason, and ends the workers", async () => {
  const pool = poolOf({ ahead: 1 });
  await pool.run(0, { name: "twice" });
  const tasks = [1, 2, 3].map((n) => pool.run(n, { name: "never" }));
  const aborting = pool.abort("enough");
  for (const task of tasks) {
    const error = await assertRejects(() => task, PoolError);
    assertEquals([error.code, error.cause], ["pool.aborted", "enough"]);
  }
  await aborting;
  const { cancelled, running, workers } = pool.stats();
  assertEquals([cancelled, running, workers[0]!.state], [3, 0, "none"]);
});

Deno.test("await using closes a pool after its tasks", async () => {
  let result: Promise<number>;
  {
    await using pool = new Pool<{ handlers: { twice(n: number): number } }>(WORK_URL, { most: 1 });
    result = pool.run(4, { name: "twice" });
  }
  assertEquals(await result, 8);
});

Deno.test("onprogress is told while tasks come and go", async () => {
  await using pool = poolOf();
  const seen: number[] = [];
  pool.onprogress = ({ done }) => seen.push(done);
  await pool.run(1, { name: "twice" });
  await eventually(() => seen.at(-1) === 1);
});

Deno.test("work does nothing in a thread that no pool has started", () => {
  const handler = (n: number) => n;
  assertEquals(work(handler).handlers, handler);
});

Deno.test("a pool refuses options out of their range", () => {
  for (
    const options of [
      { least: -1 },
      { least: 3, most: 2 },
      { most: 0 },
      { most: 256 },
      { ahead: -1 },
      { ahead: 1000 },
      { concurrency: 0 },
      { retry: 0.5 },
      { patience: -1 },
      { idle: NaN },
    ]
  ) assertThrows(() => new Pool(WORK_URL, options), RangeError);
});
