/**
 * Tells the peers of a worker that it is gone, and vacates its endpoint for the next worker. See
 * `spec/pipe.md`.
 *
 * @module
 */

import { requireOptions } from "../error.ts";
import { setTimeout } from "../memory/clock.ts";
import { layout } from "../memory/layout.ts";
import type { Segment } from "../memory/segment.ts";
import { recordOffset, requireInteger } from "../memory/plan.ts";
import type { PipeEnd } from "../pipe/options.ts";
import { defaultMechanism } from "../wait/mechanism.ts";
import { failEndpoint, generationOf, stateOf } from "../wait/state.ts";
import { unref } from "../wait/loop.ts";

/**
 * A worker, as far as it is used here: a web `Worker`, or one of `node:worker_threads`.
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
  /** Ends the worker. In Node it returns a promise, which resolves when the worker has ended. */
  terminate(): unknown;
  /** Web workers have it. */
  addEventListener?(type: string, listener: (event: Event) => void): void;
  /** Web workers have it. */
  removeEventListener?(type: string, listener: (event: Event) => void): void;
  /** Node's workers have it. */
  on?(type: string, listener: (value: unknown) => void): unknown;
  /** Node's workers have it. */
  off?(type: string, listener: (value: unknown) => void): unknown;
}

/**
 * An endpoint of the worker: the other side of a port that this thread has, or any endpoint by its
 * segment and index.
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
  | PipeEnd & { readonly segment: Segment }
  | { readonly segment: Segment; readonly index: number };

/**
 * Options of `supervise`.
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
   * The name of the lock that the worker holds while it lives. The worker must have awaited
   * `holdLife` before it attaches: a worker that attaches without holding the lock is taken for
   * dead.
   */
  readonly lock?: string | undefined;
}

/**
 * How the end of a worker was found, and whether that marked an endpoint.
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
   * What showed the end: `terminate` of the supervision, the worker's `error` event, its `exit`
   * event in Node or `close` event in Bun, or the `lock`, which the worker let go.
   */
  readonly signal: "terminate" | "error" | "exit" | "lock";
  /** The error or the exit code that came with the signal, if there is one. */
  readonly cause: unknown;
  /** Whether an endpoint was marked failed: false if the worker had closed all of them. */
  readonly marked: boolean;
}

/** The cause that is given in a browser, which says only that there was an error. */
const NOT_LOADED =
  "Cannot start worker: its script, or one that it imports, could not be loaded from its URL";

/** An endpoint of the worker, and its generation when the watching began. */
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
  /** The name, which a bundler would shorten. @internal */
  static readonly name: string = "Supervision";

  /**
   * Resolves once the worker is known to have ended and its endpoints are marked; it never rejects.
   * It stays pending if the watching is stopped before.
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
   * Ends the worker, and marks its endpoints failed: every call that waits for the worker, in any
   * thread, fails with a `PeerFailedError` whose reason is `peer.terminated`. The promise resolves
   * when the runtime says that the worker has ended, which only Node does; it need not be awaited.
   *
   * Deno ends a worker only when the worker returns to its event loop. So the mark also wakes a
   * worker that sleeps in a call of this library, with `pipe.failed`; one that blocks elsewhere
   * lives on.
   */
  async terminate(): Promise<void> {
    let ended: unknown;
    try {
      ended = this.#worker.terminate();
    } finally {
      // After `terminate`: where the runtime can, a worker that sleeps wakes up only to end.
      this.#end("terminate", undefined);
    }
    await ended;
  }

  /** Stops watching. The worker and its endpoints stay as they are, until `terminate` is called. */
  [Symbol.dispose](): void {
    this.#stop.abort();
    this.#unlisten();
  }

  /** Any signal but the first finds the states final and the promise settled. */
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
        // Without this, Deno would end the whole process too. The error is in `failed`.
        event.preventDefault();
        const { error, message } = event as Partial<ErrorEvent>;
        this.#end("error", error ?? message ?? new Error(NOT_LOADED));
      };
      // For Bun: its web workers have a `close` event for every end, and it has no Web Locks.
      const onClose = (event: Event) => this.#end("exit", (event as Partial<CloseEvent>).code);
      worker.addEventListener("error", onError);
      worker.addEventListener("close", onClose);
      this.#unlisten = () => {
        worker.removeEventListener?.("error", onError);
        worker.removeEventListener?.("close", onClose);
      };
    }
  }

  /** Asks for the lock once a worker has attached: by then it holds the lock. */
  async #watch(lock: string): Promise<void> {
    const { signal } = this.#stop;
    await arrival(this.#places, signal);
    try {
      await locks()?.request(lock, { signal }, () => {
        if (!signal.aborted) this.#end("lock", undefined);
      });
    } catch {
      // Aborted; or a page that may not use locks, a sandboxed one for instance: no different from
      // none.
    }
  }
}

/**
 * Watches a worker, and tells its peers when it is gone: its endpoints are marked failed, and every
 * call that waits for it, in any thread, fails at once with a `PeerFailedError` whose reason is
 * `peer.terminated`. Call it right after the worker is made.
 *
 * If the worker failed by an error that this thread knows, for instance because there is no script
 * at its URL, that error is the `cause` of what this thread's ports then throw.
 *
 * It finds these ends of a worker:
 *
 * - `terminate` of the returned object.
 * - An uncaught error of the worker. In a browser the worker lives on after one; this counts as its
 *   end all the same, and its own calls then fail with `pipe.failed`.
 * - Any end of a worker of Node or Bun.
 * - Where the runtime has Web Locks, any end of a worker that called `holdLife`, such as a bare
 *   `worker.terminate()` or `close()`, as soon as the runtime has carried it out. Chromium gives a
 *   worker that is blocked 2 s, Deno any time.
 *
 * Elsewhere, or without `holdLife`, a web worker that is ended in the last way gives no signal:
 * only the timeout of a call that waits for it finds that out. To find a worker that never
 * attaches, use `port.waitForPeer`.
 *
 * After `revive` the endpoint may have another worker, which is not marked for the end of this
 * one. Call `supervise` again for each worker, after `revive`. [segment.state_owner]
 *
 * Watching does not keep the event loop of Node alive. Any thread that has the worker may call
 * this, also for ends of ports of other threads, given as `{ segment, index }`.
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
  return new Supervision(worker, list, requireOptions(options).lock);
}

function placeOf(each: Supervised): Place {
  const { segment } = each;
  const index = "index" in each ? each.index : each.link.peer;
  requireInteger("index", index, 0, segment.endpointCount - 1);
  return { segment, index, generation: generationOf(segment, index) };
}

/**
 * Holds a lock for as long as this worker lives, by which `supervise` finds every end of the
 * worker. Await it before the worker attaches its port. Returns false if the runtime has no Web
 * Locks, as Node 20 and Bun; there an event tells `supervise`.
 *
 * @throws {TypeError} if another worker holds the lock: every worker needs a lock name of its own.
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

/** Waits until a worker has attached to one of the endpoints. */
async function arrival(places: readonly Place[], signal: AbortSignal): Promise<void> {
  const vacant = ({ segment, index }: Place) => {
    const state = Atomics.load(recordOf(segment, index), layout.ENDPOINT_STATE_WORD);
    return stateOf(state) === layout.ENDPOINT_STATE_VACANT;
  };
  const { segment, index } = places[0]!;
  const words = recordOf(segment, index);
  const mechanism = defaultMechanism(segment);
  while (!signal.aborted) {
    // An endpoint that attaches rings its own bell. The slice is for the other endpoints of the
    // list.
    const bell = Atomics.load(words, layout.ENDPOINT_BELL_WORD);
    if (!places.every(vacant)) return;
    await (mechanism.sleepAsync(words, layout.ENDPOINT_BELL_WORD, bell, layout.WAIT_SLICE_MS) ??
      new Promise<void>((resolve) => unref(setTimeout(resolve, layout.WAIT_POLL_MS))));
  }
}

function recordOf(segment: Segment, index: number): Int32Array {
  return segment.words(recordOffset(index), layout.ENDPOINT_RECORD_SIZE);
}
