/**
 * The life of one worker of a pool: how it is made, and when nothing is left of it.
 *
 * @module
 */

import type { Port } from "./port.ts";
import { supervise, type Supervision, type WorkerEnd } from "./supervise.ts";
import { type Start, START_KEY } from "./worker_pool_work.ts";
import type { PoolWorker } from "./worker_pool_types.ts";

/**
 * Where the module of work is, or what makes a worker with it.
 *
 * @example
 * ```ts
 * import type { WorkSource } from "@millrace/millrace/pool";
 *
 * const here: WorkSource = new URL("./worker.ts", import.meta.url);
 * // Bundlers find the module by such an expression.
 * const made: WorkSource = () =>
 *   new Worker(new URL("./worker.js", import.meta.url), { type: "module" });
 * console.log(here.pathname.endsWith("/worker.ts"), typeof made); // true function
 * ```
 */
export type WorkSource = URL | string | (() => PoolWorker);

/** Milliseconds in which a worker that was ended is gone; Chromium gives one that is busy 2,000. */
const GONE_MS = 4000;

/** What of a runtime matters here. */
interface Scope {
  readonly Worker?: new (url: URL | string, options: { type: "module" }) => PoolWorker;
  readonly process?: {
    getBuiltinModule?(name: "node:worker_threads"): {
      readonly Worker: new (url: URL | string) => PoolWorker;
    };
  };
  readonly navigator?: {
    readonly locks?: { request(name: string, run: () => unknown): Promise<unknown> };
  };
}

const scope = globalThis as Scope;

/** One worker. */
export class Life {
  /** Settles when the worker has ended, as far as its peers are concerned; see `supervise`. */
  readonly failed: Promise<WorkerEnd>;
  readonly #worker: PoolWorker;
  readonly #supervision: Supervision;
  readonly #lock: string;
  /** Of Bun, which tells by an event when a worker is gone. */
  readonly #closed: Promise<true>;

  /** Starts a worker that takes the other end of a port. */
  constructor(source: WorkSource, port: Port<unknown>, start: Omit<Start, "handoff" | "lock">) {
    const lock = this.#lock = crypto.randomUUID();
    const worker = this.#worker = makeWorker(source);
    this.#closed = new Promise((resolve) => {
      worker.addEventListener?.("close", () => resolve(true));
    });
    this.#supervision = supervise(worker, port, { lock });
    this.failed = this.#supervision.failed;
    const message: Start = { ...start, handoff: port.handoff(), lock };
    worker.postMessage({ [START_KEY]: message });
  }

  /** Ends the worker. Its endpoint is marked at once. */
  end(): void {
    // Node's promise rejects for nothing; the runtime's own error would be a worker that is gone.
    this.#supervision.terminate().catch(() => {});
  }

  /**
   * Ends the worker, and settles when it cannot touch the memory any more: with false if it does
   * not come to that, as in Deno, where a worker that never comes back to its event loop lives on.
   */
  async gone(): Promise<boolean> {
    const { locks } = scope.navigator ?? {};
    const ended = Promise.resolve(this.#worker.terminate()).then(() => true);
    let timer: unknown;
    const late = new Promise<false>((resolve) => {
      timer = setTimeout(() => resolve(false), GONE_MS);
    });
    const free = new Promise<true>((resolve) => {
      // Not held: that would keep the process of Deno. A page may refuse locks, a sandboxed one.
      locks?.request(this.#lock, () => resolve(true)).catch(() => resolve(true));
    });
    const told = this.#worker.on !== undefined ? [ended] : [free, this.#closed];
    const isGone = await Promise.race([...told, late]);
    clearTimeout(timer as number);
    this.#supervision[Symbol.dispose]();
    return isGone;
  }
}

/** Makes a worker, in the way of the runtime. */
function makeWorker(source: WorkSource): PoolWorker {
  if (typeof source === "function") return source();
  if (scope.Worker !== undefined) return new scope.Worker(source, { type: "module" });
  const threads = scope.process?.getBuiltinModule?.("node:worker_threads");
  if (threads === undefined) throw new TypeError("Cannot start worker: there are none here");
  const isUrl = typeof source === "string" && /^[a-z]+:/.test(source);
  return new threads.Worker(isUrl ? new URL(source) : source);
}

/** Waits until the worker has taken its end of the port. False: it has ended before, or is late. */
export async function arrival(
  port: Port<unknown>,
  life: Life,
  timeout: number,
): Promise<boolean> {
  const stop = new AbortController();
  const come = port.waitForPeerAsync({ timeout, signal: stop.signal }).catch(() => false);
  const hasCome = await Promise.race([life.failed.then(() => false), come]);
  stop.abort();
  return hasCome;
}
