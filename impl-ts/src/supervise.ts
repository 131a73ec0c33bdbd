/**
 * Telling the peers of a worker that it is gone, and giving its end to the next one. See
 * `spec/pipe.md`.
 *
 * @module
 */

import { ENDPOINT_BELL_WORD, ENDPOINT_RECORD_SIZE, ENDPOINT_STATE_VACANT } from "./layout.ts";
import { ENDPOINT_STATE_WORD, WAIT_POLL_MS, WAIT_SLICE_MS } from "./layout.ts";
import type { Segment } from "./segment.ts";
import { recordOffset, requireInteger } from "./segment_geometry.ts";
import { defaultMechanism } from "./wait.ts";
import { failEndpoint, generationOf, stateOf } from "./wait_state.ts";
import { unref } from "./wait_task.ts";

export type { VacatingEnd } from "./pipe_vacate.ts";
export { vacatePeer } from "./pipe_vacate.ts";

/**
 * A worker, as far as it matters here: a web `Worker`, or one of `node:worker_threads`.
 *
 * @example
 * ```ts
 * import { Port } from "@millrace/millrace";
 * import { supervise, type WorkerLike } from "@millrace/millrace/supervise";
 *
 * // Anything that can be ended, a child process for one.
 * const job: WorkerLike = { terminate: () => console.log("ended") }; // ended
 * using port = Port.create<string>();
 * await supervise(job, port).terminate();
 * console.log(await port.readAsync().catch((error) => error.reason)); // "peer.terminated"
 * ```
 */
export interface WorkerLike {
  /** Ends the worker; in Node, a promise tells when it has ended. */
  terminate(): unknown;
  /** Of web workers. */
  addEventListener?(type: string, listener: (event: Event) => void): void;
  /** Of web workers. */
  removeEventListener?(type: string, listener: (event: Event) => void): void;
  /** Of Node's workers. */
  on?(type: string, listener: (value: unknown) => void): unknown;
  /** Of Node's workers. */
  off?(type: string, listener: (value: unknown) => void): unknown;
}

/**
 * An endpoint of the worker's: the other side of a port that this thread has, or any endpoint by
 * its segment and index.
 *
 * @example
 * ```ts
 * import { Port } from "@millrace/millrace";
 * import { supervise, type Supervised } from "@millrace/millrace/supervise";
 *
 * // Both ends of this port are in other threads; this one has only its memory.
 * using port = Port.create<string>();
 * const end: Supervised = { segment: port.segment, index: 1 };
 * await supervise({ terminate() {} }, end).terminate();
 * console.log(await port.readAsync().catch((error) => error.code)); // "peer.failed"
 * ```
 */
export type Supervised =
  | { readonly segment: Segment; readonly peerIndex: number }
  | { readonly segment: Segment; readonly index: number };

/**
 * How to watch a worker.
 *
 * @example
 * ```ts
 * import { Port } from "@millrace/millrace";
 * import { supervise } from "@millrace/millrace/supervise";
 *
 * const source = new Blob(["self.onmessage = () => self.close()"], { type: "text/javascript" });
 * const worker = new Worker(URL.createObjectURL(source), { type: "module" });
 * using port = Port.create();
 * const lock = crypto.randomUUID();
 * using supervision = supervise(worker, port, { lock });
 * worker.postMessage(port.handoff({ lock })); // there: await holdLife(data.lock)
 * supervision.terminate();
 * console.log((await supervision.failed).signal); // "terminate"
 * ```
 */
export interface SuperviseOptions {
  /**
   * The name of the lock that the worker holds while it lives: see `holdLife`, which it must have
   * awaited before it attaches. A worker that attaches without holding it is taken for dead.
   */
  readonly lock?: string | undefined;
}

/**
 * How the end of a worker was found, and what was made of it.
 *
 * @example
 * ```ts
 * import { Port } from "@millrace/millrace";
 * import { supervise, type WorkerEnd } from "@millrace/millrace/supervise";
 *
 * const tell = ({ signal, marked }: WorkerEnd) => `${signal}, marked: ${marked}`;
 * using port = Port.create();
 * const supervision = supervise({ terminate() {} }, port);
 * supervision.terminate();
 * console.log(tell(await supervision.failed)); // "terminate, marked: true"
 * ```
 */
export interface WorkerEnd {
  /**
   * What told: `terminate` of this object, the worker's `error` event, its `exit` event in Node or
   * `close` event in Bun, or the `lock`, which the worker let go.
   */
  readonly signal: "terminate" | "error" | "exit" | "lock";
  /** The error or the exit code that came with it, where there is one. */
  readonly cause: unknown;
  /** Whether an endpoint was marked failed: false if the worker had closed all of them. */
  readonly marked: boolean;
}

/** A browser says no more of it than that there was an error. */
const NOT_LOADED =
  "Cannot start worker: its script, or one that it imports, could not be loaded from its URL";

/** A place of the worker's in a segment, and how often it had been given back by then. */
interface Place {
  readonly segment: Segment;
  readonly index: number;
  readonly generation: number;
}

/**
 * A worker that is being watched; made by `supervise`.
 *
 * @example
 * ```ts
 * import { Port } from "@millrace/millrace";
 * import { supervise, type Supervision } from "@millrace/millrace/supervise";
 *
 * const source = new Blob(["throw new Error('oh')"], { type: "text/javascript" });
 * const worker = new Worker(URL.createObjectURL(source), { type: "module" });
 * using port = Port.create<string>();
 * using supervision: Supervision = supervise(worker, port);
 * console.log(await port.readAsync().catch((error) => error.reason)); // "peer.terminated"
 * console.log((await supervision.failed).signal); // "error"
 * ```
 */
export class Supervision {
  /**
   * Settles, without ever being rejected, once the worker is known to have ended and its endpoints
   * are marked. Never, if the watching is stopped before.
   */
  readonly failed: Promise<WorkerEnd>;
  readonly #worker: WorkerLike;
  readonly #places: readonly Place[];
  readonly #stop: AbortController = new AbortController();
  #settle: (end: WorkerEnd) => void = () => {};
  #unlisten: () => void = () => {};

  /**
   * Use `supervise`.
   *
   * @internal
   */
  constructor(worker: WorkerLike, endpoints: readonly Supervised[], lock: string | undefined) {
    this.#worker = worker;
    this.#places = endpoints.map(placeOf);
    this.failed = new Promise((resolve) => this.#settle = resolve);
    this.#listen();
    if (lock !== undefined) this.#watch(lock);
  }

  /**
   * Ends the worker, and marks its endpoints failed: whoever waits for it, in any thread, wakes
   * with a `PeerFailedError` whose reason is `peer.terminated`. The promise settles when the
   * runtime says that the worker has ended, which only Node does; it need not be awaited.
   *
   * Deno ends a worker only when it comes back to its event loop. One that sleeps in a call of this
   * library is therefore woken by the mark, with `pipe.failed`; one that blocks elsewhere lives on.
   */
  async terminate(): Promise<void> {
    let ended: unknown;
    try {
      ended = this.#worker.terminate();
    } finally {
      // Behind `terminate`: where the runtime can, a worker that sleeps wakes up to its end.
      this.#end("terminate", undefined);
    }
    await ended;
  }

  /** Stops watching; the worker and its endpoints stay as they are, until `terminate`. */
  [Symbol.dispose](): void {
    this.#stop.abort();
    this.#unlisten();
  }

  /** What comes second finds the states final and the promise settled. */
  #end(signal: WorkerEnd["signal"], cause: unknown): void {
    this.#stop.abort();
    let marked = false;
    for (const { segment, index, generation } of this.#places) { // [pipe.supervisor]
      const mechanism = defaultMechanism(segment);
      const isMarked = failEndpoint(segment, index, "peer.terminated", mechanism, generation);
      if (isMarked && signal === "error") {
        (segment.causes ??= new Map()).set(index, { generation, cause });
      }
      marked = isMarked || marked;
    }
    this.#settle({ signal, cause, marked });
  }

  #listen(): void {
    const worker = this.#worker;
    if (worker.on !== undefined) {
      // A listener for `error` also keeps Node from ending the whole process.
      const onError = (error: unknown) => this.#end("error", error);
      const onExit = (code: unknown) => this.#end("exit", code);
      worker.on("error", onError);
      worker.on("exit", onExit);
      this.#unlisten = () => {
        worker.off?.("error", onError);
        worker.off?.("exit", onExit);
      };
    } else if (worker.addEventListener !== undefined) {
      const onError = (event: Event) => {
        // For the same reason: Deno would end the process. The error is in `failed`.
        event.preventDefault();
        const { error, message } = event as Partial<ErrorEvent>;
        this.#end("error", error ?? message ?? new Error(NOT_LOADED));
      };
      // Of Bun: its web workers tell of their end, however it came, and it has no locks.
      const onClose = (event: Event) => this.#end("exit", (event as Partial<CloseEvent>).code);
      worker.addEventListener("error", onError);
      worker.addEventListener("close", onClose);
      this.#unlisten = () => {
        worker.removeEventListener?.("error", onError);
        worker.removeEventListener?.("close", onClose);
      };
    }
  }

  /** Asks for the lock once the worker has it, which is before it attaches. */
  async #watch(lock: string): Promise<void> {
    const { signal } = this.#stop;
    await arrival(this.#places, signal);
    try {
      await locks()?.request(lock, { signal }, () => {
        if (!signal.aborted) this.#end("lock", undefined);
      });
    } catch {
      // Aborted; or in a page that has no locks, a sandboxed one for instance: as if without them.
    }
  }
}

/**
 * Watches a worker, and tells its peers when it is gone: its endpoints are marked failed, and
 * whoever waits for it, in any thread, wakes at once with a `PeerFailedError` whose reason is
 * `peer.terminated`. Call it right after the worker is made.
 *
 * An error of the worker's, such as that there is no script at its URL, is the `cause` of what this
 * thread's ports then throw, as far as it is known here.
 *
 * What is found: `terminate` of the object returned; an uncaught error of the worker, which counts
 * as its end also in a browser, where the worker lives on and its own calls then fail with
 * `pipe.failed`; the end of a worker of Node or Bun, however it came; and, where the runtime has
 * Web Locks, any end of a worker that called `holdLife`, such as a bare `worker.terminate()` or
 * `close()`, as soon as the runtime has carried it out: Chromium gives a worker that is blocked 2
 * s, Deno any time. Elsewhere, or without `holdLife`, a web worker that is ended in those ways
 * gives no signal: only the timeout of whoever waits for it finds out. One that never attaches,
 * `port.waitForPeer` finds.
 *
 * A worker that has the endpoint after this one, as `vacatePeer` allows, is not marked for its end:
 * call this again for each, behind `vacatePeer`. [segment.state_owner]
 *
 * Watching does not keep the event loop of Node alive. May be called by any thread that has the
 * worker; the ports may be others' as well, by `{ segment, index }`.
 *
 * @throws {RangeError} if a segment has no endpoint with the index given.
 * @throws {TypeError} if there is nothing to mark.
 *
 * @example
 * ```ts
 * import { PeerFailedError, Port } from "@millrace/millrace";
 * import { supervise } from "@millrace/millrace/supervise";
 *
 * const port = Port.create();
 * const source = new Blob(["self.onmessage = () => {}"], { type: "text/javascript" });
 * const worker = new Worker(URL.createObjectURL(source), { type: "module" });
 * using supervision = supervise(worker, port);
 *
 * supervision.terminate();
 * console.log(await supervision.failed); // { signal: "terminate", cause: undefined, marked: true }
 * try {
 *   port.read();
 * } catch (error) {
 *   console.log(error instanceof PeerFailedError && error.reason); // "peer.terminated"
 * }
 * ```
 */
export function supervise(
  worker: WorkerLike,
  endpoints: Supervised | readonly Supervised[],
  options: SuperviseOptions = {},
): Supervision {
  const list = "segment" in endpoints ? [endpoints] : endpoints;
  if (list.length === 0) throw new TypeError("Cannot supervise: there are no endpoints to mark");
  return new Supervision(worker, list, options.lock);
}

function placeOf(each: Supervised): Place {
  const { segment } = each;
  const index = "index" in each ? each.index : each.peerIndex;
  requireInteger("index", index, 0, segment.endpointCount - 1);
  return { segment, index, generation: generationOf(segment, index) };
}

/**
 * Holds a lock for as long as this worker lives, by which `supervise` finds any end of it. To be
 * awaited before the worker attaches its port. Returns false where the runtime has no Web Locks, as
 * Node 20 and Bun, in which an event tells `supervise` without them.
 *
 * @throws {TypeError} if another worker holds the lock: its name must be that of one worker's life.
 *
 * @example
 * ```ts
 * import { holdLife } from "@millrace/millrace/supervise";
 *
 * // Thread that makes the worker:
 * //   const lock = crypto.randomUUID();
 * //   worker.postMessage({ memory: port.memory, lock });
 * //   supervise(worker, port, { lock });
 * // Worker:
 * const lock = crypto.randomUUID(); // event.data.lock
 * await holdLife(lock);
 * // const port = Port.attach(event.data.memory);
 * ```
 */
export async function holdLife(lock: string): Promise<boolean> {
  const manager = locks();
  if (manager === undefined) return false;
  await new Promise<void>((resolve, reject) => {
    const hold = (granted: unknown) => {
      if (granted === null) throw new TypeError(`Cannot hold lock ${lock}: another worker has it`);
      resolve();
      return new Promise(() => {});
    };
    manager.request(lock, { ifAvailable: true }, hold).catch(reject);
  });
  return true;
}

/** The Web Locks of this runtime, as far as they are used here. */
interface Locks {
  request(
    name: string,
    options: { ifAvailable?: boolean; signal?: AbortSignal },
    callback: (lock: unknown) => unknown,
  ): Promise<unknown>;
}

function locks(): Locks | undefined {
  return (globalThis as { navigator?: { locks?: Locks } }).navigator?.locks;
}

/** Waits until somebody has attached to one of the endpoints. */
async function arrival(places: readonly Place[], signal: AbortSignal): Promise<void> {
  const vacant = ({ segment, index }: Place) => {
    const state = Atomics.load(recordOf(segment, index), ENDPOINT_STATE_WORD);
    return stateOf(state) === ENDPOINT_STATE_VACANT;
  };
  const { segment, index } = places[0]!;
  const words = recordOf(segment, index);
  const mechanism = defaultMechanism(segment);
  while (!signal.aborted) {
    // Who attaches rings the bell of its endpoint; the slice is for those of other endpoints.
    const bell = Atomics.load(words, ENDPOINT_BELL_WORD);
    if (!places.every(vacant)) return;
    await (mechanism.sleepAsync(words, ENDPOINT_BELL_WORD, bell, WAIT_SLICE_MS) ??
      new Promise<void>((resolve) => unref(setTimeout(resolve, WAIT_POLL_MS))));
  }
}

function recordOf(segment: Segment, index: number): Int32Array {
  return segment.words(recordOffset(index), ENDPOINT_RECORD_SIZE);
}
