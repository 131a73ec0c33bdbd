/**
 * Messages one way, with the interface of the original's `SABPipe`.
 *
 * @module
 */

import { NO_BYTES } from "../codec/codec.ts";
import { layout } from "../memory/layout.ts";
import { requireInteger } from "../memory/plan.ts";
import { isPast, isShared } from "../memory/segment.ts";
import { now } from "../memory/clock.ts";
import { glance, Mode, noteAsked, readAsync, tryRead } from "../pipe/incoming.ts";
import { discard } from "../pipe/link.ts";
import { deadlineOf, MAX_MESSAGE_SIZE_MAX } from "../pipe/options.ts";
import { closedError, For, giveWayAtTimes, tendSoon } from "../pipe/tend.ts";
import { append, makeSend, pump, type Send, whileEncoding } from "../pipe/outgoing.ts";
import { Bit, hasMoved, store } from "../ring/side.ts";
import { wait } from "../wait/endpoint.ts";
import { giveWay, SETTLED, turn } from "../wait/loop.ts";
import { MailboxLink } from "./sab_mailbox.ts";
import {
  type Bounds,
  enforceLimit,
  type MessageHandler,
  type OverflowHandler,
  requireQueueLimit,
  type Taken,
} from "./sab_queue.ts";
import { isRingEndGone, RingLink } from "./sab_ring.ts";
import { disposedError, isClosing, openSegment, ringCapacity, type WireName } from "./sab_wire.ts";
import { hasChanged, isLinked } from "../wait/state.ts";
import { learns, slept, spinForAnswer } from "../wait/spin.ts";

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

/** Messages that are written as one burst, and the promise for all of them. */
interface Batch<T> {
  /** Oldest first. Those from `at` on are not encoded yet. */
  values: T[];
  at: number;
  readonly promise: Promise<void>;
  /** Why some of them are not written. */
  fault: Fault | undefined;
  readonly resolve: () => void;
  readonly reject: (reason: unknown) => void;
}

/** What a call has thrown, which may be undefined. */
interface Fault {
  readonly reason: unknown;
}

const DEFAULT_SIZE = 128 * 1024;
/** The part of a message that values take which are encoded together, judged by the last ones. */
const FILL = 7 / 8;
/** Milliseconds after which a blocking read tries again to write what its port has posted. */
const OWING_MS = 1;
/** Bursts after which a delivery checks whether the event loop has to turn. */
const STREAK = 8;

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
  /** Undefined if an earlier owner has destroyed this end of a ring. */
  readonly #link: RingLink | MailboxLink | undefined;
  readonly #bounds: Bounds<T>;
  /** What the link tends; the process lives for what is not written, and for `onmessage`. */
  readonly #delivery: { tend(): number; keeps: boolean; finish(): void } = {
    tend: () => this.isReader ? this.#tend() : this.#write() ? 0 : For.ROOM,
    keeps: false,
    finish() {},
  };
  /** Of a writer: what is posted and not begun. */
  #posted: Batch<T> | undefined;
  /** How many values are encoded together: on a mailbox all. */
  #step = 16;
  /** Of a reader: the rest of the bursts that were taken, newest first. */
  #queue: T[] = [];
  /** The writer of the same port. */
  #writer: SABPipe | undefined;
  #handler: MessageHandler<T> | null = null;
  #isDelivering = false;
  /** Whether a run of the delivery is under way: one burst in each microtask. */
  #isRunning = false;
  #streak = 0;
  /** When the event loop fell asleep for an answer, to learn how long that takes; 0 if not. */
  #asleep = 0;

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
    this.wire = capacity ? "ring" : "mailbox";
    if (!capacity) this.#step = Infinity;
    const { maxMessageSize = MAX_MESSAGE_SIZE_MAX } = options;
    requireInteger("maxMessageSize", maxMessageSize, 0, MAX_MESSAGE_SIZE_MAX);
    const index = +this.isReader;
    if (capacity) {
      const segment = openSegment(section, capacity);
      if (isRingEndGone(segment, index)) {
        this.#forget();
        return;
      }
      this.#link = new RingLink(segment, index, maxMessageSize);
    } else this.#link = new MailboxLink(section, index, maxMessageSize);
    const link = this.#link;
    link.delivery = this.#delivery;
    if (link.incoming) link.incoming.take = this.#fill;
  }

  /** Joins this reader and a writer to one port: the reads first write what is posted. @internal */
  _join(writer: SABPipe): void {
    if (writer.#link) this.#writer = writer;
  }

  /** Most messages in the queue of this end; `null` for no limit. The oldest are discarded. */
  get queueLimit(): number | null {
    return this.#bounds.limit;
  }

  set queueLimit(value: number | null) {
    requireQueueLimit(value);
    this.#bounds.limit = value;
    this.#enforce();
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
    if (this.i32 === null || hasChanged(this.#link!)) return true;
    const { incoming } = this.#link!;
    return incoming !== undefined && (incoming.bits & Bit.ENDED) !== 0;
  }

  /**
   * Ends the pipe for both sides, now. Every wait of either side ends with `SABPipe disposed`;
   * messages on their way are lost. Later calls do nothing.
   */
  destroy(): void {
    if (this.i32 === null) return;
    this.#forget();
    const link = this.#link!;
    const posted = this.#posted;
    this.#posted = undefined;
    discard(link);
    link.leave();
    if (posted) this.#settle(posted, disposedError());
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
    if (!this.#posted && this.isDisposed()) this.#throwDisposed();
    const { values, promise } = this.#posted ??= makeBatch();
    values.push(message);
    const link = this.#link!;
    if (!link.isDue) { // messages posted until the end of this job join the burst
      link.isDue = true;
      (giveWayAtTimes(link) ?? SETTLED).then(this.#flush);
    }
    if (this.#bounds.limit !== null) this.#enforce();
    return promise;
  }

  /**
   * Reads one message, or up to `maxMessages` that have arrived, and blocks until there is one.
   * Returns `null`, or an empty array, after `timeout` milliseconds, or at once if not `blocking`.
   * The parts of a large message that have arrived by then are kept for the next read.
   *
   * @throws {Error} if this is the writer, the pipe is disposed, or `onmessage` is set.
   * @throws {ForbiddenError} if it would have to block on a thread that must not block.
   */
  read<N extends number = 1>(
    timeout: number = Infinity,
    blocking: boolean = true,
    maxMessages: N = 1 as N,
  ): Taken<T, N> {
    this.#requireReader("read");
    this.#look(blocking && timeout > 0 ? timeout : 0);
    return this.#take(maxMessages);
  }

  /** Reads what has arrived, without waiting: the same as `read(0, false, maxMessages)`. */
  tryRead<N extends number = 1>(maxMessages: N = 1 as N): Taken<T, N> {
    return this.read(0, false, maxMessages);
  }

  /** Returns the next message without taking it, or `null`. */
  tryPeek(): T | null {
    this.#requireReader("tryPeek");
    this.#look(0);
    return this.#queue.at(-1) ?? null;
  }

  /** Reads as `read` does, without blocking. Calls are served in order. */
  async asyncRead<N extends number = 1>(
    timeout: number = Infinity,
    maxMessages: N = 1 as N,
  ): Promise<Taken<T, N>> {
    this.#requireReader("asyncRead");
    const options = { timeout: timeout > 0 ? timeout : 0 };
    const take = () => this.#take(maxMessages);
    try {
      const taken = await readAsync(this.#link!.incoming!, Mode.VALUE, options, take);
      return taken as Taken<T, N> | undefined ?? take();
    } catch (error) {
      throw this.#report(error);
    }
  }

  /**
   * The handler of messages. While it is set, the reads throw. Errors that it throws are ignored.
   * `null` stops the delivery; messages that have arrived are kept for reads, or for another
   * handler.
   */
  get onmessage(): MessageHandler<T> | null {
    return this.#handler;
  }

  set onmessage(handler: MessageHandler<T> | null) {
    if (this.isWriter) throw new Error("Cannot set onmessage: only the reader can");
    if (handler !== null && handler !== undefined && typeof handler !== "function") {
      throw new TypeError("Cannot set onmessage: it must be a function or null");
    }
    const link = this.#link;
    if (!link) return;
    this.#handler = handler ?? null;
    this.#deliver(this.#handler !== null);
    if (this.#isRunning) return;
    this.#isRunning = this.#isDelivering;
    if (this.#isRunning) this.#run();
    else link.tend();
  }

  /** Whether messages are being delivered to `onmessage`. */
  get _messageLoopActive(): boolean {
    return this.#isDelivering;
  }

  /**
   * Puts messages, oldest first, in front of all others. `MWChannel` uses it.
   *
   * @internal
   */
  _unread(messages: T[]): void {
    this.#queue = this.#queue.concat(messages.reverse());
  }

  #forget(): void {
    this._sab = this.i32 = this.u8 = null;
  }

  #throwDisposed(): never {
    this.destroy();
    throw disposedError();
  }

  #requireReader(verb: string): void {
    if (this.isWriter) throw new Error(`Cannot ${verb}: only the reader can`);
    if (this.#handler !== null) throw new Error(`Cannot ${verb} while onmessage is active`);
    if (this.isDisposed()) this.#throwDisposed();
  }

  /** Turns an error of the link into the one that the caller gets. */
  #report(error: unknown): unknown {
    if (!isClosing(error)) return error;
    this.destroy();
    return disposedError(error);
  }

  /** Cuts the queue to its limit. */
  #enforce(): void {
    if (this.isReader) enforceLimit(this.#queue, "newest first", this.#bounds);
    else if (this.#posted) enforceLimit(this.#posted.values, "oldest first", this.#bounds);
  }

  /** Writes what the job before has posted. If that leaves nothing, the link has nothing to do. */
  readonly #flush = (): void => {
    const link = this.#link!;
    link.isDue = false;
    if (!this.#write() || link.isKeeping) link.tend();
  };

  /** Writes what is posted, as far as there is room. Returns whether nothing is left. */
  #write(): boolean {
    const out = this.#link!.outgoing!;
    out.mayLoad = true;
    const mayWrite = !(out.bits & Bit.ENCODING); // otherwise this is a `toJSON`, which reads
    while (mayWrite && (!out.first || pump(out)) && this.#posted) {
      // As in the original, messages posted until the reader has emptied a mailbox join the burst.
      if (this.wire === "mailbox" && !hasMoved(out)) break;
      const batch = this.#posted;
      this.#posted = undefined;
      this.#writeBatch(batch);
    }
    const isDone = !out.first && !this.#posted;
    this.#delivery.keeps = !isDone;
    return isDone;
  }

  /** Places a burst, message by message, as far as there is room; settles it when all is placed. */
  #writeBatch(batch: Batch<T>): void {
    const out = this.#link!.outgoing!;
    try {
      for (let send; this.#encodeNext(batch, send = out.spare);) {
        if (out.first || !isLinked(out) || !out.place(out, send)) {
          out.spare = makeSend(layout.FRAME_KIND_DATA);
          send.settle = (reason) =>
            reason === undefined ? this.#writeBatch(batch) : this.#settle(batch, reason);
          return append(out, send);
        }
        send.source = NO_BYTES;
        send.text = undefined;
        // A reader that is awake can take this message while the next one is encoded. A reader that
        // sleeps is woken once, for all the messages that there is room for.
        if (Atomics.load(out.words, out.otherWants) === 0) store(out);
      }
    } catch (reason) {
      return this.#settle(batch, reason);
    } finally {
      store(out);
    }
    this.#settle(batch);
  }

  /**
   * Makes the next message of a burst. On a ring, a message holds as many values as surely fit a
   * frame; on a mailbox, all. What cannot be encoded is lost alone. False: there are no more.
   */
  #encodeNext(batch: Batch<T>, send: Send): boolean {
    const link = this.#link!;
    const out = link.outgoing!;
    const most = out.run + 2; // with its brackets
    while (batch.at < batch.values.length) {
      const { values, at } = batch;
      const some = values.slice(at, at + this.#step);
      const { length } = some;
      let text: string | undefined;
      try {
        text = whileEncoding(out, JSON.stringify, some);
      } catch (reason) {
        const isSound = (value: T): boolean => {
          try {
            whileEncoding(out, JSON.stringify, [value]);
            return true;
          } catch (reason) {
            batch.fault ??= { reason };
            return false;
          }
        };
        batch.values = values.slice(at).filter(isSound);
        batch.at = 0;
        // They are sound one by one, but all of them make a text that is too long.
        if (batch.values.length === values.length - at) throw reason;
      }
      // A `toJSON` may have closed this end.
      if (out.bits & Bit.STOPPED) throw closedError(link, "write") ?? out.fault;
      if (text === undefined) continue;
      this.#step = Math.max(1, Math.floor(most * FILL * length / text.length));
      if (length > 1 && text.length > most) continue;
      batch.at += length;
      const isOne = length === 1 && this.wire === "ring";
      send.text = isOne ? text.slice(1, -1) : text;
      send.code = isOne ? layout.CODEC_JSON : layout.CODEC_JSON_BATCH;
      return true;
    }
    return false;
  }

  /** Settles the promise of a burst: with this reason, if there is one, or with the fault. */
  #settle({ fault, promise, resolve, reject }: Batch<T>, reason?: unknown): void {
    if (reason === undefined && !fault) return resolve();
    // Most callers ignore the promise: its rejection must not end their program.
    promise.catch(() => {});
    reject(reason === undefined ? fault!.reason : this.#report(reason));
  }

  /**
   * Has the queue hold a burst, if one comes within so many milliseconds. First, and while it
   * blocks, it writes what the port has posted.
   */
  #look(timeout: number): void {
    const link = this.#link!;
    const incoming = link.incoming!;
    const writer = this.#writer;
    try {
      for (let waits = -1, deadline = Infinity;; waits++) {
        const isDone = !writer || writer.#write();
        if (tryRead(incoming, Mode.VALUE) || timeout === 0) break;
        if (waits < 0) {
          deadline = deadlineOf({ timeout });
          if (glance(incoming, writer && writer.#link!.outgoing)) continue;
          waits = 0;
        } else if (isPast(deadline)) break;
        const most = isDone ? deadline : Math.min(deadline, now() + OWING_MS);
        if (!wait(link, For.MESSAGES, most, waits) && isDone) break;
      }
    } catch (error) {
      throw this.#report(error);
    }
    if (incoming.takers.length > 0) tendSoon(link); // for what this call leaves
  }

  /**
   * Has the queue hold a burst, if there is one; with another mode than `VALUE`, one more. Stands
   * in the place of what takes one message.
   */
  readonly #fill = (_inc: unknown, mode: Mode, mayLoad: boolean): unknown => {
    if (mode === Mode.VALUE && this.#queue.length > 0) return true;
    const link = this.#link!;
    const burst = link.next(mayLoad);
    if (!burst) return undefined;
    if (this.#asleep > 0) slept(link.endpoint.spinner, now() - this.#asleep);
    this.#asleep = 0;
    // The link gives a burst oldest first. All of its messages are newer than those in the queue.
    const newer = (burst as T[]).reverse();
    this.#queue = this.#queue.length === 0 ? newer : newer.concat(this.#queue);
    if (this.#bounds.limit !== null) this.#enforce();
    return true;
  };

  /** Takes messages out of the queue, after filling it with more bursts if it holds too few. */
  #take<N extends number>(most: N): Taken<T, N> {
    if (most as number === 1) {
      return (this.#queue.length === 0 ? null : this.#queue.pop()) as Taken<T, N>;
    }
    try {
      // If the queue has a limit, it takes no more: they could push out messages not yet read.
      while (this.#queue.length > 0 && this.#queue.length < most && this.queueLimit === null) {
        if (!this.#fill(undefined, Mode.MESSAGE, true)) break;
      }
    } catch (error) {
      if (!isClosing(error)) throw error; // otherwise the next call throws it
    }
    const queue = this.#queue;
    if (queue.length > most) return (most > 0 ? queue.splice(-most) : []) as Taken<T, N>;
    this.#queue = [];
    return queue as Taken<T, N>;
  }

  #deliver(on: boolean): void {
    if (on !== this.#isDelivering) turn.listening += on ? 1 : -1;
    this.#isDelivering = this.#delivery.keeps = on;
  }

  /** Begins a run of the delivery, if there is something. Returns what to wait for. */
  #tend(): number {
    if (!this.#isDelivering || this.#isRunning || this.#link!.incoming!.takers.length > 0) return 0;
    if (!this.#isReady()) return this.#isDelivering ? For.MESSAGES : 0;
    this.#isRunning = true;
    SETTLED.then(this.#run);
    return 0;
  }

  readonly #run = (): void => {
    const link = this.#link!;
    const isThere = this.#isDelivering && this.#queue.length > 0;
    // Those who wait come first.
    if (
      link.incoming!.takers.length > 0 || !isThere && !this.#isReady() && !this.#findAnswer()
    ) {
      this.#isRunning = false;
      return link.tend();
    }
    for (let handler; this.#queue.length > 0 && (handler = this.#handler);) {
      try {
        handler({ data: this.#queue.pop()! });
      } catch {
        // As in the original, a handler that throws does not stop the delivery.
      }
    }
    // Let the promises of the handler run first, and write what they post.
    ((++this.#streak % STREAK === 0 && giveWay()) || SETTLED).then(this.#run);
  };

  /** Whether there may be something to deliver; takes the next burst if the queue is empty. */
  #isReady(): boolean {
    if (!this.#isDelivering) return false;
    try {
      return tryRead(this.#link!.incoming!, Mode.VALUE) !== undefined;
    } catch (error) {
      this.#report(error);
      // If only a message was lost, or the overflow handler threw, the next burst may be good.
      const isOver = this.isDisposed();
      if (isOver) this.#deliver(false);
      return !isOver;
    }
  }

  /**
   * Spins for an answer to what was posted, which comes at once if the peer is awake. In its first
   * rounds it may not be.
   */
  #findAnswer(): boolean {
    const link = this.#link!;
    const writer = this.#writer;
    const isDue = this.#isDelivering && this.#streak > STREAK &&
      noteAsked(link.incoming!, writer && writer.#link!.outgoing) && turn.listening < 2;
    const isFound = isDue && spinForAnswer(link, For.MESSAGES);
    this.#asleep = isDue && !isFound && learns(link.endpoint.spinner) ? now() : 0;
    return isFound && this.#isReady();
  }
}

function makeBatch<T>(): Batch<T> {
  // Node 20 lacks `Promise.withResolvers`.
  let resolve!: () => void;
  let reject!: (error: unknown) => void;
  const promise = new Promise<void>((yes, no) => {
    resolve = yes;
    reject = no;
  });
  return { values: [], at: 0, promise, resolve, reject, fault: undefined };
}

/** Returns new shared memory of the given size in bytes, or the memory that the caller passes. */
export function toSharedMemory(sabOrSize: SharedArrayBuffer | number): SharedArrayBuffer {
  if (typeof sabOrSize === "number") return new SharedArrayBuffer(sabOrSize);
  if (isShared(sabOrSize)) return sabOrSize;
  throw new TypeError("Cannot use memory: it must be a SharedArrayBuffer or a size");
}

/** Returns the wire that the caller chose. @throws {TypeError} if there is no wire of that name. */
function requireWire(wire: WireName | undefined): WireName {
  if (wire === undefined || wire === "ring" || wire === "mailbox") return wire ?? "ring";
  throw new TypeError(`wire must be "ring" or "mailbox": ${wire}`);
}
