/** Shared by the tests of pools. */

import { Pool, type PoolOptions, type WorkSource } from "./pool.ts";
import type module from "./worker_fixture.ts";

/** The module of work of the tests. */
export const WORK_URL = new URL("./worker_fixture.ts", import.meta.url);

/** A pool that is closed at the end of the test, even if the test fails. */
export function poolOf(
  options: PoolOptions = {},
  source: WorkSource = WORK_URL,
): Pool<typeof module> & AsyncDisposable {
  const pool = new Pool<typeof module>(source, { least: 1, most: 1, ...options });
  const bound = setTimeout(() => pool.abort("the test takes too long"), 20_000);
  const close = pool.close.bind(pool);
  pool.close = () => {
    clearTimeout(bound);
    return close();
  };
  pool[Symbol.asyncDispose] = () => {
    clearTimeout(bound);
    return pool.abort("the test is over");
  };
  return pool;
}

/** A pool whose workers count how often they have handled each task; and the workers. */
export function countingPool(taskCount: number, options: PoolOptions) {
  const counts = new Int32Array(new SharedArrayBuffer(4 * taskCount));
  const workers: Worker[] = [];
  const pool = poolOf(options, () => {
    const worker = new Worker(WORK_URL, { type: "module" });
    worker.postMessage({ counts: counts.buffer });
    workers.push(worker);
    return worker;
  });
  return { pool, counts, workers };
}

/** Waits until a condition holds, for at most 10 s. */
export async function eventually(holds: () => boolean): Promise<void> {
  for (let left = 2000; !holds(); left--) {
    if (left === 0) throw new Error("it did not come to that");
    await pause(5);
  }
}

/** Waits for `ms` milliseconds. */
export function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
