/**
 * Many values in one call: written in batches, and read as far as they are there. See
 * `spec/codec.md`.
 *
 * @module
 */

import { MillraceError } from "../error.ts";
import { layout } from "../memory/layout.ts";
import { requireInteger } from "../memory/plan.ts";
import { hasEnded, type Incoming, Mode, read, readAsync, tryRead } from "../pipe/incoming.ts";
import {
  deadlineOfCall,
  type ReadingEnd,
  type TryReadingEnd,
  type WaitOptions,
  type WritingEnd,
} from "../pipe/options.ts";
import {
  encode,
  makeSend,
  type Outgoing,
  requireWritable,
  RUN_COUNT,
  type Send,
  send,
} from "../pipe/outgoing.ts";
import { Bit } from "../ring/side.ts";

const written: WeakMap<object, number> = new WeakMap();

/**
 * Writes many values. With codec `json`, runs of short values are packed into batches, which takes
 * half the time; the reader unpacks them. Blocks and throws as `write` does. The values before the
 * one that failed are then written, and `writtenOf` says how many they are.
 *
 * @example
 * ```ts
 * import { Port } from "@millrace/millrace";
 * import { readMany, writeMany } from "@millrace/millrace/many";
 *
 * using here = Port.create<number>();
 * using there = Port.attach<number>(here.memory); // usually in another thread
 * writeMany(here, [1, 2, 3]);
 * console.log(readMany(there, 10)); // [ 1, 2, 3 ]
 * ```
 */
export function writeMany<T>(
  end: WritingEnd<T>,
  values: readonly T[],
  options?: WaitOptions,
): void {
  written.set(end, 0);
  const deadline = deadlineOfCall(options);
  const out = end.link.outgoing!;
  requireWritable(out);
  for (let index = 0; index < values.length;) {
    const run = makeSend(layout.FRAME_KIND_DATA);
    const count = gather(out, values, index, run);
    send(out, run, deadline);
    written.set(end, index += count);
  }
}

/**
 * How many values the last `writeMany` of an end has written: all of them, or, if it threw, those
 * before the one that failed. Nothing of that value is delivered.
 *
 * @example
 * ```ts
 * import { Port } from "@millrace/millrace";
 * import { readMany, writeMany, writtenOf } from "@millrace/millrace/many";
 *
 * using here = Port.create<number | bigint>();
 * using there = Port.attach<number | bigint>(here.memory); // usually in another thread
 * try {
 *   writeMany(here, [1, 2, 3n, 4]); // JSON has no BigInt
 * } catch {
 *   console.log(writtenOf(here), readMany(there, 10)); // 2 [ 1, 2 ]
 * }
 * ```
 */
export function writtenOf(end: object): number {
  return written.get(end) ?? 0;
}

/** Encodes the next values as one message. Returns how many it took. */
function gather(out: Outgoing, values: readonly unknown[], index: number, run: Send): number {
  encode(out, values[index], run);
  const most = out.run;
  if (run.text === undefined || most === 0) return 1;
  const texts = [run.text];
  let size = run.text.length;
  for (let at = index + 1; at < values.length && texts.length < RUN_COUNT && size < most; at++) {
    let text: string | undefined;
    try {
      text = encode(out, values[at], makeSend(layout.FRAME_KIND_DATA)).text;
    } catch {
      break; // the values before it are written before its error comes
    }
    if (text === undefined) break; // bytes
    size += text.length + 1;
    if (size > most) break;
    texts.push(text);
  }
  if ((out.bits & Bit.STOPPED) !== 0) requireWritable(out); // one of them has closed this end
  run.text = texts.join();
  run.count = texts.length;
  return texts.length;
}

/**
 * Reads one message, and what else is there, up to `max` values. Blocks until there is one;
 * undefined at the timeout and at the end of the stream.
 *
 * @example
 * ```ts
 * import { Port } from "@millrace/millrace";
 * import { readMany, writeMany } from "@millrace/millrace/many";
 *
 * using here = Port.create<number>();
 * using there = Port.attach<number>(here.memory); // usually in another thread
 * writeMany(here, [1, 2, 3]);
 * console.log(readMany(there, 2), readMany(there, 2)); // [ 1, 2 ] [ 3 ]
 * ```
 */
export function readMany<T>(
  end: ReadingEnd<T>,
  max: number,
  options?: WaitOptions,
): T[] | undefined {
  requireInteger("max", max, 1);
  const inc = end.link.incoming!;
  return takeMany(inc, read(inc, Mode.VALUE, options), max) as T[] | undefined;
}

/**
 * `readMany` if there is a message; otherwise returns undefined. Never waits.
 *
 * @example
 * ```ts
 * import { Port } from "@millrace/millrace";
 * import { tryReadMany } from "@millrace/millrace/many";
 *
 * using here = Port.create<number>();
 * using there = Port.attach<number>(here.memory); // usually in another thread
 * console.log(tryReadMany(there, 10)); // undefined
 * here.write(1);
 * here.write(2);
 * console.log(tryReadMany(there, 10)); // [ 1, 2 ]
 * ```
 */
export function tryReadMany<T>(
  end: TryReadingEnd<T>,
  max: number,
): T[] | undefined {
  requireInteger("max", max, 1);
  const inc = end.link.incoming!;
  return takeMany(inc, tryRead(inc, Mode.VALUE), max) as T[] | undefined;
}

/**
 * `readMany` without blocking. Calls are served in the order in which they were made.
 *
 * @example
 * ```ts
 * import { Port } from "@millrace/millrace";
 * import { readManyAsync, writeMany } from "@millrace/millrace/many";
 *
 * using here = Port.create<number>();
 * using there = Port.attach<number>(here.memory); // usually in another thread
 * const values = readManyAsync(there, 10);
 * writeMany(here, [1, 2, 3]);
 * console.log(await values); // [ 1, 2, 3 ]
 * ```
 */
export async function readManyAsync<T>(
  end: TryReadingEnd<T>,
  max: number,
  options?: WaitOptions,
): Promise<T[] | undefined> {
  requireInteger("max", max, 1);
  const inc = end.link.incoming!;
  const more = (first: unknown) => takeMany(inc, first, max);
  return await readAsync(inc, Mode.VALUE, options, more) as T[] | undefined;
}

/** After a first value, takes further values that are there, up to `max` in all. */
function takeMany(inc: Incoming, first: unknown, max: number): unknown[] | undefined {
  if (first === undefined) return undefined;
  const values = [first];
  try {
    // One more load at most: a peer that goes on writing must not keep this call here.
    // [ring.one_load]
    for (let mayLoad = false, hasLoaded = false; values.length < max && !hasEnded(inc);) {
      const value = inc.take(inc, Mode.VALUE, mayLoad);
      if (value !== undefined) values.push(value);
      else if (hasLoaded) break;
      mayLoad = !hasLoaded && value === undefined;
      hasLoaded ||= mayLoad;
    }
  } catch (error) {
    // The side keeps a fault. The report of a lost message goes back into the queue: thrown now, it
    // would cost the values that were read before it.
    if (!(error instanceof MillraceError)) throw error;
    if (error.name === "MessageError") inc.queue.unshift(error);
  }
  return values;
}
