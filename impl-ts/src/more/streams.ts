/**
 * A port as Web Streams. See `spec/port.md`.
 *
 * @module
 */

import type { WaitOptions } from "../pipe/options.ts";
import { SETTLED } from "../wait/loop.ts";

/**
 * What a readable stream is made of: a port, or the like.
 *
 * @example
 * ```ts
 * import { Port } from "@millrace/millrace";
 * import { readableOf, type ReadsLater } from "@millrace/millrace/streams";
 *
 * using here = Port.create<string>();
 * using there = Port.attach<string>(here.memory); // usually in another thread
 * const first = async (from: ReadsLater<string>) =>
 *   (await readableOf(from).getReader().read()).value;
 * here.write("a");
 * console.log(await first(there)); // a
 * ```
 */
export interface ReadsLater<In> {
  /** Reads one message; undefined at the end of the stream. */
  readAsync(options?: WaitOptions): Promise<In | undefined>;
  /** Closes it, when the stream is cancelled. */
  close(): void;
}

/**
 * What a writable stream is made of.
 *
 * @example
 * ```ts
 * import { Port } from "@millrace/millrace";
 * import { writableOf, type WritesLater } from "@millrace/millrace/streams";
 *
 * using here = Port.create<string>();
 * using there = Port.attach<string>(here.memory); // usually in another thread
 * const send = async (to: WritesLater<string>) => {
 *   await ReadableStream.from(["a"]).pipeTo(writableOf(to));
 * };
 * await send(here);
 * console.log(there.read()); // a
 * ```
 */
export interface WritesLater<Out> {
  /** Writes one message. */
  writeAsync(value: Out, options?: WaitOptions): Promise<void>;
  /** Ends the outgoing messages. */
  endAsync(options?: WaitOptions): Promise<void>;
  /** Closes it, when the stream is aborted. */
  close(): void;
}

/**
 * The messages that arrive, as a stream. Each pull reads one message, and none is read ahead. The
 * stream ends with the peer's stream, and fails with what `readAsync` throws, for a lost message
 * too. Cancelling it closes the port, since nobody will read what comes.
 *
 * @example
 * ```ts
 * import { Port } from "@millrace/millrace";
 * import { readableOf } from "@millrace/millrace/streams";
 *
 * using here = Port.create<string>();
 * using there = Port.attach<string>(here.memory); // usually in another thread
 * there.write("a");
 * there.end();
 * const upper = new TransformStream<string, string>({
 *   transform: (text, to) => to.enqueue(text.toUpperCase()),
 * });
 * for await (const text of readableOf(here).pipeThrough(upper)) console.log(text); // "A"
 * ```
 */
export function readableOf<In>(port: ReadsLater<In>): ReadableStream<In> {
  return new ReadableStream<In>({
    async pull(controller): Promise<void> {
      const value = await port.readAsync();
      if (value === undefined) controller.close();
      else controller.enqueue(value);
    },
    cancel: () => port.close(),
  }, { highWaterMark: 0 });
}

/**
 * A stream that sends what is written to it. A write is done when the message is in the ring.
 * Closing the stream ends the outgoing messages, as `endAsync` does; aborting it closes the port.
 *
 * @example
 * ```ts
 * import { Port } from "@millrace/millrace";
 * import { writableOf } from "@millrace/millrace/streams";
 *
 * using here = Port.create<number>();
 * using there = Port.attach<number>(here.memory); // usually in another thread
 * await ReadableStream.from([1, 2]).pipeTo(writableOf(here));
 * for await (const n of there) console.log(n); // 1, then 2
 * ```
 */
export function writableOf<Out>(port: WritesLater<Out>): WritableStream<Out> {
  return new WritableStream<Out>({
    start: ({ signal }) =>
      signal.addEventListener("abort", () => {
        // The write that waits ends first, with the signal's reason.
        SETTLED.then(() => port.close());
      }),
    write: (value, { signal }) => port.writeAsync(value, { signal }),
    close: () => port.endAsync(),
  });
}
