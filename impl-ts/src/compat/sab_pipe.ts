/**
 * Messages one way, with the interface of the original's `SABPipe`.
 *
 * @module
 */

import { layout } from "../memory/layout.ts";
import { requireInteger } from "../memory/plan.ts";
import { isShared } from "../memory/segment.ts";
import { MAX_MESSAGE_SIZE_MAX } from "../pipe/link.ts";
import { MailboxReaderWire, MailboxWriterWire } from "./sab_mailbox.ts";
import { type Bounds, type OverflowHandler, requireQueueLimit, type Taken } from "./sab_queue.ts";
import { type MessageHandler, SabReader } from "./sab_reader.ts";
import { isRingEndGone, RingReaderWire, RingWriterWire } from "./sab_ring.ts";
import { disposedError, isClosing, openSegment, ringCapacity, type WireName } from "./sab_wire.ts";
import { SabWriter } from "./sab_writer.ts";

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
   * `mailbox` chooses the original's wire; both sides must choose the same. The default is the ring
   * if the section can hold one, and otherwise the mailbox.
   */
  readonly wire?: WireName | undefined;
  /**
   * The largest message in bytes that a reader accepts; set it for a peer that is not trusted. A
   * burst may count as one message. A larger one is dropped, and the read throws a `MessageError`
   * with `message.size`. By default any size is accepted, as in the original; see `ReaderOptions`
   * for what parsing costs.
   */
  readonly maxMessageSize?: number | undefined;
}

const DEFAULT_SIZE = 128 * 1024;

/**
 * One end of a pipe: a writer, which has `postMessage`, or a reader, which has `read`, `asyncRead`,
 * `tryRead`, `tryPeek` and `onmessage`. The other end is created on the same memory, offset and
 * section size. All methods belong to the thread that created the object.
 *
 * A method of the other role throws an `Error`. Once either end is destroyed, every method throws
 * an `Error` with the message `SABPipe disposed`.
 *
 * @typeParam T What it carries: JSON values.
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
  /** The name, which a bundler would shorten. @internal */
  static readonly name: string = "SABPipe";

  /** On the mailbox: index in `i32` of the status word. */
  static readonly STATUS: number = layout.MAILBOX_STATUS_WORD;
  /** On the mailbox: index in `i32` of the word that says whose turn it is. */
  static readonly RW_SIGNAL: number = layout.MAILBOX_SIGNAL_WORD;
  /** On the mailbox: index in `i32` of the part's length in bytes. */
  static readonly W_DATA_LEN: number = layout.MAILBOX_LENGTH_WORD;
  /** On the mailbox: index in `i32` of the number of parts. */
  static readonly NUM_PARTS: number = layout.MAILBOX_PART_COUNT_WORD;
  /** On the mailbox: index in `i32` of the index of this part. */
  static readonly PART_INDEX: number = layout.MAILBOX_PART_INDEX_WORD;
  /** On the mailbox: index in `i32` of a word without meaning. */
  static readonly RESERVED_1: number = layout.MAILBOX_RESERVED_OFFSET >> 2;
  /** On the mailbox: index in `i32` of a word without meaning. */
  static readonly RESERVED_2: number = (layout.MAILBOX_RESERVED_OFFSET >> 2) + 1;
  /** On the mailbox: index in `i32` of a word without meaning. */
  static readonly RESERVED_3: number = (layout.MAILBOX_RESERVED_OFFSET >> 2) + 2;
  /** On the mailbox: the number of control words. */
  static readonly CONTROL_TOP: number = layout.MAILBOX_HEADER_SIZE >> 2;
  /** On the mailbox: offset in bytes of the byte area. */
  static readonly DATA_OFFSET: number = layout.MAILBOX_HEADER_SIZE;
  /** On the mailbox: the status of a mailbox that is in use. */
  static readonly STATUS_ACTIVE: number = layout.MAILBOX_STATUS_ACTIVE;
  /** On the mailbox: the status and the signal of a disposed mailbox. */
  static readonly STATUS_DISPOSED: number = layout.MAILBOX_STATUS_DISPOSED;
  /** On the mailbox: the signal while it is the writer's turn. */
  static readonly RW_CAN_WRITE: number = layout.MAILBOX_SIGNAL_MAY_WRITE;
  /** On the mailbox: the signal while it is the reader's turn. */
  static readonly RW_CAN_READ: number = layout.MAILBOX_SIGNAL_MAY_READ;

  /** Whether this is the writing end. */
  readonly isWriter: boolean;
  /** Whether this is the reading end. */
  readonly isReader: boolean;
  /** The wire that the pipe uses in its section. */
  readonly wire: WireName;
  /** The shared memory that contains the section. */
  readonly buffer: SharedArrayBuffer;
  /** Size of the section less 32 bytes: on the mailbox, the size of the largest part. */
  readonly maxChunk: number;
  /** Another name of `buffer`; `null` once the pipe is found disposed. */
  _sab: SharedArrayBuffer | null;
  /** The section as 32-bit words; `null` once the pipe is found disposed. */
  i32: Int32Array | null;
  /** The section as bytes; `null` once the pipe is found disposed. */
  u8: Uint8Array | null;
  readonly #writer: SabWriter<T> | undefined;
  readonly #reader: SabReader<T> | undefined;
  readonly #bounds: Bounds<T>;

  /**
   * Creates an end of a pipe on new shared memory of the given size in bytes, or on existing
   * memory.
   *
   * @throws {Error} if `role` is neither `"r"` nor `"w"`, or `queueLimit` is not a valid limit.
   * @throws {TypeError} if `sabOrSize` is neither a number nor a `SharedArrayBuffer`.
   * @throws {RangeError} if the section lies outside the memory, or not at a multiple of 4.
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
    if (segment !== undefined && isRingEndGone(segment, this.isWriter ? 0 : 1)) {
      this._sab = this.i32 = this.u8 = null; // its owner has destroyed this end, for ever
    } else if (role === "w") {
      const wire = segment ? new RingWriterWire(segment) : new MailboxWriterWire(section);
      this.#writer = new SabWriter<T>(wire, this.#bounds, this);
    } else {
      const { maxMessageSize = MAX_MESSAGE_SIZE_MAX } = options;
      requireInteger("maxMessageSize", maxMessageSize, 0, MAX_MESSAGE_SIZE_MAX);
      const wire = segment
        ? new RingReaderWire(segment, maxMessageSize)
        : new MailboxReaderWire(section, maxMessageSize);
      this.#reader = new SabReader<T>(wire, this.#bounds, this);
    }
  }

  /**
   * Joins this reader and a writer to one port: from now on the reads first write what the writer
   * has queued, and expect answers to it.
   *
   * @internal
   */
  _join(writer: SABPipe): void {
    if (this.#reader !== undefined) this.#reader.writer = writer.#writer;
  }

  /** @internal */
  _report(error: unknown): unknown {
    if (!isClosing(error)) return error;
    this.destroy();
    return disposedError(error);
  }

  /** Most messages in the queue of this end; `null` for no limit. The oldest are discarded. */
  get queueLimit(): number | null {
    return this.#bounds.limit;
  }

  set queueLimit(value: number | null) {
    requireQueueLimit(value);
    this.#bounds.limit = value;
    this.#writer?.enforce();
    this.#reader?.enforce();
  }

  /**
   * Called with the queue itself before it is cut to `queueLimit`. The handler may change the
   * queue; whatever then exceeds the limit is discarded. A reader's queue has the newest message
   * first.
   */
  get onQueueOverflow(): OverflowHandler<T> | null {
    return this.#bounds.onOverflow;
  }

  set onQueueOverflow(handler: OverflowHandler<T> | null) {
    this.#bounds.onOverflow = handler ?? null;
  }

  /** Whether either end was destroyed. */
  isDisposed(): boolean {
    return this.i32 === null || (this.#writer ?? this.#reader)!.wire.disposed;
  }

  /**
   * Ends the pipe for both sides, now. Every wait of either side ends with `SABPipe disposed`;
   * messages on their way are lost. Later calls do nothing.
   */
  destroy(): void {
    if (this.i32 === null) return;
    this._sab = this.i32 = this.u8 = null;
    this.#writer?.drop();
    (this.#writer ?? this.#reader)!.wire.close();
  }

  /** Another name of `destroy`. */
  close(): void {
    this.destroy();
  }

  /**
   * Queues a message. All messages posted in one turn of the event loop are written as one burst.
   * The promise is that of the burst: it is fulfilled when the burst is written, and rejected if
   * the pipe is destroyed before that or a value of the burst cannot be encoded as JSON.
   *
   * @throws {Error} if this is the reader, or the pipe is disposed.
   */
  postMessage(message: T): Promise<void> {
    if (this.isReader) throw new Error("Cannot post: only the writer can write");
    // Checked once a burst; if the other side ends the pipe later, the promise is rejected.
    if (!this.#writer?.isGathering) this.#requireOpen();
    return this.#writer!.post(message);
  }

  /**
   * Reads one message, or up to `maxMessages` of those that have arrived, and blocks until there is
   * one. Returns `null`, or an empty array, after `timeout` milliseconds, or at once if not
   * `blocking`. The parts of a large message that have arrived by then are kept for the next read.
   *
   * @throws {Error} if this is the writer, the pipe is disposed, or `onmessage` is set.
   * @throws {ForbiddenError} if it would have to block on a thread that must not block.
   */
  read<N extends number = 1>(
    timeout: number = Infinity,
    blocking: boolean = true,
    maxMessages: N = 1 as N,
  ): Taken<T, N> {
    return this.#requireReader("read").read(timeout, blocking, maxMessages);
  }

  /** Reads what has arrived, without waiting: the same as `read(0, false, maxMessages)`. */
  tryRead<N extends number = 1>(maxMessages: N = 1 as N): Taken<T, N> {
    return this.read(0, false, maxMessages);
  }

  /** Returns the next message without taking it, or `null`. */
  tryPeek(): T | null {
    return this.#requireReader("tryPeek").peek();
  }

  /** Reads as `read` does, without blocking. Calls are served in order. */
  async asyncRead<N extends number = 1>(
    timeout: number = Infinity,
    maxMessages: N = 1 as N,
  ): Promise<Taken<T, N>> {
    return await this.#requireReader("asyncRead").readAsync(timeout, maxMessages);
  }

  /**
   * The handler of messages. While it is set, the reads throw. Errors that it throws are ignored.
   * `null` stops the delivery; messages that have arrived are kept for reads, or for another
   * handler.
   */
  get onmessage(): MessageHandler<T> | null {
    return this.#reader?.handler ?? null;
  }

  set onmessage(handler: MessageHandler<T> | null) {
    if (this.isWriter) throw new Error("Cannot set onmessage: only the reader can");
    if (handler !== null && handler !== undefined && typeof handler !== "function") {
      throw new TypeError("Cannot set onmessage: it must be a function or null");
    }
    if (this.#reader !== undefined) this.#reader.handler = handler ?? null;
  }

  /** Whether messages are being delivered to `onmessage`. */
  get _messageLoopActive(): boolean {
    return this.#reader?.delivering ?? false;
  }

  /**
   * Puts messages, oldest first, in front of all others. `MWChannel` uses it.
   *
   * @internal
   */
  _unread(messages: T[]): void {
    this.#reader?.unread(messages);
  }

  #requireOpen(): void {
    if (!this.isDisposed()) return;
    this.destroy();
    throw disposedError();
  }

  #requireReader(verb: string): SabReader<T> {
    if (this.isWriter) throw new Error(`Cannot ${verb}: only the reader can`);
    if (this.onmessage !== null) throw new Error(`Cannot ${verb} while onmessage is active`);
    this.#requireOpen();
    return this.#reader!;
  }
}

/** Returns new shared memory of the given size in bytes, or the memory that the caller passes. */
export function toSharedMemory(sabOrSize: SharedArrayBuffer | number): SharedArrayBuffer {
  if (typeof sabOrSize === "number") return new SharedArrayBuffer(sabOrSize);
  if (isShared(sabOrSize)) return sabOrSize;
  throw new TypeError("Cannot use memory: it must be a SharedArrayBuffer or a size");
}

/** Returns the wire that the caller chose. @throws {TypeError} if there is no wire of that name. */
export function requireWire(wire: WireName | undefined): WireName {
  if (wire === undefined || wire === "ring" || wire === "mailbox") return wire ?? "ring";
  throw new TypeError(`wire must be "ring" or "mailbox": ${wire}`);
}
