/**
 * What the calls of a pipe take: a message, options, and ends that write or read; and their checks.
 *
 * @module
 */

import { type Codec, type CodecName, codecTable, requireCodec } from "../codec/codec.ts";
import {
  failure,
  type MillraceError,
  requireOptions,
  throwSegmentError,
  throwTypeError,
} from "../error.ts";
import { now } from "../memory/clock.ts";
import { layout } from "../memory/layout.ts";
import { type Channel, requireInteger } from "../memory/plan.ts";
import { requireTimeout, type Segment } from "../memory/segment.ts";
import type { EndpointOptions } from "../wait/endpoint.ts";
import { after } from "../wait/loop.ts";
import type { Link } from "./link.ts";

/**
 * A message as it stands in the ring, with its payload not decoded.
 *
 * @example
 * ```ts
 * import { type Message, Port } from "@millrace/millrace";
 * import { readMessage } from "@millrace/millrace/raw";
 *
 * using here = Port.create<string>({ codec: "text" });
 * using there = Port.attach(here.memory); // usually in another thread
 * here.write("hello");
 * const { codec, payload }: Message = readMessage(there)!;
 * console.log(codec, payload.length); // 1 5
 * ```
 */
export interface Message {
  /** 1 is data, 3 a call, 4 a return, 5 a throw. */
  readonly kind: number;
  /**
   * How the payload is written: 0 bytes, 1 text, 2 JSON, 3 JSON batch; your own codecs start at
   * 128.
   */
  readonly codec: number;
  /** A number that the application chooses, a `u32`; in the messages of a call, its id. */
  readonly tag: number;
  /** The payload: a private copy, which belongs to the caller. */
  readonly payload: Uint8Array;
}

/**
 * How long a call may wait.
 *
 * @example
 * ```ts
 * import { Port } from "@millrace/millrace";
 *
 * using port = Port.create<string>();
 * console.log(port.read({ timeout: 10 })); // undefined
 * const signal = AbortSignal.timeout(10);
 * console.log(await port.readAsync({ signal }).catch((reason) => reason.name)); // "TimeoutError"
 * ```
 */
export interface WaitOptions {
  /** Milliseconds. By default a call waits without a limit; with 0 it does not wait at all. */
  readonly timeout?: number | undefined;
  /**
   * Ends an asynchronous wait, which then rejects with the signal's reason. A blocking call looks
   * at the signal only once, before it begins: while it blocks the thread, nothing there can abort
   * the signal.
   */
  readonly signal?: AbortSignal | undefined;
}

/**
 * Options of a writer.
 *
 * @example
 * ```ts
 * import { Segment, Writer, type WriterOptions } from "@millrace/millrace";
 *
 * const options: WriterOptions<string> = { codec: "text", spin: 0 };
 * const channels = [{ writer: 0, reader: 1, capacity: 256 }];
 * using writer = Writer.attach<string>(Segment.allocate({ endpoints: 2, channels }), options);
 * console.log(writer.tryWrite("plain text")); // true
 * ```
 */
export interface WriterOptions<Out = unknown> extends EndpointOptions {
  /** How values become payloads: a codec of this library, or your own. Default `json`. */
  readonly codec?: CodecName | Codec<unknown, Out> | undefined;
  /**
   * Whether several JSON values, given to one `writeMany` or posted in one job of the event loop,
   * may go out as one message: one array with codec 3, `json_batch`. A reader of this library hands
   * out its elements one by one. A reader in C, Python or Zig gets the array, and has to take it
   * apart itself. Default true.
   */
  readonly batch?: boolean | undefined;
}

/**
 * Options of a reader.
 *
 * @example
 * ```ts
 * import { MessageError, Reader, Segment, Writer } from "@millrace/millrace";
 *
 * const channels = [{ writer: 0, reader: 1, capacity: 4096 }];
 * const segment = Segment.allocate({ endpoints: 2, channels });
 * using writer = Writer.attach<string>(segment);
 * using reader = Reader.attach<string>(segment, { maxMessageSize: 1024 });
 * writer.write("a".repeat(1500));
 * try {
 *   reader.read();
 * } catch (error) {
 *   if (error instanceof MessageError) console.log(error.code); // "message.size"
 * }
 * ```
 */
export interface ReaderOptions<In = unknown> extends EndpointOptions {
  /** A codec of your own that messages may use. Every reader knows those of this library. */
  readonly codec?: CodecName | Codec<In, never> | undefined;
  /** Further codecs of your own that messages may use. */
  readonly codecs?: readonly Codec<In, never>[] | undefined;
  /**
   * The largest message that is accepted, in bytes; a larger one is dropped with `message.size`. A
   * batch counts as one message; `writeMany` and `postMessage` make batches of up to 12 KiB.
   * Default 64 MiB, and for JSON 4 MiB, because JSON is parsed in one go: 1 MiB of records takes 10
   * ms and 4 MB of memory, but 1 MiB of brackets, which a hostile peer may send, takes 150 ms and
   * 60 MB (V8 14, 15). A message whose writer does not know its size is dropped once it exceeds the
   * limit. There is no limit for such a message where `peek` lends its frames, since the reader
   * stores nothing of it.
   */
  readonly maxMessageSize?: number | undefined;
  /** Whether `readMessage` also returns calls, returns and throws. Default false. */
  readonly calls?: boolean | undefined;
}

/**
 * What the functions of the entries take: a `Writer`, a `Reader`, a `Port`, or a `StreamPort`.
 *
 * @example
 * ```ts
 * import { type PipeEnd, Port, Reader } from "@millrace/millrace";
 *
 * using port = Port.create();
 * const isEnd = (value: unknown): value is PipeEnd =>
 *   value instanceof Port || value instanceof Reader;
 * console.log(isEnd(port), isEnd({})); // true false
 * ```
 */
export interface PipeEnd {
  /** @internal */
  readonly link: Link;
}

/**
 * An end that writes values: a `Writer`, or a `Port`.
 *
 * @example
 * ```ts
 * import { Port, type WritingEnd } from "@millrace/millrace";
 *
 * using here = Port.create<string>();
 * using there = Port.attach<string>(here.memory); // usually in another thread
 * const greet = (end: WritingEnd<string>) => end.write("hello");
 * greet(here);
 * console.log(there.read()); // "hello"
 * ```
 */
export interface WritingEnd<T = never> extends PipeEnd {
  /** Writes one message. */
  write(value: T, options?: WaitOptions): void;
}

/**
 * An end that reads values: a `Reader`, or a `Port`.
 *
 * @example
 * ```ts
 * import { Port, type ReadingEnd } from "@millrace/millrace";
 *
 * using here = Port.create<number>();
 * using there = Port.attach<number>(here.memory); // usually in another thread
 * const next = (end: ReadingEnd<number>) => end.read({ timeout: 100 });
 * here.write(7);
 * console.log(next(there)); // 7
 * ```
 */
export interface ReadingEnd<T = unknown> extends PipeEnd {
  /** Reads one message. */
  read(options?: WaitOptions): T | undefined;
}

/**
 * What writes without blocking: a `Writer`, a `Port`, or a `StreamPort`.
 *
 * @example
 * ```ts
 * import { Port, type TryWritingEnd } from "@millrace/millrace";
 *
 * using here = Port.create<number>();
 * using there = Port.attach<number>(here.memory); // usually in another thread
 * const offer = (end: TryWritingEnd<number>) => end.tryWrite(7);
 * console.log(offer(here), there.read()); // true 7
 * ```
 */
export interface TryWritingEnd<T = never> extends PipeEnd {
  /** Writes one message if there is room for all of it. */
  tryWrite(value: T): boolean;
}

/**
 * What reads without blocking: a `Reader`, a `Port`, or a `StreamPort`.
 *
 * @example
 * ```ts
 * import { Port, type TryReadingEnd } from "@millrace/millrace";
 *
 * using here = Port.create<number>();
 * using there = Port.attach<number>(here.memory); // usually in another thread
 * const look = (end: TryReadingEnd<number>) => end.tryRead();
 * here.write(7);
 * console.log(look(there), look(there)); // 7 undefined
 * ```
 */
export interface TryReadingEnd<T = unknown> extends PipeEnd {
  /** Reads one message if there is one. */
  tryRead(): T | undefined;
}

/** Throws for options that a writer cannot use, before it takes its endpoint for good. */
export function requireWriterOptions(options: WriterOptions<never>): void {
  const { codec = "json", batch = true } = requireOptions(options);
  requireCodec(codec);
  if (typeof batch !== "boolean") throwTypeError(`batch must be true or false: ${batch}`);
}

/** Throws for options that a reader cannot use, before it takes its endpoint for good. */
export function requireReaderOptions(options: ReaderOptions): void {
  const { maxMessageSize = 0, codec, codecs } = requireOptions(options);
  requireInteger("maxMessageSize", maxMessageSize, 0, MAX_MESSAGE_SIZE_MAX);
  codecTable(codec, codecs);
}

/**
 * Returns the ring with this index, or the first ring that `fits` accepts. [pipe.find] [port.find]
 *
 * @throws {SegmentError} `segment.channel` if there is no such ring.
 */
export function findRing(
  segment: Segment,
  index: number | undefined,
  fits: (channel: Channel) => boolean,
): Channel {
  const isRing = (channel: Channel) => channel.kind === layout.CHANNEL_KIND_RING && fits(channel);
  const channel = index === undefined ? segment.channels.find(isRing) : segment.channels[index];
  if (channel && isRing(channel)) return channel;
  // [pipe.find_none] The segment was checked when it was attached to, and no state has changed yet.
  throwSegmentError("channel", "attach to segment: it has no such ring");
}

/** Throws for options of a call that are not valid, and if the signal has aborted already. */
export function requireWait(options: WaitOptions | undefined): void {
  if (options === undefined) return;
  requireTimeout(options, Infinity);
  options.signal?.throwIfAborted();
}

/** The deadline of a call, whose options were checked before. [wait.deadline] */
export function deadlineOf(options: WaitOptions | undefined): number {
  const timeout = options?.timeout ?? Infinity;
  return timeout === Infinity ? Infinity : now() + timeout;
}

/** Checks the options of a call and returns its deadline. */
export function deadlineOfCall(options: WaitOptions | undefined): number {
  requireWait(options);
  return deadlineOf(options);
}

/**
 * Calls `quit` when the time of a call is over, with undefined, or when its signal aborts, with the
 * signal's reason. Returns what takes that back.
 */
export function limit(
  options: WaitOptions | undefined,
  quit: (reason: unknown) => void,
): (() => void) | undefined {
  if (!options) return undefined;
  const { timeout = Infinity, signal } = options;
  const abort = () => quit(signal!.reason);
  const stopTimer = after(timeout, () => quit(undefined));
  signal?.addEventListener("abort", abort);
  return () => {
    stopTimer?.();
    signal?.removeEventListener("abort", abort);
  };
}

/** The error of a call whose deadline has passed. */
export function timeoutError(verb: string): MillraceError {
  return failure("wait.timeout", `${verb}: the ring stayed full until the deadline`);
}

/** Default of `maxMessageSize`, and that for JSON. */
export const MAX_MESSAGE_SIZE: number = 64 * 1024 * 1024;

export const MAX_JSON_SIZE: number = 4 * 1024 * 1024;

/** The upper bound of `maxMessageSize`: no runtime can allocate more than this. */
export const MAX_MESSAGE_SIZE_MAX: number = 2 ** 32;
