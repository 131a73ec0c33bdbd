/**
 * Measures in isolation how long a handler takes, and how many messages it can handle in a second.
 * See `spec/meter.md`.
 *
 * @module
 */

import { microseconds } from "./clock.ts";
import { type Distribution, Tally } from "./tally.ts";
import { requireInteger } from "../memory/plan.ts";

/** Units of time in a microsecond. */
const SCALE = 10;

/**
 * The handler to measure: it is told of the start, gets each message, and is told of the finish.
 *
 * @example
 * ```ts
 * import type { Estimated } from "@millrace/millrace/meter";
 *
 * let table: Map<string, number>;
 * const words: Estimated<string> = {
 *   start: () => table = new Map(),
 *   message: (word) => table.set(word, (table.get(word) ?? 0) + 1),
 *   finish: () => console.log(table.size), // 1
 * };
 * words.start?.();
 * words.message("hello");
 * words.finish?.();
 * ```
 */
export interface Estimated<In> {
  /** Called before the first message. Its time is not measured. */
  start?(): unknown;
  /**
   * Called with each message. If it returns a promise, that is awaited as part of the service time.
   */
  message(value: In): unknown;
  /** Called after the last message. Its time is not measured. */
  finish?(): unknown;
}

/**
 * The source of the messages: a port or a reader.
 *
 * @example
 * ```ts
 * import { Port } from "@millrace/millrace";
 * import { writeMany } from "@millrace/millrace/many";
 * import { type EstimateSource, estimate } from "@millrace/millrace/meter";
 *
 * using here = Port.create<number>();
 * using there = Port.attach<number>(here.memory); // usually in another thread
 * const source: EstimateSource<number> = there;
 * writeMany(here, [1, 2, 3]);
 * console.log((await estimate(source, Math.sqrt, { count: 3 })).count); // 3
 * ```
 */
export interface EstimateSource<In> {
  /** Reads a message, as `Reader.readAsync` does. */
  readAsync(options?: { readonly signal?: AbortSignal | undefined }): Promise<In | undefined>;
  /** Whether the stream has ended, as `Reader.ended` says. */
  readonly ended: boolean;
}

/**
 * Options of `estimate`.
 *
 * @example
 * ```ts
 * import { Port } from "@millrace/millrace";
 * import { writeMany } from "@millrace/millrace/many";
 * import { type Estimate, estimate, type EstimateOptions } from "@millrace/millrace/meter";
 *
 * using results = Port.create<Estimate>();
 * using reader = Port.attach<Estimate>(results.memory); // usually in another thread
 * using here = Port.create<number>();
 * using there = Port.attach<number>(here.memory);
 * const options: EstimateOptions = { count: 2, output: results };
 * writeMany(here, [1, 2]);
 * await estimate(there, Math.sqrt, options);
 * console.log(reader.read()?.count); // 2
 * ```
 */
export interface EstimateOptions {
  /** The number of messages to measure, at least 1. */
  readonly count: number;
  /** A port or a writer, with a pipe of its own, to which the result is written. */
  readonly output?: { writeAsync(value: Estimate): Promise<void> } | undefined;
  /** A signal that ends the wait for a message with its reason. */
  readonly signal?: AbortSignal | undefined;
}

/**
 * The result of `estimate`, as plain data.
 *
 * @example
 * ```ts
 * import { Port } from "@millrace/millrace";
 * import { writeMany } from "@millrace/millrace/many";
 * import { type Estimate, estimate } from "@millrace/millrace/meter";
 *
 * using here = Port.create<number>();
 * using there = Port.attach<number>(here.memory); // usually in another thread
 * writeMany(here, [1, 2, 3, 4]);
 * const { count, service }: Estimate = await estimate(there, Math.sqrt, { count: 4 });
 * console.log(count, service.count); // 4 4
 * ```
 */
export interface Estimate {
  /** The number of messages handled; less than asked for if the stream has ended. */
  readonly count: number;
  /** Microseconds from the first message to the end of the last service. */
  readonly elapsed: number;
  /** Messages handled per second; the time of waiting for messages counts too. */
  readonly frequency: number;
  /** How long the handler took per message, in microseconds, without decoding. */
  readonly service: Distribution;
}

/**
 * Measures a handler over a number of messages: how long it takes for one, and how many it handles
 * per second. The handler is told of the start before the first message, and of the finish after
 * the last one, no matter which messages wait before or come later. The result is written to
 * `output`, before `finish` is called, and returned.
 *
 * To learn what the handler itself can do, put the messages into the ring beforehand; otherwise the
 * frequency is limited by their writer. If the stream ends early, the messages that have come
 * count.
 *
 * @throws {RangeError} if `count` is less than 1 or not an integer. It also throws what the handler
 * and `readAsync` throw.
 *
 * @example
 * ```ts
 * import { Port } from "@millrace/millrace";
 * import { writeMany } from "@millrace/millrace/many";
 * import { estimate } from "@millrace/millrace/meter";
 *
 * using here = Port.create<string>();
 * using there = Port.attach<string>(here.memory); // usually in another thread
 * writeMany(here, ["b", "a", "c"]);
 * const order: string[] = [];
 * const { count } = await estimate(there, {
 *   start: () => order.push("start"),
 *   message: (text) => order.push(text),
 *   finish: () => order.push("finish"),
 * }, { count: 2 });
 * console.log(count, order.join()); // 2 start,b,a,finish
 * ```
 */
export async function estimate<In>(
  source: EstimateSource<In>,
  handler: Estimated<In> | ((value: In) => unknown),
  { count, output, signal }: EstimateOptions,
): Promise<Estimate> {
  requireInteger("count", count, 1);
  const all: Estimated<In> = typeof handler === "function" ? { message: handler } : handler;
  await all.start?.();
  const service = new Tally(SCALE);
  let begin = 0;
  let end = 0;
  while (service.count < count) {
    const value = await source.readAsync({ signal });
    if (value === undefined && source.ended) break;
    const from = microseconds();
    if (service.count === 0) begin = from;
    const done = all.message(value as In);
    // Without a promise there is no `await`: a turn of the event loop is no part of the service
    // time.
    if (isPromise(done)) await done;
    end = microseconds();
    service.record(Math.max(0, end - from), 1);
  }
  const elapsed = Math.max(0, end - begin);
  const result: Estimate = {
    count: service.count,
    elapsed,
    frequency: elapsed === 0 ? 0 : service.count / elapsed * 1e6,
    service: service.distribution(),
  };
  await output?.writeAsync(result);
  await all.finish?.();
  return result;
}

function isPromise(value: unknown): value is PromiseLike<unknown> {
  return typeof (value as PromiseLike<unknown> | undefined | null)?.then === "function";
}
