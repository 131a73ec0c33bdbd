/** Workers that die, that never start, and that cannot be ended: what becomes of their tasks. */

import { assert, assertEquals, assertRejects } from "@std/assert";
import { PoolError } from "./pool.ts";
import { countingPool, eventually, pause, poolOf } from "./fixture.ts";

const isAll = Deno.env.get("MILLRACE_TEST_ALL") === "1";
const SEEDS = Array.from({ length: isAll ? 50 : 2 }, (_, n) => n + 1);

/** Pseudorandom numbers below 1, from a seed. */
function* numbersOf(seed: number): Generator<number, never> {
  for (let state = seed * 2_654_435_761 >>> 0;;) {
    state = Math.imul(state ^ state >>> 15, 1 | state) + 0x6d2b79f5 | 0;
    yield ((state ^ state >>> 14) >>> 0) / 2 ** 32;
  }
}

/** Runs tasks while workers are killed from outside. Returns what became of each, and the kills. */
async function runAndKill(seed: number, retry: number, killCount: number, taskCount = 3000) {
  const numbers = numbersOf(seed);
  const random = (most: number) => Math.floor(numbers.next().value * most);
  const ahead = random(20);
  const { pool, counts, workers } = countingPool(taskCount, { least: 2, most: 2, ahead, retry });
  await using _ = pool;
  await pool.run(0, { name: "twice" });
  const isWhole = () =>
    workers.length === 2 && pool.stats().workers.every(({ state }) => state === "ready");
  let answered = 0;
  const tasks = Array.from({ length: taskCount }, (_, id) => {
    const task = pool.run(id, { name: "count" });
    task.then(() => answered++, () => answered++);
    return task;
  });
  const settled = Promise.allSettled(tasks);
  let kills = 0;
  for (let kill = 0; kill < killCount; kill++) {
    const after = random(taskCount / killCount) + kill * taskCount / killCount;
    await eventually(() => answered >= Math.min(after, taskCount));
    await eventually(isWhole); // the death of one that is still starting is noticed late
    if (answered === taskCount) break;
    workers.splice(random(workers.length), 1)[0]!.terminate();
    kills++;
  }
  const outcomes = await settled;
  await eventually(isWhole);
  const { running, waiting, done, failed } = pool.stats();
  assertEquals([running, waiting, done + failed], [0, 0, taskCount + 1]);
  // The next worker has started, and works.
  assertEquals(await Promise.all([1, 2, 3, 4].map((n) => pool.run(n, { name: "twice" }))), [
    2,
    4,
    6,
    8,
  ]);
  return { outcomes, counts: [...counts], kills };
}

for (const seed of SEEDS) {
  Deno.test(`no task is lost or handled twice when workers are killed: seed ${seed}`, async () => {
    const { outcomes, counts, kills } = await runAndKill(seed, 0, 4);
    let rejected = 0;
    outcomes.forEach((outcome, id) => {
      if (outcome.status === "fulfilled") {
        assertEquals([outcome.value, counts[id]], [id, 1], `task ${id}`);
        return;
      }
      rejected++;
      const { reason } = outcome;
      assert(reason instanceof PoolError && reason.code === "pool.died", String(reason));
      assert(counts[id]! <= 1, `task ${id} was handled ${counts[id]} times`);
    });
    // Each worker was running one task; all others go on elsewhere.
    assert(rejected <= kills, `${rejected} were rejected, by ${kills} kills`);
  });

  Deno.test(`with retry, every task is handled at least once: seed ${seed}`, async () => {
    const { outcomes, counts, kills } = await runAndKill(seed + 100, 10, 4);
    const failed = outcomes.filter(({ status }) => status !== "fulfilled");
    assertEquals(failed, []);
    const twice = counts.filter((count) => count > 1);
    assertEquals(counts.filter((count) => count < 1), []);
    assert(twice.length <= kills, `${twice.length} were handled twice, by ${kills} kills`);
  });
}

for (const name of ["crash", "close"] as const) {
  Deno.test(`a task whose worker dies by ${name} rejects, and another one comes`, async () => {
    await using pool = poolOf({ ahead: 3 });
    await pool.run(0, { name: "twice" });
    const dying = pool.run(1, { name });
    const behind = [2, 3].map((n) => pool.run(n, { name: "twice" }));
    const error = await assertRejects(() => dying, PoolError);
    assertEquals([error.code, (error.cause as { code: string }).code], [
      "pool.died",
      "peer.failed",
    ]);
    assertEquals(await Promise.all(behind), [4, 6]);
    const { restarted, workers: [worker] } = pool.stats();
    assertEquals([restarted, worker!.generation, worker!.state], [1, 1, "ready"]);
  });
}

Deno.test("when one of two is killed within 10,000 tasks, one is rejected at most", async () => {
  const { outcomes, counts, kills } = await runAndKill(7, 0, 1, 10_000);
  const rejected = outcomes.filter(({ status }) => status === "rejected");
  const once = counts.filter((count) => count === 1);
  assertEquals(kills, 1);
  assert(rejected.length <= 1 && once.length >= 9_999, `${rejected.length}, ${once.length}`);
  assertEquals(counts.filter((count) => count > 1), []);
});

Deno.test("a task is given to another worker as often as retry says", async () => {
  await using pool = poolOf({ retry: 2 });
  const error = await assertRejects(() => pool.run(1, { name: "crash" }), PoolError);
  assertEquals([error.code, pool.stats().restarted >= 2], ["pool.died", true]);
  await eventually(() => pool.stats().restarted === 3);
});

Deno.test("a module that is not there rejects all tasks with pool.start", async () => {
  // Where nobody answers. Of a file that is missing, a Deno that checks types says only that.
  const url = new URL("http://127.0.0.1:1/no_such_file.js");
  await using pool = poolOf({ least: 2, most: 2 }, url);
  const tasks = [1, 2].map((n) => pool.run(n, { name: "twice" }));
  for (const task of tasks) {
    const { code, message } = await assertRejects(() => task, PoolError);
    assertEquals([code, message.includes("no_such_file")], ["pool.start", true], message);
  }
  const error = await assertRejects(() => pool.run(3, { name: "twice" }), PoolError);
  assertEquals(error.code, "pool.start");
});

Deno.test("a module that does not call work rejects all tasks in time", async () => {
  const url = URL.createObjectURL(new Blob([""], { type: "text/javascript" }));
  await using pool = poolOf({ startTimeout: 50 }, url);
  const error = await assertRejects(() => pool.run(1, { name: "twice" }), PoolError);
  assertEquals([error.code, error.message.includes("has not called work")], ["pool.start", true]);
});

Deno.test("what makes workers may fail, and the pool says so", async () => {
  await using pool = poolOf({}, () => {
    throw new TypeError("no workers today");
  });
  const error = await assertRejects(() => pool.run(1, { name: "twice" }), PoolError);
  assertEquals([error.code, error.message.includes("no workers today")], ["pool.start", true]);
});

Deno.test("a worker that lives on after its end begins no task that another one has", async () => {
  const { pool, counts } = countingPool(22, { least: 1, most: 1, ahead: 30, grace: 0 });
  await using _ = pool;
  await pool.run(0, { name: "count" });
  const stop = new AbortController();
  const blocked = pool.run(20, { name: "blockedLater", signal: stop.signal });
  const behind = Array.from({ length: 19 }, (_, n) => pool.run(n + 1, { name: "count" }));
  await eventually(() => Atomics.load(counts, 20) === 1);
  stop.abort();
  await assertRejects(() => blocked, DOMException);
  await eventually(() => pool.stats().workers[0]!.state === "ending");
  Atomics.store(counts, 21, 1);
  Atomics.notify(counts, 21);
  await Promise.all(behind);
  await pause(300); // by then the next worker has started
  assertEquals([...counts], Array(22).fill(1));
});

Deno.test("a worker that is blocked for ever is replaced, in memory of its own", async () => {
  // Blocked as long as the runtime needs to give up on it, and not much longer than the test.
  const { pool, counts } = countingPool(1, { grace: 10 });
  await pool.run(0, { name: "twice" });
  const stop = new AbortController();
  const blocked = pool.run(6000, { name: "blocked", signal: stop.signal });
  await eventually(() => Atomics.load(counts, 0) === 1);
  stop.abort();
  await assertRejects(() => blocked, DOMException);
  assertEquals(await pool.run(1, { name: "twice" }), 2);
  assertEquals(pool.stats().workers.map(({ generation }) => generation), [1]);
  await pool.close();
  await pause(0);
});
