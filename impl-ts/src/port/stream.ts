/**
 * A port as a pair of the web's streams. See `spec/port.md`.
 *
 * @module
 */

import type { Reader } from "../pipe/reader.ts";
import type { Writer } from "../pipe/writer.ts";

/**
 * Makes a stream of what a reader reads. Each pull reads one message, and none is read ahead. A
 * cancel calls `close`.
 */
export function readableOf<In>(reader: Reader<In>, close: () => void): ReadableStream<In> {
  return new ReadableStream<In>({
    async pull(controller): Promise<void> {
      const value = await reader.readAsync();
      if (value === undefined) controller.close();
      else controller.enqueue(value);
    },
    cancel: close,
  }, { highWaterMark: 0 });
}

/**
 * Makes a stream that writes by a writer, one message at a time. An abort calls `close`. It does so
 * by the signal: the stream itself tells of an abort only when the write or the end under way is
 * over, which may take long.
 */
export function writableOf<Out>(writer: Writer<Out>, close: () => void): WritableStream<Out> {
  return new WritableStream<Out>({
    start: ({ signal }) => signal.addEventListener("abort", close),
    write: (value, { signal }) => writer.writeAsync(value, { signal }),
    close: () => writer.endAsync(),
  });
}
