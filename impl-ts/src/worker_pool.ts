/**
 * Work for many workers: each task is handled by one of them, and what comes of it is a promise.
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

import { Hub, type HubOptions } from "./hub.ts";
import { CALL_UNDER_WAY_MAX, ENDPOINT_COUNT_MAX } from "./layout.ts";
import { requireInteger } from "./segment_geometry.ts";
import type { WorkerEnd } from "./supervise.ts";
import { processorCount } from "./wait.ts";
import { PoolError } from "./worker_pool_error.ts";
import { latest } from "./worker_pool_gauge.ts";
import type { WorkSource } from "./worker_pool_life.ts";
import { flow } from "./worker_pool_map.ts";
import { Place, type PlaceOwner } from "./worker_pool_place.ts";
import { wantsMore } from "./worker_pool_size.ts";
import { Task, TaskQueue } from "./worker_pool_task.ts";
import type { MapArguments, MapOptions, PoolOptions, PoolStats } from "./worker_pool_types.ts";
import type { RunArguments, RunOptions, TypesOf, Work } from "./worker_pool_types.ts";
import { ONLY } from "./worker_pool_work.ts";

export { PoolError, type PoolReason } from "./worker_pool_error.ts";
export type { WorkSource } from "./worker_pool_life.ts";
export type {
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
} from "./worker_pool_types.ts";
export { work, type WorkOptions } from "./worker_pool_work.ts";

const DEFAULT_PATIENCE_MS = 20;
const DEFAULT_IDLE_MS = 10_000;
const DEFAULT_START_MS = 30_000;
/** Milliseconds between two calls of `onprogress`. */
const PROGRESS_MS = 100;
/** Starts that may fail one behind the other, and milliseconds before the next. */
const START_COUNT_MAX = 3;
const START_PAUSE_MS = 100;

/**
 * Runs tasks in workers. All methods belong to the thread that made it.
 *
 * A task is given to the worker that has the fewest, and handled by that one alone. When a worker
 * dies, another one comes in its place, and what it had not begun is given to others. The task on
 * which it has died rejects with `pool.died`, or is run again where `retry` allows it: it is then
 * handled at least once, and maybe twice.
 *
 * A pool that is not closed keeps the process of Node and Deno alive, by its workers.
 *
 * @typeParam W What the workers do: `typeof` of what their module exports of `work`.
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
  /** Is told how things stand while tasks come and go; see the option. */
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
  /** Tasks whose promises are not settled. */
  #openCount = 0;
  /** Whether any worker has come, and how many starts have failed since one has. */
  #hasStarted = false;
  #startFailures = 0;
  /** Why nothing more is run. */
  #refusal: PoolError | undefined;
  #isEnding = false;
  #closing: Promise<void> | undefined;
  /** Is called when nothing is under way. */
  #whenIdle: (() => void) | undefined;
  /** Has the size looked at again; and whether that is known while tasks wait. */
  #sizing: unknown;
  #isPressed = false;
  #isDispatching = false;
  /** Since when tasks wait, as far as it was looked at; and how many sources are held back. */
  #pressedSince: number | undefined;
  #heldBackCount = 0;
  #progress: unknown;

  /**
   * Makes a pool, and starts its first workers.
   *
   * @param source The module whose workers call `work`, or what makes a worker with it.
   * @throws {RangeError} if an option is out of its range.
   */
  constructor(source: WorkSource, options: PoolOptions = {}) {
    const { least = 1, patience = DEFAULT_PATIENCE_MS, idle = DEFAULT_IDLE_MS } = options;
    const { most = Math.max(1, least, processorCount()), onprogress } = options;
    requireOptions({ ...options, least, most });
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
   * Runs one task: gives it to the worker that has the fewest, as soon as one has room, and settles
   * with its result. It rejects with a `CallError` if the handler throws, or the result cannot be
   * carried; with a `TypeError` if the value cannot; with a `PoolError` if it was not run to its
   * end; and with the reason of the signal.
   *
   * The value is encoded when it is given to a worker: it must not change before.
   */
  run<K extends TypesOf<W>["name"]>(
    value: TypesOf<W, K>["value"],
    ...[options]: RunArguments<W, K>
  ): Promise<TypesOf<W, K>["result"]> {
    return this.#begin(value, options).promise as Promise<TypesOf<W, K>["result"]>;
  }

  /**
   * Runs a task for each value of a source, of which only so many are taken as there is room for,
   * also where results are not. Gives their results, in the order of the values unless `ordered` is
   * false. The first failure ends the loop; where it is left, what was not done is given up.
   */
  map<K extends TypesOf<W>["name"]>(
    source: Iterable<TypesOf<W, K>["value"]> | AsyncIterable<TypesOf<W, K>["value"]>,
    ...[options = {}]: MapArguments<W, K>
  ): AsyncGenerator<TypesOf<W, K>["result"], void, void> {
    const { ordered = true, most, signal: outer, ...rest } = options as MapOptions;
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

  /** How things stand. */
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

  /** Takes no more tasks, waits until all that there are have ended, and ends the workers. */
  close(): Promise<void> {
    this.#refusal ??= new PoolError("pool.closed", "Cannot run task: the pool is closed");
    return this.#closing ??= this.#close();
  }

  /**
   * Takes no more tasks, rejects all that there are with `pool.aborted`, whose cause is the reason,
   * and ends the workers. Settles when they are gone, or at the latest in a few seconds.
   */
  abort(reason?: unknown): Promise<void> {
    this.#fail(new PoolError("pool.aborted", "The pool was aborted", { cause: reason }));
    return this.close();
  }

  /** The same as `close`. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  #begin(value: unknown, options: RunOptions = {}): Task {
    const { name = ONLY, signal, retry = this.#options.retry ?? 0 } = options;
    const task = new Task(name, value, retry);
    if (this.#refusal !== undefined || signal?.aborted) {
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

  /** Gives what waits to workers, each time to the one that has the fewest. */
  #dispatch(): void {
    // Code of the application's that encodes a value may have run a task: it goes with the others.
    if (this.#isDispatching) return;
    this.#isDispatching = true;
    try {
      if (this.#queue.size > 0) this.#give();
    } finally {
      this.#isDispatching = false;
    }
    if (this.#queue.size > 0 && !this.#isPressed) this.#size();
    if (this.onprogress !== undefined) this.#tell();
  }

  #give(): void {
    const now = performance.now();
    while (this.#queue.size > 0) {
      let best: Place | undefined;
      for (const place of this.#places) {
        if (place.room > 0 && (best === undefined || place.given.size < best.given.size)) {
          best = place;
        }
      }
      if (best === undefined) break;
      const task = this.#queue.shift()!;
      this.#wait = latest(this.#wait, Math.max(0, now - task.since));
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
    if (place === undefined) this.#queue.remove(task);
    this.#settle(task);
    task.reject(reason);
    // It has its place at the worker until that says that it has ended.
    place?.giveUp(task);
    this.#look();
  }

  /** Nobody waits for a task any more. */
  #settle(task: Task): void {
    task.isOver = true;
    task.release?.();
    this.#openCount--;
  }

  /** What the places need. */
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
      comeTo: (place) => {
        this.#hasStarted = true;
        this.#startFailures = 0;
        place.idleSince = performance.now();
        this.#pressedSince = undefined;
        this.#dispatch();
        this.#size();
        this.#look(); // a value that cannot be sent ends its task here
      },
      takeAnswer: (task, hasFailed, value) => this.#takeAnswer(task, hasFailed, value),
      goOn: (place) => this.#goOn(place),
      takeLost: (begun, others, cause) => this.#takeLost(begun, others, cause),
      leave: (hasCome, hasDied, end) => void this.#leave(hasCome, hasDied, end),
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

  /** Behind some answers of a worker: it has room. */
  #goOn(place: Place): void {
    this.#dispatch();
    if (place.given.size === 0) {
      place.idleSince = performance.now();
      if (this.#sizing === undefined) this.#size();
    }
    this.#look();
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
    const now = performance.now();
    for (const task of again) {
      task.place = undefined;
      task.since = now;
    }
    this.#queue.putBack(again);
    this.#dispatch();
    this.#look();
  }

  /** A worker is gone: another one may be needed. */
  async #leave(hasCome: boolean, hasDied: boolean, { cause }: WorkerEnd): Promise<void> {
    if (this.#isEnding) return this.#look();
    if (hasCome) {
      if (hasDied) this.#restarted++;
    } else if (++this.#startFailures >= START_COUNT_MAX || !this.#hasStarted) {
      const isAlone = this.#places.every(({ state }) => state !== "ready");
      if (isAlone) {
        const why = cause ?? new Error(`it has not called work() in time, or has ended by itself`);
        const text = `Cannot start worker: ${why instanceof Error ? why.message : String(why)}`;
        return this.#fail(new PoolError("pool.start", text, { cause: why }));
      }
    }
    if (!hasCome) {
      await new Promise((resolve) => setTimeout(resolve, START_PAUSE_MS * this.#startFailures));
    }
    this.#size();
  }

  /** Starts or ends workers, as many as it takes now, and sees to it that it is looked at again. */
  #size(): void {
    if (this.#isEnding) return;
    clearTimeout(this.#sizing as number);
    this.#sizing = undefined;
    const now = performance.now();
    let [count, starting] = [0, 0];
    for (const { state } of this.#places) {
      if (state === "starting" || state === "ready") count++;
      if (state === "starting") starting++;
    }
    const { first, size: waiting } = this.#queue;
    this.#pressedSince = first === undefined ? undefined : this.#pressedSince ?? now;
    // What a source that is held back has not given yet waits as well.
    const since = this.#heldBackCount > 0 ? this.#pressedSince : first?.since;
    const oldest = now - (since ?? now);
    const service = this.#meanService();
    const pressure = { waiting, oldest, service, workers: count, starting };
    const vacant = this.#places.find(({ state }) => state === "none");
    const isWanted = count < this.#least || wantsMore(pressure, this.#patience);
    const isStarting = starting > 0 || (isWanted && vacant !== undefined);
    if (isWanted && vacant !== undefined) vacant.start();
    else if (count > this.#least) this.#shrink(now);
    this.#isPressed = waiting > 0;
    // Not for each task: it is looked at again when a worker comes or goes, or by this timer.
    const again = waiting > 0 ? Math.max(1, this.#patience - oldest) : this.#idle / 2;
    const isOpen = waiting > 0 ? vacant !== undefined && !isStarting : count > this.#least;
    if (isOpen) this.#sizing = setTimeout(() => this.#size(), again);
  }

  /** Ends the worker that has had nothing to do for the longest time, if that is long enough. */
  #shrink(now: number): void {
    let best: Place | undefined;
    for (const place of this.#places) {
      const { state, given, idleSince } = place;
      if (state !== "ready" || given.size > 0 || now - idleSince < this.#idle) continue;
      if (best === undefined || idleSince <= best.idleSince) best = place;
    }
    best?.end();
  }

  /** How many tasks all workers have room for, and one more for each. */
  #roomForAll(): number {
    let sum = 0;
    for (const place of this.#places) {
      if (place.state === "ready") sum += place.most + 1;
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

  /** Runs nothing more, for this reason. */
  #fail(error: PoolError): void {
    this.#refusal = error;
    const isAbort = error.code === "pool.aborted";
    const tasks: Task[] = [];
    for (let task; (task = this.#queue.shift()) !== undefined;) tasks.push(task);
    for (const { given } of this.#places) tasks.push(...given.values());
    for (const task of tasks) {
      if (task.isOver) continue;
      this.#settle(task);
      if (isAbort) this.#cancelled++;
      else this.#failed++;
      task.reject(error);
    }
    this.#end();
    this.#look();
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

  /** Whoever waits for the end looks again. */
  #look(): void {
    this.#whenIdle?.();
    this.#whenIdle = undefined;
  }

  #tell(): void {
    this.#progress ??= setTimeout(() => {
      this.#progress = undefined;
      this.onprogress?.(this.stats());
    }, PROGRESS_MS);
  }
}

function hubOptionsOf(options: PoolOptions): HubOptions<unknown, unknown> {
  const { codec, codecs, capacity, maxMessageSize } = options;
  return { codec, codecs, capacity, maxMessageSize } as HubOptions<unknown, unknown>;
}

function requireOptions(options: PoolOptions & { least: number; most: number }): void {
  const { least, most, concurrency = 1, ahead = 0, retry = 0 } = options;
  const { patience = 0, idle = 0, grace = 0, startTimeout = 0 } = options;
  requireInteger("most", most, 1, ENDPOINT_COUNT_MAX - 1);
  requireInteger("least", least, 0, most);
  requireInteger("concurrency", concurrency, 1, CALL_UNDER_WAY_MAX / 2);
  requireInteger("ahead", ahead, 0, CALL_UNDER_WAY_MAX / 2);
  requireInteger("retry", retry, 0);
  for (const [name, ms] of Object.entries({ patience, idle, grace, startTimeout })) {
    if (!(ms >= 0)) throw new RangeError(`${name} must be 0 or more: ${ms}`);
  }
}
