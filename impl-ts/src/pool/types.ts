/**
 * The types of a pool's options, tasks and reports.
 *
 * @module
 */

import type { Carried } from "../call/carried.ts";
import type { HubCreateOptions } from "../more/hub.ts";
import type { WorkerLike } from "../more/supervise.ts";

/**
 * What a handler can learn about the task that it handles.
 *
 * @example
 * ```ts
 * import { work, type WorkContext } from "@millrace/millrace/pool";
 *
 * async function load(url: string, { signal }: WorkContext): Promise<string> {
 *   return await (await fetch(url, { signal })).text();
 * }
 * console.log(typeof work(load)); // object
 * ```
 */
export interface WorkContext {
  /** Aborts when the task is given up, or when the pool is gone and no answer can reach it. */
  readonly signal: AbortSignal;
}

/**
 * Handles tasks: a function of one value that returns the result or a promise of it.
 *
 * @example
 * ```ts
 * import type { Handler } from "@millrace/millrace/pool";
 *
 * const twice: Handler = (n: number) => 2 * n;
 * console.log(typeof twice); // function
 * ```
 */
// deno-lint-ignore no-explicit-any -- The handler's own type says what it takes and returns.
export type Handler = (value: any, context: WorkContext) => any;

/**
 * A single handler, or several by their names.
 *
 * @example
 * ```ts
 * import type { Handlers } from "@millrace/millrace/pool";
 *
 * const both: Handlers = { twice: (n: number) => 2 * n, half: (n: number) => n / 2 };
 * console.log(Object.keys(both).join()); // twice,half
 * ```
 */
export type Handlers = Handler | { readonly [name: string]: Handler };

/**
 * The type of a worker's module, for the thread that creates the pool: `typeof` the result of
 * `work`.
 *
 * @example
 * ```ts
 * import { type Work, work } from "@millrace/millrace/pool";
 *
 * const twice = (n: number) => 2 * n;
 * const module: Work<typeof twice> = work(twice); // in a module of its own: export default
 * console.log(module.handlers === twice); // true
 * ```
 */
export interface Work<H extends Handlers = Handlers, Any extends boolean = boolean> {
  /** The handlers that were given to `work`. */
  readonly handlers: H;
  /** Whether the worker has a codec of its own, so that values and results may be anything. */
  readonly hasCodec: Any;
}

/**
 * The names of a module's handlers; none if it has a single handler.
 *
 * @example
 * ```ts
 * import type { NamesOf, Work } from "@millrace/millrace/pool";
 *
 * const name: NamesOf<Work<{ twice(n: number): number }>> = "twice";
 * console.log(name); // twice
 * ```
 */
export type NamesOf<W> = W extends Work<infer H> ? H extends Handler ? "" : keyof H & string
  : string;

/**
 * The handler with this name, or the single one.
 *
 * @example
 * ```ts
 * import type { HandlerOf, Work } from "@millrace/millrace/pool";
 *
 * const twice: HandlerOf<Work<{ twice(n: number): number }>, "twice"> = (n) => 2 * n;
 * console.log(twice(21)); // 42
 * ```
 */
export type HandlerOf<W, K> = W extends Work<infer H>
  ? H extends Handler ? H : K extends keyof H ? H[K] : Handler
  : Handler;

/**
 * A type of values or results, if the workers carry them; otherwise a text that says what they do
 * not carry. Workers with a codec of their own may carry anything.
 *
 * @example
 * ```ts
 * import { cbor } from "@millrace/millrace/cbor";
 * import { type CarriedBy, work } from "@millrace/millrace/pool";
 *
 * const module = work((ids: Set<number>) => ids.size, { codec: cbor });
 * const ids: CarriedBy<typeof module, Set<number>> = new Set([1]);
 * console.log(ids.size); // 1
 * ```
 */
export type CarriedBy<W, T> = W extends { readonly hasCodec: false } ? Carried<T> : T;

/**
 * The types of a module's tasks, by the name of a handler.
 *
 * @example
 * ```ts
 * import type { TypesOf, Work } from "@millrace/millrace/pool";
 *
 * type Sizes = Work<{ sizeOf(text: string): Promise<number> }>;
 * const size: TypesOf<Sizes, "sizeOf">["result"] = 3;
 * console.log(size); // 3
 * ```
 */
export interface TypesOf<W, K = NamesOf<W>> {
  /** The names by which tasks choose a handler. */
  readonly name: NamesOf<W>;
  /** The type of a task's value. */
  readonly value: CarriedBy<W, Parameters<HandlerOf<W, K>>[0]>;
  /** The type of a task's result. */
  readonly result: CarriedBy<W, Awaited<ReturnType<HandlerOf<W, K>>>>;
}

/**
 * Options of one task.
 *
 * @example
 * ```ts
 * import type { RunOptions } from "@millrace/millrace/pool";
 *
 * // Once more, if its worker dies of it, and not for longer than a second.
 * const options: RunOptions = { retry: 1, signal: AbortSignal.timeout(1000) };
 * console.log(options.retry); // 1
 * ```
 */
export interface RunOptions<K extends string = string> {
  /** The name of the handler, if there are several. */
  readonly name?: K | undefined;
  /** Gives the task up when it aborts: a waiting task is taken back, a running one is told. */
  readonly signal?: AbortSignal | undefined;
  /**
   * How often the task is given to another worker after its worker died of it. Default: the pool's.
   */
  readonly retry?: number | undefined;
}

/**
 * The options argument of `run`, which must name a handler if there are several.
 *
 * @example
 * ```ts
 * import type { RunArguments, Work } from "@millrace/millrace/pool";
 *
 * const none: RunArguments<Work<(n: number) => number>, ""> = [];
 * const named: RunArguments<Work<{ twice(n: number): number }>, "twice"> = [{ name: "twice" }];
 * console.log(none.length, named[0].name); // 0 twice
 * ```
 */
export type RunArguments<W, K extends string> = W extends Work<infer H>
  ? H extends Handler ? [options?: RunOptions<K>] : [options: RunOptions<K> & { readonly name: K }]
  : [options?: RunOptions<K>];

/**
 * Options of `map`.
 *
 * @example
 * ```ts
 * import type { MapOptions } from "@millrace/millrace/pool";
 *
 * const options: MapOptions = { ordered: false, most: 100 };
 * console.log(options.most); // 100
 * ```
 */
export interface MapOptions<K extends string = string> extends RunOptions<K> {
  /**
   * Whether results come in the order of their values. Default true; otherwise as they are done.
   */
  readonly ordered?: boolean | undefined;
  /**
   * The most values that are taken from the source while their results are not taken. Default: as
   * many as the workers have room for, plus one for each worker.
   */
  readonly most?: number | undefined;
}

/**
 * The options argument of `map`, which must name a handler if there are several.
 *
 * @example
 * ```ts
 * import type { MapArguments, Work } from "@millrace/millrace/pool";
 *
 * const any: MapArguments<Work<(n: number) => number>, ""> = [{ ordered: false }];
 * console.log(any[0]?.ordered); // false
 * ```
 */
export type MapArguments<W, K extends string> = W extends Work<infer H>
  ? H extends Handler ? [options?: MapOptions<K>] : [options: MapOptions<K> & { readonly name: K }]
  : [options?: MapOptions<K>];

/**
 * A worker as a pool needs it: a web `Worker`, or one of `node:worker_threads`.
 *
 * @example
 * ```ts
 * import type { PoolWorker } from "@millrace/millrace/pool";
 *
 * // Bundlers find the worker's module by such an expression.
 * const make = (): PoolWorker =>
 *   new Worker(new URL("./worker.js", import.meta.url), { type: "module" });
 * console.log(typeof make); // function
 * ```
 */
export interface PoolWorker extends WorkerLike {
  /** Sends the worker the message with which it begins. */
  postMessage(message: unknown): void;
}

/**
 * Options of a pool.
 *
 * @example
 * ```ts
 * import type { PoolOptions } from "@millrace/millrace/pool";
 *
 * // Always four workers, one task at each and none waiting.
 * const options: PoolOptions = { least: 4, most: 4, ahead: 0 };
 * console.log(options.ahead); // 0
 * ```
 */
export interface PoolOptions
  extends
    Pick<HubCreateOptions<unknown, unknown>, "codec" | "codecs" | "capacity" | "maxMessageSize"> {
  /** Workers that are started at once and kept, from 0. Default 1. */
  readonly least?: number | undefined;
  /** The most workers, up to 255. Default: the number of processors. */
  readonly most?: number | undefined;
  /** Milliseconds that tasks may be expected to wait before a worker is added. Default 20. */
  readonly patience?: number | undefined;
  /** Milliseconds after which an idle worker above `least` is ended. Default 10,000. */
  readonly idle?: number | undefined;
  /** Tasks that a worker runs at a time. Above 1 suits handlers that mostly wait. Default 1. */
  readonly concurrency?: number | undefined;
  /**
   * Tasks that a worker may have waiting, besides the tasks that it runs. By default as many as
   * take it 4 ms in total, as measured: hundreds of short ones, so that it never waits for the
   * next; and none if tasks take longer, as another worker may be free for them sooner.
   */
  readonly ahead?: number | undefined;
  /**
   * How often a task is given to another worker when its worker has died while it ran. Such a task
   * is handled at least once, and maybe twice. Default 0: a task is handled at most once, and
   * rejected with `pool.died`. A task that had not begun is given to another worker in any case.
   */
  readonly retry?: number | undefined;
  /**
   * Milliseconds for which a task may go on after it was given up; then its worker is ended, and
   * another one started. Default: no limit.
   */
  readonly grace?: number | undefined;
  /** Milliseconds that a worker may take until it calls `work`. Default 30,000. */
  readonly startTimeout?: number | undefined;
  /** Called with the pool's state while tasks come and go, at most every 100 ms. */
  readonly onprogress?: ((stats: PoolStats) => void) | undefined;
}

/**
 * The state of one worker of a pool.
 *
 * @example
 * ```ts
 * import type { WorkerStats } from "@millrace/millrace/pool";
 *
 * const tell = ({ state, done, service }: WorkerStats) => `${state}: ${done}, ${service} ms each`;
 * const stats = { state: "ready", running: 0, done: 2, service: 1.5, generation: 0 } as const;
 * console.log(tell(stats)); // ready: 2, 1.5 ms each
 * ```
 */
export interface WorkerStats {
  /** Whether the worker is there, starting or ending; `none` if the place is empty. */
  readonly state: "none" | "starting" | "ready" | "ending";
  /** Tasks that it has and has not answered. */
  readonly running: number;
  /** Tasks that this worker and earlier ones in its place have answered. */
  readonly done: number;
  /** Recent mean time of a task in milliseconds, without its waiting; 0 before the first. */
  readonly service: number;
  /** How many workers were in its place before. */
  readonly generation: number;
}

/**
 * The state of a pool.
 *
 * @example
 * ```ts
 * import type { PoolStats } from "@millrace/millrace/pool";
 *
 * const left = ({ waiting, running }: PoolStats) => waiting + running;
 * console.log(typeof left); // function
 * ```
 */
export interface PoolStats {
  /** Tasks that no worker has yet. */
  readonly waiting: number;
  /** Tasks that workers have: the tasks that run, and the tasks that wait there. */
  readonly running: number;
  /** Tasks that have a result. */
  readonly done: number;
  /** Tasks that were rejected, except those that were given up. */
  readonly failed: number;
  /** Tasks that were given up because of their signal, or by `abort`. */
  readonly cancelled: number;
  /** Workers that have died and were replaced. */
  readonly restarted: number;
  /** Recent mean time in milliseconds that a task waited until it was given to a worker. */
  readonly wait: number;
  /** Recent mean time of a task in milliseconds, over all workers. */
  readonly service: number;
  /** Its places for workers, `most` of them. */
  readonly workers: readonly WorkerStats[];
}
