/**
 * What a pool of workers is asked and says, as types.
 *
 * @module
 */

import type { HubCreateOptions } from "./hub.ts";
import type { WorkerLike } from "./supervise.ts";

/**
 * What a handler can ask about the task that it handles.
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
  /** Aborts when the task is given up, or when nobody can be answered any more. */
  readonly signal: AbortSignal;
}

/**
 * What handles tasks: a function of one value, which returns the result or a promise of it.
 *
 * @example
 * ```ts
 * import type { Handler } from "@millrace/millrace/pool";
 *
 * const twice: Handler = (n: number) => 2 * n;
 * console.log(typeof twice); // function
 * ```
 */
// deno-lint-ignore no-explicit-any -- What it takes and returns, its own type says.
export type Handler = (value: any, context: WorkContext) => any;

/**
 * One handler, or several by their names.
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
 * What a module of work is for whoever makes a pool of it: `typeof` of what `work` has returned.
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
export interface Work<H extends Handlers = Handlers> {
  /** What was given to `work`. */
  readonly handlers: H;
}

/**
 * The names of the handlers of some work: none where there is one handler alone.
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
 * The handler of some work that has a name, or the only one.
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
 * The types of some work, by the name of a handler.
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
  /** How it may be called. */
  readonly name: NamesOf<W>;
  /** What a task is. */
  readonly value: Parameters<HandlerOf<W, K>>[0];
  /** What comes of it. */
  readonly result: Awaited<ReturnType<HandlerOf<W, K>>>;
}

/**
 * How one task is run.
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
  /** Which handler, where there are several. */
  readonly name?: K | undefined;
  /** Gives the task up: one that waits is taken back, one that runs is told. */
  readonly signal?: AbortSignal | undefined;
  /** How often it is given to another worker when its worker has died of it. As of the pool. */
  readonly retry?: number | undefined;
}

/**
 * The options of a task, which must name a handler where there are several.
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
 * How many tasks are run.
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
  /** Whether results come in the order of their values. Default true; else as they are done. */
  readonly ordered?: boolean | undefined;
  /**
   * Most values that were taken and whose results were not. By default as many as the workers
   * have room for, and one more for each of them.
   */
  readonly most?: number | undefined;
}

/**
 * The options of many tasks, which must name a handler where there are several.
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
  /** Sends the worker what it needs to begin. */
  postMessage(message: unknown): void;
}

/**
 * How a pool works.
 *
 * @example
 * ```ts
 * import type { PoolOptions } from "@millrace/millrace/pool";
 *
 * // Always four workers, one task at each and none behind it.
 * const options: PoolOptions = { least: 4, most: 4, ahead: 0 };
 * console.log(options.ahead); // 0
 * ```
 */
export interface PoolOptions
  extends
    Pick<HubCreateOptions<unknown, unknown>, "codec" | "codecs" | "capacity" | "maxMessageSize"> {
  /** Workers that are there from the beginning, from 0. Default 1. */
  readonly least?: number | undefined;
  /** Workers that there may be, at most 255. Default: as many as the machine has processors. */
  readonly most?: number | undefined;
  /** Milliseconds for which tasks may be about to wait before a worker is added. Default 20. */
  readonly patience?: number | undefined;
  /** Milliseconds after which a worker without a task is ended, if more than `least`. 10,000. */
  readonly idle?: number | undefined;
  /** Tasks that a worker runs at a time: above 1 for handlers that mostly wait. Default 1. */
  readonly concurrency?: number | undefined;
  /**
   * Tasks that a worker has waiting behind those that it runs. By default so many as take it 4 ms
   * in all, as measured: hundreds of short ones, so that it never waits for the next, and none
   * behind one that takes longer, while another worker may be free for it sooner.
   */
  readonly ahead?: number | undefined;
  /**
   * How often a task is given to another worker when its worker has died while it ran: it is then
   * handled at least once, and maybe twice. Default 0: it is handled at most once, and rejects with
   * `pool.died`. A task that had not begun goes to another worker in any case.
   */
  readonly retry?: number | undefined;
  /**
   * Milliseconds that a task may go on after it was given up, behind which its worker is ended and
   * another one started. By default for ever.
   */
  readonly grace?: number | undefined;
  /** Milliseconds that a worker may take until it calls `work`. Default 30,000. */
  readonly startTimeout?: number | undefined;
  /** Is told how things stand while tasks come and go, at most every 100 ms. */
  readonly onprogress?: ((stats: PoolStats) => void) | undefined;
}

/**
 * How things stand with one worker of a pool.
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
  /** Whether it is there, or comes, or goes. */
  readonly state: "none" | "starting" | "ready" | "ending";
  /** Tasks that it has and has not answered. */
  readonly running: number;
  /** Tasks that it, and those before it in its place, have answered. */
  readonly done: number;
  /** Milliseconds that a task has taken lately, without waiting; 0 before the first. */
  readonly service: number;
  /** How many workers were in its place before. */
  readonly generation: number;
}

/**
 * How things stand with a pool.
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
  /** Tasks that workers have: those that run, and those ahead. */
  readonly running: number;
  /** Tasks that have a result. */
  readonly done: number;
  /** Tasks that were rejected, but for those given up. */
  readonly failed: number;
  /** Tasks that were given up by their signals, or by `abort`. */
  readonly cancelled: number;
  /** Workers that have died and were replaced. */
  readonly restarted: number;
  /** Milliseconds that a task has waited lately until a worker was given it. */
  readonly wait: number;
  /** Milliseconds that a task has taken lately, over all workers. */
  readonly service: number;
  /** Its workers, `most` of them. */
  readonly workers: readonly WorkerStats[];
}
