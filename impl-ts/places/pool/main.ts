/**
 * Two workers handle tasks: results in their order, errors with their names, a task that is given
 * up. Both are ended from outside: their tasks are rejected, and they are back.
 */
import { Pool, type PoolWorker } from "millrace/pool";
import { type Actor, assertEquals, assertFails, type Stage, within } from "../stage.ts";
import type { handlers } from "./worker.ts";

export default async function main(stage: Stage): Promise<void> {
  const actors: Actor[] = [];
  const pool = new Pool<typeof handlers>(() => {
    const actor = stage.start();
    actor.result.catch(() => {}); // it never comes to one
    actors.push(actor);
    return actor.worker as PoolWorker;
  }, { least: 2, most: 2, concurrency: 2, ahead: 0 });

  assertEquals(await within(pool.run(21, { name: "twice" })), 42);
  const bytes = Uint8Array.of(1, 2, 3);
  assertEquals(await within(pool.run(bytes, { name: "echo" })), bytes);
  const results: number[] = [];
  for await (const n of pool.map([1, 2, 3, 4, 5], { name: "twice" })) results.push(n);
  assertEquals(results, [2, 4, 6, 8, 10]);

  const error = await assertFails("call.thrown", () => pool.run("no", { name: "fail" }));
  assertEquals([error.message, (error as { remoteName?: string }).remoteName], [
    "no",
    "RangeError",
  ]);
  const signal = AbortSignal.timeout(20);
  const late = await pool.run(0, { name: "wait", signal }).catch(({ name }) => name);
  assertEquals(late, "TimeoutError");

  await ready(pool);
  // The one that was given up has its place until its worker says that it has ended.
  await until(() => pool.stats().running === 0);
  const waiting = [0, 1].map(() => pool.run(0, { name: "wait" }));
  const dying = Promise.all(waiting.map((task) => assertFails("pool.died", () => task)));
  // One goes to each worker, where tasks begin in their order: the other has begun by its answer.
  await within(Promise.all([2, 3].map((n) => pool.run(n, { name: "twice" }))));
  for (const actor of actors.splice(0)) actor.terminate();
  await within(dying);
  await ready(pool);
  assertEquals(pool.stats().workers.map(({ generation }) => generation), [1, 1]);
  assertEquals(await within(pool.run(4, { name: "twice" })), 8);
  await within(pool.close());
}

/** Waits until both workers are there. */
async function ready(pool: Pool<typeof handlers>): Promise<void> {
  await until(() => pool.stats().workers.every(({ state }) => state === "ready"));
}

/** Waits until something holds. */
async function until(holds: () => boolean): Promise<void> {
  await within((async () => {
    while (!holds()) await new Promise((resolve) => setTimeout(resolve, 5));
  })());
}
