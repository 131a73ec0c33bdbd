/**
 * The two ends of a pipe that goes one way. See `spec/pipe.md`.
 *
 * @module
 */

import type { Segment } from "../memory/segment.ts";
import { Bit } from "../ring/side.ts";
import { attachEndpoint, requireVacant, type Stats, statsOfEndpoint } from "../wait/endpoint.ts";
import { hasEnded, Incoming, Mode, read, readAsync, tryRead } from "./incoming.ts";
import { closeLink, Link } from "./link.ts";
import {
  findRing,
  type PipeEnd,
  type ReaderOptions,
  requireReaderOptions,
  requireWriterOptions,
  type WaitOptions,
  type WriterOptions,
} from "./options.ts";
import { end, endAsync, Outgoing, tryWrite, write, writeAsync } from "./outgoing.ts";

/**
 * Writes messages into a ring. Only the thread that attached it may call its methods.
 *
 * @typeParam T The values that it writes.
 *
 * @example
 * ```ts
 * import { Reader, Segment, Writer } from "@millrace/millrace";
 *
 * const segment = Segment.allocate({
 *   endpoints: 2,
 *   channels: [{ writer: 0, reader: 1, capacity: 4096 }],
 * });
 * using writer = Writer.attach<{ n: number }>(segment);
 * using reader = Reader.attach<{ n: number }>(segment); // usually in another thread
 * writer.write({ n: 1 });
 * writer.end();
 * for (let m; (m = reader.read()) !== undefined;) console.log(m.n); // 1
 * ```
 */
export class Writer<T = unknown> {
  /** The name, which a bundler would shorten. @internal */
  static readonly name: string = "Writer";

  /**
   * The pipe; for the functions that stand on it.
   *
   * @internal
   */
  readonly link: Link;
  readonly #outgoing: Outgoing;

  private constructor(link: Link, outgoing: Outgoing) {
    this.link = link;
    this.#outgoing = outgoing;
  }

  /**
   * Makes the writer of a link.
   *
   * @internal
   */
  static of<T = unknown>(link: Link, outgoing: Outgoing): Writer<T> {
    return new Writer<T>(link, outgoing);
  }

  /**
   * Attaches to the writing endpoint of a ring: the channel with index `channel`, or by default the
   * first ring.
   *
   * @throws {SegmentError} `segment.channel` if there is no such ring; `segment.endpoint` if its
   * endpoint is not vacant.
   */
  static attach<T = unknown>(
    segment: Segment,
    options: WriterOptions<T> & { readonly channel?: number | undefined } = {},
  ): Writer<T> {
    requireWriterOptions(options);
    const channel = findRing(segment, options.channel, () => true);
    requireVacant(segment, channel.writer);
    const link = new Link(attachEndpoint(segment, channel.writer, options), channel.reader);
    return new Writer<T>(link, new Outgoing(link, channel, { ...options }));
  }

  /** Whether `end` was called. */
  get ended(): boolean {
    return (this.#outgoing.bits & Bit.ENDED) !== 0;
  }

  /** Writes one message. Blocks while there is no room for it. See `Port.write`. */
  write(value: T, options?: WaitOptions): void {
    write(this.#outgoing, value, options);
  }

  /**
   * Writes one message if there is room for all of it. Returns whether it did. Never waits.
   *
   * @throws {RangeError} if the message is too large to be written at once even to an empty ring.
   */
  tryWrite(value: T): boolean {
    return tryWrite(this.#outgoing, value);
  }

  /**
   * Writes one message without blocking. Messages keep the order of the calls. The promise resolves
   * when the whole message is in the ring; until then, bytes that were passed in must not change.
   */
  writeAsync(value: T, options?: WaitOptions): Promise<void> {
    return writeAsync(this.#outgoing, value, options);
  }

  /**
   * Ends the stream: the reader gets everything that was written, and then the end. Never waits;
   * asynchronous writes that are under way come first. A second call does nothing, nor does one
   * after the reader has closed or failed. [pipe.end_closed]
   */
  end(): void {
    end(this.#outgoing);
  }

  /**
   * Ends the stream as `end` does, and waits until the end is in the ring. The options can give up
   * the wait, but not the end.
   */
  endAsync(options?: WaitOptions): Promise<void> {
    return endAsync(this.#outgoing, options);
  }

  /** Closes this endpoint now. What is published stays readable; its waits end. */
  close(): void {
    closeLink(this.link);
  }

  /** The same as `close`. */
  [Symbol.dispose](): void {
    this.close();
  }
}

/**
 * Reads messages from a ring. Only the thread that attached it may call its methods.
 *
 * @typeParam T The values that it reads.
 *
 * @example
 * ```ts
 * import { Reader, Segment, Writer } from "@millrace/millrace";
 *
 * const channels = [{ writer: 0, reader: 1, capacity: 4096 }];
 * const segment = Segment.allocate({ endpoints: 2, channels });
 * using writer = Writer.attach<string>(segment);
 * using reader = Reader.attach<string>(segment); // usually in another thread
 * writer.write("hello");
 * console.log(reader.read()); // "hello"
 * ```
 */
export class Reader<T = unknown> {
  /** The name, which a bundler would shorten. @internal */
  static readonly name: string = "Reader";

  /**
   * The pipe; for the functions that stand on it.
   *
   * @internal
   */
  readonly link: Link;
  readonly #incoming: Incoming;

  private constructor(link: Link, incoming: Incoming) {
    this.link = link;
    this.#incoming = incoming;
  }

  /**
   * Makes the reader of a link.
   *
   * @internal
   */
  static of<T = unknown>(link: Link, incoming: Incoming): Reader<T> {
    return new Reader<T>(link, incoming);
  }

  /**
   * Attaches to the reading endpoint of a ring: the channel with index `channel`, or by default the
   * first ring.
   *
   * @throws {SegmentError} `segment.channel` if there is no such ring; `segment.endpoint` if its
   * endpoint is not vacant.
   */
  static attach<T = unknown>(
    segment: Segment,
    options: ReaderOptions<T> & { readonly channel?: number | undefined } = {},
  ): Reader<T> {
    requireReaderOptions(options);
    const channel = findRing(segment, options.channel, () => true);
    requireVacant(segment, channel.reader);
    const link = new Link(attachEndpoint(segment, channel.reader, options), channel.writer);
    return new Reader<T>(link, new Incoming(link, channel, { ...options }));
  }

  /** Whether the end of the stream was reached: every later read returns undefined. */
  get ended(): boolean {
    return hasEnded(this.#incoming);
  }

  /**
   * Reads one message. Blocks until there is one. Returns undefined at the timeout, and after the
   * end of the stream: see `ended`. Throws what `Port.read` throws.
   */
  read(options?: WaitOptions): T | undefined {
    return read(this.#incoming, Mode.VALUE, options) as T | undefined;
  }

  /** Reads one message if there is one; otherwise returns undefined. Never waits. */
  tryRead(): T | undefined {
    return tryRead(this.#incoming, Mode.VALUE) as T | undefined;
  }

  /** `read` without blocking. Calls are served in the order in which they were made. */
  readAsync(options?: WaitOptions): Promise<T | undefined> {
    return readAsync(this.#incoming, Mode.VALUE, options) as Promise<T | undefined>;
  }

  /** Reads message after message until the stream ends. Leaving the loop leaves the pipe open. */
  async *[Symbol.asyncIterator](): AsyncGenerator<T, void, void> {
    for (let value; (value = await this.readAsync()) !== undefined;) yield value;
  }

  /** Closes this endpoint now. Unread messages are dropped; its waits end with `pipe.closed`. */
  close(): void {
    closeLink(this.link);
  }

  /** The same as `close`. */
  [Symbol.dispose](): void {
    this.close();
  }
}

/**
 * What the endpoint of a port, a writer or a reader has counted since it attached.
 *
 * @example
 * ```ts
 * import { Port, statsOf } from "@millrace/millrace";
 *
 * using port = Port.create<string>();
 * port.read({ timeout: 5 });
 * console.log(statsOf(port).parks > 0); // true
 * ```
 */
export function statsOf({ link }: PipeEnd): Stats {
  return statsOfEndpoint(link.endpoint);
}
