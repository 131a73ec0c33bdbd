/**
 * The life of one worker of a pool: how it is started, and how its end is detected.
 *
 * @module
 */

import { clearTimeout, setTimeout } from "../memory/clock.ts";
import type { Port } from "../port/port.ts";
import { supervise, type Supervision, type WorkerEnd } from "../more/supervise.ts";
import { type Start, START_KEY } from "./work.ts";
import type { PoolWorker } from "./types.ts";
import { waitForPeerAsync } from "../more/peer.ts";

/**
 * The URL of the module that calls `work`, or a function that creates a worker with it.
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

/** Milliseconds until an ended worker is gone; Chromium lets a busy one go on for 2,000. */
const GONE_MS = 4000;

/** The parts of the global scope that are used here. */
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

/** One worker of a pool. */
export class Life {
  /** Settles when the worker has ended, as far as its peers can tell; see `supervise`. */
  readonly failed: Promise<WorkerEnd>;
  readonly #worker: PoolWorker;
  readonly #supervision: Supervision;
  readonly #lock: string;
  /** Settles at the `close` event by which Bun tells that a worker is gone. */
  readonly #closed: Promise<true>;

  /** Starts a worker, and hands it the other end of the port. */
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

  /** Ends the worker. Its endpoint is marked failed at once. */
  end(): void {
    // The promise of Node's `terminate` never rejects; an error of the runtime would mean a worker
    // that is gone.
    this.#supervision.terminate().catch(() => {});
  }

  /**
   * Ends the worker, and resolves with true when it can no longer touch the memory. Resolves with
   * false if that does not happen in time: in Deno, a worker that never returns to its event loop
   * lives on.
   */
  async gone(): Promise<boolean> {
    const { locks } = scope.navigator ?? {};
    const ended = Promise.resolve(this.#worker.terminate()).then(() => true);
    let timer: unknown;
    const late = new Promise<false>((resolve) => {
      timer = setTimeout(() => resolve(false), GONE_MS);
    });
    const free = new Promise<true>((resolve) => {
      // Requested and never held: to hold it would keep Deno's process alive. A sandboxed page may
      // refuse locks.
      locks?.request(this.#lock, () => resolve(true)).catch(() => resolve(true));
    });
    const told = this.#worker.on ? [ended] : [free, this.#closed];
    const isGone = await Promise.race([...told, late]);
    clearTimeout(timer as number);
    this.#supervision[Symbol.dispose]();
    return isGone;
  }
}

/** Creates a worker in the way of this runtime. */
function makeWorker(source: WorkSource): PoolWorker {
  if (typeof source === "function") return source();
  if (scope.Worker) return new scope.Worker(source, { type: "module" });
  const threads = scope.process?.getBuiltinModule?.("node:worker_threads");
  if (!threads) throw new TypeError("Cannot start worker: there are none here");
  const isUrl = typeof source === "string" && /^[a-z]+:/.test(source);
  return new threads.Worker(isUrl ? new URL(source) : source);
}

/** Waits until the worker has attached its end. Returns false if it ends first or is too late. */
export async function arrival(
  port: Port<unknown>,
  life: Life,
  timeout: number,
): Promise<boolean> {
  const stop = new AbortController();
  const come = waitForPeerAsync(port, { timeout, signal: stop.signal }).catch(() => false);
  const hasCome = await Promise.race([life.failed.then(() => false), come]);
  stop.abort();
  return hasCome;
}
