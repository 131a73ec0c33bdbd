/**
 * A port as a pair of the web's streams. See `spec/port.md`.
 *
 * @module
 */

import type { Reader } from "./pipe_reader.ts";
import type { Writer } from "./pipe_writer.ts";

/** What a reader reads, one message for each pull and none ahead; `close` is for a cancel. */
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
 * What a writer writes, one message at a time; `close` is for an abort. It comes by the signal: the
 * stream itself tells of it only when the write or the end under way is over, which may wait long.
 */
export function writableOf<Out>(writer: Writer<Out>, close: () => void): WritableStream<Out> {
  return new WritableStream<Out>({
    start: ({ signal }) => signal.addEventListener("abort", close),
    write: (value, { signal }) => writer.writeAsync(value, { signal }),
    close: () => writer.endAsync(),
  });
}
