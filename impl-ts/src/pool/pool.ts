/**
 * A pool of workers: one of them handles each task, and a promise tells its result.
 *
 * @example
 * ```ts
 * import { Pool } from "@millrace/millrace/pool";
 *
 * // Usually a module of its own: new URL("./worker.ts", import.meta.url)
 * const library = import.meta.resolve("@millrace/millrace/pool");
 * const source = `import { work } from "${library}"; work((n) => 2 * n);`;
 * const url = URL.createObjectURL(new Blob([source], { type: "text/javascript" }));
 *
 * await using pool = new Pool(url, { most: 2 });
 * console.log(await pool.run(21)); // 42
 * for await (const n of pool.map([1, 2, 3])) console.log(n); // 2, then 4, then 6
 * ```
 *
 * @module
 */

import { requireOptions } from "../error.ts";
import { clearTimeout, now, setTimeout } from "../memory/clock.ts";
import { textOf } from "../call/callee.ts";
import { Hub, type HubOptions } from "../more/hub.ts";
import { layout } from "../memory/layout.ts";
import { requireInteger } from "../memory/plan.ts";
import type { WorkerEnd } from "../more/supervise.ts";
import { TIMER_MAX_MS } from "../wait/loop.ts";
import { processorCount } from "../wait/mechanism.ts";
import { PoolError } from "./error.ts";
import { recentMean } from "./work_gauge.ts";
import type { WorkSource } from "./worker_life.ts";
import { flow } from "./map.ts";
import { Place, type PlaceOwner } from "./place.ts";
import { wantsMore } from "./size.ts";
import { Task, TaskQueue } from "./task.ts";
import type {
  MapArguments,
  MapOptions,
  PoolOptions,
  PoolStats,
  RunArguments,
  RunOptions,
  TypesOf,
  Work,
} from "./types.ts";
import { ONLY } from "./work.ts";

export { PoolError, type PoolReason } from "./error.ts";
export type { WorkSource } from "./worker_life.ts";
export type { Carried, Lost } from "../call/carried.ts";
export type {
  CarriedBy,
  Handler,
  HandlerOf,
  Handlers,
  MapArguments,
  MapOptions,
  NamesOf,
  PoolOptions,
  PoolStats,
  PoolWorker,
  RunArguments,
  RunOptions,
  TypesOf,
  Work,
  WorkContext,
  WorkerStats,
} from "./types.ts";
export { work, type WorkOptions } from "./work.ts";

const DEFAULT_PATIENCE_MS = 20;
const DEFAULT_IDLE_MS = 10_000;
const DEFAULT_START_MS = 30_000;
/** Milliseconds between two calls of `onprogress`. */
const PROGRESS_MS = 100;
/** How many starts in a row may fail, and the milliseconds to wait after the first such failure. */
const START_COUNT_MAX = 3;
const START_PAUSE_MS = 100;

/**
 * Runs tasks in workers. All methods belong to the thread that created the pool.
 *
 * Each task is given to the worker that has the fewest tasks, and only that worker handles it. When
 * a worker dies, another one takes its place, and the tasks that it had not begun are given to
 * others. The task that it was running is rejected with `pool.died`, or run again if `retry` allows
 * that: such a task is handled at least once, and maybe twice.
 *
 * Until a pool is closed, its workers keep the process of Node and Deno alive.
 *
 * @typeParam W What the workers do: `typeof` the result of `work` that their module exports.
 *
 * @example
 * ```ts
 * import { Pool } from "@millrace/millrace/pool";
 *
 * const library = import.meta.resolve("@millrace/millrace/pool");
 * const source = `
 *   import { work } from "${library}";
 *   work({ upper: (text) => text.toUpperCase(), fail: () => { throw new RangeError("no"); } });
 * `;
 * const url = URL.createObjectURL(new Blob([source], { type: "text/javascript" }));
 * await using pool = new Pool(url, { least: 2, most: 2 });
 * console.log(await pool.run("hello", { name: "upper" })); // HELLO
 * const error = await pool.run(1, { name: "fail" }).catch((error) => error);
 * console.log(error.code, error.remoteName, error.message); // call.thrown RangeError no
 * console.log(pool.stats().done, pool.stats().failed); // 1 1
 * ```
 */
export class Pool<W = Work> {
  /** The name, which a bundler would shorten. @internal */
  static readonly name: string = "Pool";

  /** Called with the pool's state while tasks come and go; see the option of this name. */
  onprogress: ((stats: PoolStats) => void) | undefined;
  readonly #options: PoolOptions;
  readonly #places: Place[];
  readonly #hubs: Hub<unknown>[];
  readonly #queue = new TaskQueue();
  readonly #least: number;
  readonly #patience: number;
  readonly #idle: number;
  #done = 0;
  #failed = 0;
  #cancelled = 0;
  #restarted = 0;
  #wait = 0;
  /** The number of tasks whose promises are not settled. */
  #openCount = 0;
  /** Whether a worker has ever started, and how many starts have failed since the last that did. */
  #hasStarted = false;
  #startFailures = 0;
  /** The error for all further tasks, once the pool runs no more. */
  #refusal: PoolError | undefined;
  #isEnding = false;
  #closing: Promise<void> | undefined;
  /** Called when the pool may have become idle, or a worker has gone. */
  #whenIdle: (() => void) | undefined;
  /** The timer of the next review of the size; and whether the last review saw tasks waiting. */
  #sizing: unknown;
  #isPressed = false;
  #isDispatching = false;
  /** Since when reviews have seen tasks wait; and the number of sources that are held back. */
  #pressedSince: number | undefined;
  #heldBackCount = 0;
  #progress: unknown;

  /**
   * Creates a pool, and starts its first workers.
   *
   * @param source The URL of the module that calls `work`, or a function that creates a worker with
   * it.
   * @throws {RangeError} if an option is out of range.
   */
  constructor(source: WorkSource, options: PoolOptions = {}) {
    const { least = 1, patience = DEFAULT_PATIENCE_MS } = requireOptions(options);
    const { idle = DEFAULT_IDLE_MS } = options;
    const { most = Math.max(1, least, processorCount()), onprogress } = options;
    requirePoolOptions({ ...options, least, most });
    this.#options = options;
    this.#least = least;
    this.#patience = patience;
    this.#idle = idle;
    this.onprogress = onprogress;
    const hub = Hub.create<unknown>(most, hubOptionsOf(options));
    this.#hubs = [hub];
    const owner = this.#ownerOf(source);
    this.#places = hub.ports.map((port) => new Place(owner, port));
    for (let index = 0; index < least; index++) this.#places[index]!.start();
  }

  /**
   * Runs one task. It is given to the worker that has the fewest tasks, as soon as a worker has
   * room. The promise resolves with its result. It is rejected with a `CallError` if the handler
   * throws or the result cannot be encoded, with a `TypeError` if the value cannot be encoded, with
   * a `PoolError` if the task was not run to its end, and with the signal's reason if the signal
   * aborts.
   *
   * The value is encoded when the task is given to a worker; it must not change before that.
   */
  run<K extends TypesOf<W>["name"]>(
    value: TypesOf<W, K>["value"],
    ...[options]: RunArguments<W, K>
  ): Promise<TypesOf<W, K>["result"]> {
    return this.#begin(value, options).promise as Promise<TypesOf<W, K>["result"]>;
  }

  /**
   * Runs a task for each value of a source. Values are taken from the source only as there is room
   * for their tasks and for results that were not taken yet. Yields the results, in the order of
   * the values unless `ordered` is false. The first failure ends the loop. If the loop is left, the
   * unfinished tasks are given up.
   */
  map<K extends TypesOf<W>["name"]>(
    source: Iterable<TypesOf<W, K>["value"]> | AsyncIterable<TypesOf<W, K>["value"]>,
    ...[options = {}]: MapArguments<W, K>
  ): AsyncGenerator<TypesOf<W, K>["result"], void, void> {
    const { ordered = true, most, signal: outer, ...rest } = requireOptions(options as MapOptions);
    if (most !== undefined) requireInteger("most", most, 1);
    return flow(source, {
      ordered,
      signal: outer,
      hold: (on) => this.#heldBackCount += on ? 1 : -1,
      most: () => most ?? this.#roomForAll(),
      run: (value) => this.#begin(value, rest),
      giveUp: (task, reason) => this.#giveUp(task as Task, reason),
    }) as AsyncGenerator<TypesOf<W, K>["result"], void, void>;
  }

  /** The present state of the pool and its workers. */
  stats(): PoolStats {
    const workers = this.#places.map(({ state, given, done, service, generation }) => ({
      state,
      running: given.size,
      done,
      service,
      generation,
    }));
    return {
      waiting: this.#queue.size,
      running: workers.reduce((sum, { running }) => sum + running, 0),
      done: this.#done,
      failed: this.#failed,
      cancelled: this.#cancelled,
      restarted: this.#restarted,
      wait: this.#wait,
      service: this.#meanService(),
      workers,
    };
  }

  /** Accepts no more tasks, waits until all tasks have ended, and then ends the workers. */
  close(): Promise<void> {
    this.#refusal ??= new PoolError("pool.closed", "Cannot run task: the pool is closed");
    return this.#closing ??= this.#close();
  }

  /**
   * Accepts no more tasks, rejects all unfinished ones with `pool.aborted`, whose cause is
   * `reason`, and ends the workers. The promise settles when the workers are gone, or after a few
   * seconds at the latest.
   */
  abort(reason?: unknown): Promise<void> {
    this.#fail(new PoolError("pool.aborted", "The pool was aborted", { cause: reason }));
    return this.close();
  }

  /** Closes the pool; see `close`. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  #begin(value: unknown, options: RunOptions = {}): Task {
    const { name = ONLY, signal, retry = this.#options.retry ?? 0 } = requireOptions(options);
    const task = new Task(name, value, retry);
    if (this.#refusal || signal?.aborted) {
      task.isOver = true;
      task.reject(this.#refusal ?? signal!.reason);
    } else {
      if (signal !== undefined) {
        const abort = () => this.#giveUp(task, signal.reason);
        signal.addEventListener("abort", abort);
        task.release = () => signal.removeEventListener("abort", abort);
      }
      this.#openCount++;
      this.#queue.push(task);
      this.#dispatch();
    }
    return task;
  }

  /** Gives waiting tasks to workers, each to the one that has the fewest. */
  #dispatch(): void {
    // Application code that encodes a value may have run another task: the loop takes that one too.
    if (this.#isDispatching) return;
    this.#isDispatching = true;
    try {
      if (this.#queue.size > 0) this.#give();
    } finally {
      this.#isDispatching = false;
    }
    if (this.#queue.size > 0 && !this.#isPressed) this.#resize();
    if (this.onprogress !== undefined) this.#reportProgress();
  }

  #give(): void {
    const time = now();
    while (this.#queue.size > 0) {
      let best: Place | undefined;
      for (const place of this.#places) {
        if (place.room > 0 && (!best || place.given.size < best.given.size)) {
          best = place;
        }
      }
      if (!best) break;
      const task = this.#queue.shift()!;
      this.#wait = recentMean(this.#wait, Math.max(0, time - task.since));
      if (best.give(task)) continue;
      task.place = undefined;
      this.#queue.putBack([task]);
      best.endNow();
    }
    for (const place of this.#places) place.flush();
  }

  /** Rejects a task before its end. */
  #giveUp(task: Task, reason: unknown): void {
    if (task.isOver) return;
    this.#cancelled++;
    const { place } = task;
    if (!place) this.#queue.remove(task);
    this.#settle(task);
    task.reject(reason);
    // The task keeps its place at the worker until the worker reports its end.
    place?.giveUp(task);
    this.#wakeClose();
  }

  /** Notes that the promise of a task is settled. */
  #settle(task: Task): void {
    task.isOver = true;
    task.release?.();
    this.#openCount--;
  }

  /** Makes the object through which the places use the pool. */
  #ownerOf(source: WorkSource): PlaceOwner {
    const { concurrency = 1, ahead, grace = Infinity } = this.#options;
    const { startTimeout = DEFAULT_START_MS, maxMessageSize } = this.#options;
    return {
      source,
      concurrency,
      ahead,
      grace,
      startTimeout,
      maxMessageSize,
      workerReady: (place) => {
        this.#hasStarted = true;
        this.#startFailures = 0;
        place.idleSince = now();
        this.#pressedSince = undefined;
        this.#dispatch();
        this.#resize();
        this.#wakeClose(); // a task whose value cannot be encoded has ended here
      },
      takeAnswer: (task, hasFailed, value) => this.#takeAnswer(task, hasFailed, value),
      giveMore: (place) => this.#giveMore(place),
      takeLost: (begun, others, cause) => this.#takeLost(begun, others, cause),
      workerGone: (hasCome, hasDied, end) => void this.#workerGone(hasCome, hasDied, end),
      replacePort: () => {
        const hub = Hub.create<unknown>(1, hubOptionsOf(this.#options));
        this.#hubs.push(hub);
        return hub.ports[0]!;
      },
    };
  }

  #takeAnswer(task: Task, hasFailed: boolean, value: unknown): void {
    if (task.isOver) return;
    this.#settle(task);
    if (hasFailed) {
      this.#failed++;
      task.reject(value);
    } else {
      this.#done++;
      task.resolve(value);
    }
  }

  /** Called after a worker has answered some tasks: it has room again. */
  #giveMore(place: Place): void {
    this.#dispatch();
    if (place.given.size === 0) {
      place.idleSince = now();
      if (this.#sizing === undefined) this.#resize();
    }
    this.#wakeClose();
  }

  #takeLost(begun: readonly Task[], others: readonly Task[], cause: unknown): void {
    const again: Task[] = [];
    for (const task of begun) {
      if (task.isOver) continue;
      if (task.retry > 0) {
        task.retry--;
        again.push(task);
        continue;
      }
      this.#settle(task);
      this.#failed++;
      task.reject(new PoolError("pool.died", "The worker died while it ran the task", { cause }));
    }
    again.push(...others.filter(({ isOver }) => !isOver));
    const time = now();
    for (const task of again) {
      task.place = undefined;
      task.since = time;
    }
    this.#queue.putBack(again);
    this.#dispatch();
    this.#wakeClose();
  }

  /** A worker is gone: another one may be needed. */
  async #workerGone(hasCome: boolean, hasDied: boolean, { cause }: WorkerEnd): Promise<void> {
    if (this.#isEnding) return this.#wakeClose();
    if (hasCome) {
      if (hasDied) this.#restarted++;
    } else if (++this.#startFailures >= START_COUNT_MAX || !this.#hasStarted) {
      const isAlone = this.#places.every(({ state }) => state !== "ready");
      if (isAlone) {
        const why = cause ?? new Error(`it has not called work() in time, or has ended by itself`);
        const text = `Cannot start worker: ${textOf(why)}`;
        return this.#fail(new PoolError("pool.start", text, { cause: why }));
      }
    }
    if (!hasCome) {
      await new Promise((resolve) => setTimeout(resolve, START_PAUSE_MS * this.#startFailures));
    }
    this.#resize();
  }

  /** Starts or ends workers as needed, and sets a timer for the next review. */
  #resize(): void {
    if (this.#isEnding) return;
    clearTimeout(this.#sizing as number);
    this.#sizing = undefined;
    const time = now();
    let [count, starting] = [0, 0];
    for (const { state } of this.#places) {
      if (state === "starting" || state === "ready") count++;
      if (state === "starting") starting++;
    }
    const { first, size: waiting } = this.#queue;
    this.#pressedSince = first ? this.#pressedSince ?? time : undefined;
    // If a source is held back, the values that it has not given yet wait as well.
    const since = this.#heldBackCount > 0 ? this.#pressedSince : first?.since;
    const oldest = time - (since ?? time);
    const service = this.#meanService();
    const pressure = { waiting, oldest, service, workers: count, starting };
    const vacant = this.#places.find(({ state }) => state === "none");
    const isWanted = count < this.#least || wantsMore(pressure, this.#patience);
    const isStarting = starting > 0 || (isWanted && vacant !== undefined);
    if (isWanted && vacant) vacant.start();
    else if (count > this.#least) this.#shrink(time);
    this.#isPressed = waiting > 0;
    // The next review is not at each task, but when a worker comes or goes, or by this timer.
    const again = waiting > 0 ? Math.max(1, this.#patience - oldest) : this.#idle / 2;
    const isOpen = waiting > 0 ? vacant !== undefined && !isStarting : count > this.#least;
    if (!isOpen) return;
    this.#sizing = setTimeout(() => this.#resize(), Math.min(again, TIMER_MAX_MS));
  }

  /** Ends the worker that has been idle the longest, if that is long enough. */
  #shrink(now: number): void {
    let best: Place | undefined;
    for (const place of this.#places) {
      const { state, given, idleSince } = place;
      if (state !== "ready" || given.size > 0 || now - idleSince < this.#idle) continue;
      if (!best || idleSince <= best.idleSince) best = place;
    }
    best?.end();
  }

  /** The number of tasks that all workers have room for, plus one for each worker. */
  #roomForAll(): number {
    let sum = 0;
    for (const place of this.#places) {
      if (place.state === "ready") sum += place.capacity + 1;
    }
    return Math.max(sum, 1);
  }

  #meanService(): number {
    let [sum, count] = [0, 0];
    for (const { service } of this.#places) {
      if (service === 0) continue;
      sum += service;
      count++;
    }
    return count === 0 ? 0 : sum / count;
  }

  /** Runs no more tasks, because of this error. */
  #fail(error: PoolError): void {
    this.#refusal = error;
    const isAbort = error.code === "pool.aborted";
    const tasks: Task[] = [];
    for (let task; (task = this.#queue.shift());) tasks.push(task);
    for (const { given } of this.#places) tasks.push(...given.values());
    for (const task of tasks) {
      if (task.isOver) continue;
      this.#settle(task);
      if (isAbort) this.#cancelled++;
      else this.#failed++;
      task.reject(error);
    }
    this.#end();
    this.#wakeClose();
  }

  /** Ends all workers. */
  #end(): void {
    this.#isEnding = true;
    clearTimeout(this.#sizing as number);
    for (const place of this.#places) place.end();
  }

  async #close(): Promise<void> {
    const idle = () => this.#openCount === 0;
    while (!idle()) await new Promise<void>((resolve) => this.#whenIdle = resolve);
    this.#end();
    const gone = () => this.#places.every(({ state }) => state === "none");
    while (!gone()) await new Promise<void>((resolve) => this.#whenIdle = resolve);
    clearTimeout(this.#progress as number);
    for (const hub of this.#hubs) hub.close();
  }

  /** Lets the pending `close` check again whether it is done. */
  #wakeClose(): void {
    this.#whenIdle?.();
    this.#whenIdle = undefined;
  }

  #reportProgress(): void {
    this.#progress ??= setTimeout(() => {
      this.#progress = undefined;
      this.onprogress?.(this.stats());
    }, PROGRESS_MS);
  }
}

function hubOptionsOf(options: PoolOptions): HubOptions<unknown, unknown> {
  const { codec, codecs, capacity, maxMessageSize } = options;
  return { codec, codecs, capacity, maxMessageSize, inboxCount: 0 } as HubOptions<unknown, unknown>;
}

function requirePoolOptions(options: PoolOptions & { least: number; most: number }): void {
  const { least, most, concurrency = 1, ahead = 0, retry = 0 } = options;
  const { patience = 0, idle = 0, grace = 0, startTimeout = 0 } = options;
  requireInteger("most", most, 1, layout.ENDPOINT_COUNT_MAX - 1);
  requireInteger("least", least, 0, most);
  requireInteger("concurrency", concurrency, 1, layout.CALL_UNDER_WAY_MAX / 2);
  requireInteger("ahead", ahead, 0, layout.CALL_UNDER_WAY_MAX / 2);
  requireInteger("retry", retry, 0);
  for (const [name, ms] of Object.entries({ patience, idle, grace, startTimeout })) {
    if (!(ms >= 0)) throw new RangeError(`${name} must be 0 or more: ${ms}`);
  }
}
