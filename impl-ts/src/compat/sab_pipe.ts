/**
 * Messages one way, with the interface of the original's `SABPipe`.
 *
 * @module
 */

import * as layout from "../layout.ts";
import { MAX_MESSAGE_SIZE_MAX } from "../pipe.ts";
import { isShared } from "../segment.ts";
import { Inbox, type MessageHandler } from "./sab_inbox.ts";
import { Outbox } from "./sab_outbox.ts";
import { type Bounds, type OverflowHandler, requireQueueLimit, type Taken } from "./sab_queue.ts";
import { disposedError, isClosing, openSegment, ringCapacity, type WireName } from "./sab_wire.ts";
import { MailboxReaderWire, MailboxWriterWire } from "./sab_wire_mailbox.ts";
import { isRingEndGone, RingReaderWire, RingWriterWire } from "./sab_wire_ring.ts";

/**
 * What this layer adds to the parameters of the original.
 *
 * @example
 * ```ts
 * import { SABMessagePort, type SABOptions } from "@millrace/millrace/sab-message-port";
 *
 * // For a worker that still has the original.
 * const options: SABOptions = { wire: "mailbox" };
 * const port = new SABMessagePort("a", 256, null, options);
 * console.log(port.postInit()[0].wire); // "mailbox"
 * port.close();
 * ```
 */
export interface SABOptions {
  /**
   * `mailbox` for the original's wire. Both sides must choose the same. By default the ring, where
   * the section holds one, and otherwise the mailbox.
   */
  readonly wire?: WireName | undefined;
  /**
   * Largest message in bytes that a reader takes, from a peer that it need not trust; a burst may
   * count as one. A larger one is dropped, and the read throws a `MessageError`, `message.size`. By
   * default any size is taken, as in the original; see `ReaderOptions` for what parsing costs.
   */
  readonly maxMessageSize?: number | undefined;
}

const DEFAULT_SIZE = 128 * 1024;

/**
 * One end of a pipe: a writer, which has `postMessage`, or a reader, which has `read`,
 * `asyncRead`, `tryRead`, `tryPeek` and `onmessage`. The other end is made on the same memory,
 * offset and section size. All methods belong to the thread that made the object.
 *
 * A method of the other role throws an `Error`; once either end is destroyed, every method throws
 * one with the message `SABPipe disposed`.
 *
 * @typeParam T What it carries: values of JSON.
 *
 * @example
 * ```ts
 * import { SABPipe } from "@millrace/millrace/sab-message-port";
 *
 * const writer = new SABPipe<{ id: number }>("w");
 * const reader = new SABPipe<{ id: number }>("r", writer.buffer); // usually in a worker
 * writer.postMessage({ id: 0 });
 * writer.postMessage({ id: 1 });
 * await writer.postMessage({ id: 2 });
 * console.log(reader.read()); // { id: 0 }
 * console.log(reader.tryRead(10)); // [{ id: 2 }, { id: 1 }]
 * writer.destroy();
 * ```
 */
// deno-lint-ignore no-explicit-any
export class SABPipe<T = any> {
  /** On the mailbox: index in `i32` of the status. */
  static readonly STATUS: number = layout.MAILBOX_STATUS_WORD;
  /** On the mailbox: index in `i32` of whose turn it is. */
  static readonly RW_SIGNAL: number = layout.MAILBOX_SIGNAL_WORD;
  /** On the mailbox: index in `i32` of the bytes of the part. */
  static readonly W_DATA_LEN: number = layout.MAILBOX_LENGTH_WORD;
  /** On the mailbox: index in `i32` of the number of parts. */
  static readonly NUM_PARTS: number = layout.MAILBOX_PART_COUNT_WORD;
  /** On the mailbox: index in `i32` of the number of this part. */
  static readonly PART_INDEX: number = layout.MAILBOX_PART_INDEX_WORD;
  /** On the mailbox: index in `i32` of a word without a meaning. */
  static readonly RESERVED_1: number = layout.MAILBOX_RESERVED_OFFSET >> 2;
  /** On the mailbox: index in `i32` of a word without a meaning. */
  static readonly RESERVED_2: number = (layout.MAILBOX_RESERVED_OFFSET >> 2) + 1;
  /** On the mailbox: index in `i32` of a word without a meaning. */
  static readonly RESERVED_3: number = (layout.MAILBOX_RESERVED_OFFSET >> 2) + 2;
  /** On the mailbox: how many words there are. */
  static readonly CONTROL_TOP: number = layout.MAILBOX_HEADER_SIZE >> 2;
  /** On the mailbox: where the byte area begins. */
  static readonly DATA_OFFSET: number = layout.MAILBOX_HEADER_SIZE;
  /** On the mailbox: the status of one in use. */
  static readonly STATUS_ACTIVE: number = layout.MAILBOX_STATUS_ACTIVE;
  /** On the mailbox: status and signal of one that is disposed. */
  static readonly STATUS_DISPOSED: number = layout.MAILBOX_STATUS_DISPOSED;
  /** On the mailbox: the signal while it is the writer's turn. */
  static readonly RW_CAN_WRITE: number = layout.MAILBOX_SIGNAL_MAY_WRITE;
  /** On the mailbox: the signal while it is the reader's turn. */
  static readonly RW_CAN_READ: number = layout.MAILBOX_SIGNAL_MAY_READ;

  /** Whether this is the writing end. */
  readonly isWriter: boolean;
  /** Whether this is the reading end. */
  readonly isReader: boolean;
  /** Which bytes the pipe puts into its section. */
  readonly wire: WireName;
  /** The shared memory, where the section lies. */
  readonly buffer: SharedArrayBuffer;
  /** Bytes of the section less 32: on the mailbox, the largest part. */
  readonly maxChunk: number;
  /** The same as `buffer`, and `null` once the pipe is found disposed. */
  _sab: SharedArrayBuffer | null;
  /** The section as words; `null` once the pipe is found disposed. */
  i32: Int32Array | null;
  /** The section as bytes; `null` once the pipe is found disposed. */
  u8: Uint8Array | null;
  readonly #outbox: Outbox<T> | undefined;
  readonly #inbox: Inbox<T> | undefined;
  readonly #bounds: Bounds<T>;
  /** That of the writer of the same port. */
  #outgoing: Outbox<unknown> | undefined;

  /**
   * Makes an end of a pipe, on fresh shared memory of a size in bytes, or on memory that is there.
   *
   * @throws {Error} if `role` is neither `"r"` nor `"w"`, or `queueLimit` is no limit.
   * @throws {TypeError} if `sabOrSize` is neither a number nor a `SharedArrayBuffer`.
   * @throws {RangeError} if the section lies outside of the memory, or not at a multiple of 4.
   * @throws {SegmentError} `segment.endpoint` if another object has this end of a ring already;
   * `mailbox.size` for less than 33 bytes; other codes if the memory holds something else.
   */
  constructor(
    role: "r" | "w",
    sabOrSize: SharedArrayBuffer | number = DEFAULT_SIZE,
    byteOffset: number = 0,
    sectionSize: number | null = null,
    queueLimit: number | null = null,
    options: SABOptions = {},
  ) {
    if (role !== "r" && role !== "w") {
      throw new Error(`Cannot make SABPipe: role must be "r" or "w": ${role}`);
    }
    requireQueueLimit(queueLimit);
    const buffer = toSharedMemory(sabOrSize);
    const byteLength = sectionSize ?? buffer.byteLength - byteOffset;
    this.isWriter = role === "w";
    this.isReader = role === "r";
    this.buffer = this._sab = buffer;
    this.i32 = new Int32Array(buffer, byteOffset, Math.floor(byteLength / 4));
    this.u8 = new Uint8Array(buffer, byteOffset, byteLength);
    this.maxChunk = byteLength - layout.MAILBOX_HEADER_SIZE;
    this.#bounds = { limit: queueLimit, onOverflow: null };
    const section = { buffer, byteOffset, byteLength };
    const capacity = requireWire(options.wire) === "ring" ? ringCapacity(section) : 0;
    this.wire = capacity === 0 ? "mailbox" : "ring";
    const segment = capacity === 0 ? undefined : openSegment(section, capacity);
    if (segment !== undefined && isRingEndGone(segment, role)) {
      this._sab = this.i32 = this.u8 = null; // destroyed before, by whoever had it: for ever
    } else if (role === "w") {
      const wire = segment ? new RingWriterWire(segment) : new MailboxWriterWire(section);
      this.#outbox = new Outbox<T>(wire, this.#bounds, this);
    } else {
      const { maxMessageSize = MAX_MESSAGE_SIZE_MAX } = options;
      const wire = segment
        ? new RingReaderWire(segment, maxMessageSize)
        : new MailboxReaderWire(section, maxMessageSize);
      this.#inbox = new Inbox<T>(wire, this.#bounds, this);
    }
  }

  /**
   * Makes this the reader of the port that has that writer: its reads first write what the writer
   * owes, and wait for answers.
   *
   * @internal
   */
  _join(writer: SABPipe): void {
    this.#outgoing = writer.#outbox;
    if (this.#inbox !== undefined) this.#inbox.wire.outgoing = writer.#outbox?.wire.lane;
  }

  /** @internal */
  _write(): boolean {
    return this.#outgoing === undefined || this.#outgoing.write();
  }

  /** @internal */
  _report(error: unknown): unknown {
    if (!isClosing(error)) return error;
    this.destroy();
    return disposedError(error);
  }

  /** Most messages in the queue of this end; `null` for any number. The oldest are discarded. */
  get queueLimit(): number | null {
    return this.#bounds.limit;
  }

  set queueLimit(value: number | null) {
    requireQueueLimit(value);
    this.#bounds.limit = value;
    this.#outbox?.enforce();
    this.#inbox?.enforce();
  }

  /**
   * Called with the queue itself before it is cut to `queueLimit`. It may change it: what is still
   * beyond the limit then is discarded. The queue of a reader stands newest first.
   */
  get onQueueOverflow(): OverflowHandler<T> | null {
    return this.#bounds.onOverflow;
  }

  set onQueueOverflow(handler: OverflowHandler<T> | null) {
    this.#bounds.onOverflow = handler ?? null;
  }

  /** Whether either end was destroyed. */
  isDisposed(): boolean {
    return this.i32 === null || (this.#outbox ?? this.#inbox)!.wire.disposed;
  }

  /**
   * Ends the pipe for both sides, now. Every wait of either ends with `SABPipe disposed`; messages
   * on their way are lost. Does nothing the second time.
   */
  destroy(): void {
    if (this.i32 === null) return;
    this._sab = this.i32 = this.u8 = null;
    (this.#outbox ?? this.#inbox)!.wire.close();
    this.#outbox?.drop();
  }

  /** The same as `destroy`. */
  close(): void {
    this.destroy();
  }

  /**
   * Queues a message. What is posted in one turn of the event loop is written as one burst. The
   * promise settles with the burst's: it is fulfilled when that is written, and rejected if the
   * pipe is destroyed before, or a value of it is no JSON.
   *
   * @throws {Error} if this is the reader, or the pipe is disposed.
   */
  postMessage(message: T): Promise<void> {
    if (this.isReader) throw new Error("Cannot post: only the writer can write");
    // Once a burst: what the other side does meanwhile, the promise tells.
    if (!this.#outbox?.isGathering) this.#requireOpen();
    return this.#outbox!.post(message);
  }

  /**
   * Reads a message, or up to `maxMessages` that are there, and blocks until there is one: `null`,
   * or an empty array, after `timeout` milliseconds, or at once if not `blocking`. What has come by
   * then of a large message is kept for the next read.
   *
   * @throws {Error} if this is the writer, the pipe is disposed, or `onmessage` is set.
   * @throws {ForbiddenError} if it would have to block where the thread must not.
   */
  read<N extends number = 1>(
    timeout: number = Infinity,
    blocking: boolean = true,
    maxMessages: N = 1 as N,
  ): Taken<T, N> {
    return this.#requireReader("read").read(timeout, blocking, maxMessages);
  }

  /** The same as `read(0, false, maxMessages)`: what is there, without waiting. */
  tryRead<N extends number = 1>(maxMessages: N = 1 as N): Taken<T, N> {
    return this.read(0, false, maxMessages);
  }

  /** Returns the next message, or `null`, and leaves it where it is. */
  tryPeek(): T | null {
    return this.#requireReader("tryPeek").peek();
  }

  /** The same as `read`, without blocking. Calls are served in order. */
  async asyncRead<N extends number = 1>(
    timeout: number = Infinity,
    maxMessages: N = 1 as N,
  ): Promise<Taken<T, N>> {
    return await this.#requireReader("asyncRead").readAsync(timeout, maxMessages);
  }

  /**
   * The handler of messages; while there is one, the reads throw. What it throws is ignored.
   * `null` stops the delivery; messages that have arrived stay for reads, or for another handler.
   */
  get onmessage(): MessageHandler<T> | null {
    return this.#inbox?.handler ?? null;
  }

  set onmessage(handler: MessageHandler<T> | null) {
    if (this.isWriter) throw new Error("Cannot set onmessage: only the reader can");
    if (handler !== null && handler !== undefined && typeof handler !== "function") {
      throw new TypeError("Cannot set onmessage: it must be a function or null");
    }
    if (this.#inbox !== undefined) this.#inbox.handler = handler ?? null;
  }

  /** Whether messages are being delivered to `onmessage`. */
  get _messageLoopActive(): boolean {
    return this.#inbox?.delivering ?? false;
  }

  /**
   * Puts messages, oldest first, in front of all others; for channels.
   *
   * @internal
   */
  _unread(messages: T[]): void {
    this.#inbox?.unread(messages);
  }

  #requireOpen(): void {
    if (!this.isDisposed()) return;
    this.destroy();
    throw disposedError();
  }

  #requireReader(verb: string): Inbox<T> {
    if (this.isWriter) throw new Error(`Cannot ${verb}: only the reader can`);
    if (this.onmessage !== null) throw new Error(`Cannot ${verb} while onmessage is active`);
    this.#requireOpen();
    return this.#inbox!;
  }
}

/** Fresh shared memory of a size in bytes, or what the caller has. */
export function toSharedMemory(sabOrSize: SharedArrayBuffer | number): SharedArrayBuffer {
  if (typeof sabOrSize === "number") return new SharedArrayBuffer(sabOrSize);
  if (isShared(sabOrSize)) return sabOrSize;
  throw new TypeError("Cannot use memory: it must be a SharedArrayBuffer or a size");
}

/** The wire that the caller chose. @throws {TypeError} if there is none of that name. */
export function requireWire(wire: WireName | undefined): WireName {
  if (wire === undefined || wire === "ring" || wire === "mailbox") return wire ?? "ring";
  throw new TypeError(`wire must be "ring" or "mailbox": ${wire}`);
}
