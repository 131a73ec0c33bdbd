/**
 * How long a handler takes, and how many messages a second it can handle, measured in isolation.
 * See `spec/meter.md`.
 *
 * @module
 */

import { microseconds } from "./meter_clock.ts";
import { type Distribution, Tally } from "./meter_tally.ts";
import { requireInteger } from "./segment_geometry.ts";

/** Units of a microsecond. */
const SCALE = 10;

/**
 * What is measured: is told that it begins, gets each message, and is told that it is over.
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
  /** Called before the first message, and not measured. */
  start?(): unknown;
  /** Called with each message; a promise is awaited, and belongs to the service. */
  message(value: In): unknown;
  /** Called behind the last message, and not measured. */
  finish?(): unknown;
}

/**
 * Where the messages come from: a port, or a reader.
 *
 * @example
 * ```ts
 * import { Port } from "@millrace/millrace";
 * import { type EstimateSource, estimate } from "@millrace/millrace/meter";
 *
 * using here = Port.create<number>();
 * using there = Port.attach<number>(here.memory); // usually in another thread
 * const source: EstimateSource<number> = there;
 * here.writeMany([1, 2, 3]);
 * console.log((await estimate(source, Math.sqrt, { count: 3 })).count); // 3
 * ```
 */
export interface EstimateSource<In> {
  /** As that of `Reader`. */
  readAsync(options?: { readonly signal?: AbortSignal | undefined }): Promise<In | undefined>;
  /** As that of `Reader`. */
  readonly ended: boolean;
}

/**
 * How to measure.
 *
 * @example
 * ```ts
 * import { Port } from "@millrace/millrace";
 * import { type Estimate, estimate, type EstimateOptions } from "@millrace/millrace/meter";
 *
 * using results = Port.create<Estimate>();
 * using reader = Port.attach<Estimate>(results.memory); // usually in another thread
 * using here = Port.create<number>();
 * using there = Port.attach<number>(here.memory);
 * const options: EstimateOptions = { count: 2, output: results };
 * here.writeMany([1, 2]);
 * await estimate(there, Math.sqrt, options);
 * console.log(reader.read()?.count); // 2
 * ```
 */
export interface EstimateOptions {
  /** How many messages to measure, from 1. */
  readonly count: number;
  /** A pipe of its own, to which the result is written: a port, or a writer. */
  readonly output?: { writeAsync(value: Estimate): Promise<void> } | undefined;
  /** Ends the wait for a message with its reason. */
  readonly signal?: AbortSignal | undefined;
}

/**
 * What was measured: plain data.
 *
 * @example
 * ```ts
 * import { Port } from "@millrace/millrace";
 * import { type Estimate, estimate } from "@millrace/millrace/meter";
 *
 * using here = Port.create<number>();
 * using there = Port.attach<number>(here.memory); // usually in another thread
 * here.writeMany([1, 2, 3, 4]);
 * const { count, service }: Estimate = await estimate(there, Math.sqrt, { count: 4 });
 * console.log(count, service.count); // 4 4
 * ```
 */
export interface Estimate {
  /** Messages that were handled: fewer than were asked for, where the stream has ended. */
  readonly count: number;
  /** Microseconds from the first message to the end of the last service. */
  readonly elapsed: number;
  /** Messages handled in a second, the waits for them included. */
  readonly frequency: number;
  /** How long the handler has taken, in microseconds, without decoding. */
  readonly service: Distribution;
}

/**
 * Measures a handler over so many messages: how long it takes for one, and how many it handles in a
 * second. It is told that it begins before the first message, and that it is over behind the last
 * one, whatever has come before, or comes later. The result goes to `output`, before `finish`, and
 * is returned.
 *
 * To know what the handler itself is able to, have the messages in the ring beforehand; otherwise
 * the frequency is that of their writer. Where the stream ends earlier, what has come counts.
 *
 * @throws {RangeError} if `count` is none. What the handler throws, and what `readAsync` throws.
 *
 * @example
 * ```ts
 * import { Port } from "@millrace/millrace";
 * import { estimate } from "@millrace/millrace/meter";
 *
 * using here = Port.create<string>();
 * using there = Port.attach<string>(here.memory); // usually in another thread
 * here.writeMany(["b", "a", "c"]);
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
    // Where there is nothing to be awaited, the turn of the loop is no part of the service.
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
