/**
 * Moves JSON messages one way through eight words and a byte area, and works with an endpoint of
 * `sab-message-port` 1.0 on the other side. See `spec/mailbox.md`.
 *
 * @module
 */

import { isBatchable } from "./codec.ts";
import { TimeoutError } from "./error.ts";
import { PartReader, type Parts, PartWriter } from "./mailbox_parts.ts";
import { MailboxSide } from "./mailbox_side.ts";
import { deadlineOf, deadlineOfCall, type WaitOptions } from "./pipe.ts";
import { MAX_JSON_SIZE, MAX_MESSAGE_SIZE_MAX } from "./pipe.ts";
import { isPast, type Memory, requireTimeout } from "./segment.ts";
import { requireInteger } from "./segment_geometry.ts";
import { Turns } from "./wait.ts";
import type { EndpointOptions, Stats } from "./wait_endpoint.ts";

/** Nothing there yet; an element may be any value of JSON. */
const NONE: unique symbol = Symbol("none");

/** After so many reads in a row it is time to ask whether the event loop has turned. */
const STREAK = 64;

/**
 * Writes messages into a mailbox. All methods belong to the thread that attached it.
 *
 * @typeParam T What it writes: values of JSON.
 *
 * @example
 * ```ts
 * import { MailboxReader, MailboxWriter } from "@millrace/millrace/mailbox";
 *
 * const memory = new SharedArrayBuffer(32 + 1024);
 * using writer = MailboxWriter.attach<string>(memory); // usually in another thread
 * using reader = MailboxReader.attach<string>(memory);
 * writer.writeMany(["hello", "there"]);
 * console.log(reader.read(), reader.read()); // "hello" "there"
 * ```
 */
export class MailboxWriter<T = unknown> {
  readonly #side: MailboxSide;
  readonly #parts: PartWriter;
  readonly #turns: Turns = new Turns();

  private constructor(side: MailboxSide) {
    this.#side = side;
    this.#parts = new PartWriter(side);
  }

  /**
   * Takes the writing side of a mailbox: memory of which both sides know that it is one, blank at
   * first.
   *
   * @throws {SegmentError} `mailbox.size` if it is not aligned to 4 or has less than 33 bytes.
   */
  static attach<T = unknown>(memory: Memory, options: EndpointOptions = {}): MailboxWriter<T> {
    return new MailboxWriter<T>(new MailboxSide(memory, "write", options));
  }

  /** Whether the mailbox is closed, by either side, or broken by the peer. */
  get closed(): boolean {
    return this.#side.closed;
  }

  /** How often this side slept, and how often it woke late. */
  get stats(): Pick<Stats, "parks" | "lateWakes"> {
    return this.#side.stats;
  }

  /**
   * Whether parts of a write that gave up are still to be written. The next write writes them
   * first; `writeMany([])` writes only them.
   */
  get owes(): boolean {
    return this.#parts.owed !== undefined && !this.closed;
  }

  /**
   * Writes one message, and blocks while the byte area is the reader's. What does not fit it is
   * written in parts, each when the reader has taken the one before.
   *
   * @throws {TimeoutError} at the timeout. The message is not written, or, where `begun` of the
   * error is true, written in part: then the next write completes it. [mailbox.begun]
   * @throws {PeerClosedError} if the reader has closed.
   * @throws {ClosedError} if this side is closed.
   * @throws {CorruptError} if the reader broke the mailbox; again from every later call.
   * @throws {TypeError} if the value is none of JSON.
   */
  write(value: T, options?: WaitOptions): void {
    this.#write([value], options);
  }

  /** Writes many messages as one payload, which the reader takes apart. Throws as `write` does. */
  writeMany(values: readonly T[], options?: WaitOptions): void {
    this.#write(values, options);
  }

  /**
   * Writes one message if the byte area is free, and returns whether it did. Never waits.
   *
   * @throws {RangeError} if the message does not fit the byte area.
   */
  tryWrite(value: T): boolean {
    this.#side.hasTurn();
    const payload = this.#encode([value], false)!;
    if (this.#turns.busy) return false;
    if (payload.count > 1) {
      throw new RangeError(`Cannot write ${payload.size} bytes at once: the mailbox is too small`);
    }
    const { owed } = this.#parts;
    if (owed !== undefined && !this.#parts.advance(owed)) return false;
    return this.#parts.advance(payload);
  }

  /**
   * Writes one message without blocking. Messages keep the order of the calls. The promise settles
   * when all of the message is in the mailbox; until then it keeps the event loop alive.
   */
  writeAsync(value: T, options?: WaitOptions): Promise<void> {
    return this.#writeAsync([value], options);
  }

  /** `writeMany` without blocking. */
  writeManyAsync(values: readonly T[], options?: WaitOptions): Promise<void> {
    return this.#writeAsync(values, options);
  }

  /**
   * Closes the mailbox now, for both sides. What the reader has not taken is lost; waits end with
   * `pipe.closed` here, and with `peer.closed` there.
   */
  close(): void {
    this.#parts.owed = undefined;
    this.#side.close();
  }

  /** The same as `close`. */
  [Symbol.dispose](): void {
    this.close();
  }

  #write(values: readonly T[], options: WaitOptions | undefined): void {
    this.#side.hasTurn();
    options?.signal?.throwIfAborted();
    const payload = this.#encode(values, false);
    // Behind that: a `toJSON` may write too.
    if (this.#turns.busy) throw new TypeError("Cannot write: an asynchronous write is under way");
    const deadline = deadlineOfCall(options);
    // [mailbox.write_all]
    const { owed } = this.#parts;
    const waits = owed === undefined ? 0 : this.#finish(owed, payload, deadline, 0);
    if (payload !== undefined) this.#finish(payload, payload, deadline, waits);
  }

  /**
   * Writes what is left of a payload, in a call whose own is `due` and which has waited so often
   * before. Returns how often it has waited then.
   */
  #finish(payload: Parts, due: Parts | undefined, deadline: number, waits: number): number {
    for (; !this.#parts.advance(payload); waits++) {
      if (!this.#side.wait(deadline, waits)) throw timedOut(payload === due && payload.next > 0);
    }
    return waits;
  }

  async #writeAsync(values: readonly T[], options: WaitOptions | undefined): Promise<void> {
    this.#side.hasTurn();
    const signal = options?.signal;
    signal?.throwIfAborted();
    const deadline = deadlineOfCall(options);
    // Encoded at the call, and as a copy: other writes may come first.
    const payload = this.#encode(values, true);
    if (!this.#turns.tryTake() && !await this.#turns.take(deadline, signal)) throw timedOut(false);
    try {
      const { owed } = this.#parts;
      if (owed !== undefined) await this.#finishAsync(owed, payload, deadline, signal);
      if (payload !== undefined) await this.#finishAsync(payload, payload, deadline, signal);
    } finally {
      this.#turns.give();
    }
  }

  async #finishAsync(
    payload: Parts,
    due: Parts | undefined,
    deadline: number,
    signal: AbortSignal | undefined,
  ): Promise<void> {
    for (let late = false; !this.#parts.advance(payload); late = isPast(deadline)) {
      if (late || !await this.#side.waitAsync(deadline, signal)) {
        throw timedOut(payload === due && payload.next > 0);
      }
    }
  }

  /** The values as one payload, or undefined if there are none. [mailbox.payload] */
  #encode(values: readonly T[], apart: boolean): Parts | undefined {
    if (values.length === 0) return undefined;
    for (const value of values) {
      if (isBatchable(value)) continue;
      const what = typeof value === "object" ? "bytes" : typeof value;
      throw new TypeError(`Cannot write ${what}: a mailbox carries JSON`);
    }
    const payload = this.#parts.encode(values);
    // What may be under way when the next value is encoded must not lie in memory used again.
    if (apart || payload.count > 1) this.#parts.detach(payload);
    return payload;
  }
}

/**
 * Reads messages from a mailbox. All methods belong to the thread that attached it.
 *
 * @typeParam T What it reads.
 *
 * @example
 * ```ts
 * import { MailboxReader, MailboxWriter } from "@millrace/millrace/mailbox";
 *
 * const memory = new SharedArrayBuffer(32 + 1024);
 * using reader = MailboxReader.attach<{ n: number }>(memory);
 * using writer = MailboxWriter.attach<{ n: number }>(memory); // usually in another thread
 * const answer = reader.readAsync();
 * writer.write({ n: 1 });
 * console.log(await answer, reader.tryRead()); // { n: 1 } undefined
 * ```
 */
export class MailboxReader<T = unknown> {
  readonly #side: MailboxSide;
  readonly #parts: PartReader;
  readonly #turns: Turns = new Turns();
  /** Messages of the payload that was read last. */
  #queue: readonly unknown[] = [];
  #queueIndex = 0;
  #streak = 0;

  private constructor(side: MailboxSide, limit: number) {
    this.#side = side;
    this.#parts = new PartReader(side, limit);
  }

  /**
   * Takes the reading side of a mailbox: memory of which both sides know that it is one, blank at
   * first. Payloads of more than `maxMessageSize` bytes, by default 4 MiB, are dropped with
   * `message.size`; a payload holds all messages of one `writeMany`. See `ReaderOptions` for what
   * JSON costs.
   *
   * @throws {SegmentError} `mailbox.size` if it is not aligned to 4 or has less than 33 bytes.
   */
  static attach<T = unknown>(
    memory: Memory,
    options: EndpointOptions & { readonly maxMessageSize?: number | undefined } = {},
  ): MailboxReader<T> {
    const { maxMessageSize = MAX_JSON_SIZE } = options;
    requireInteger("maxMessageSize", maxMessageSize, 0, MAX_MESSAGE_SIZE_MAX);
    return new MailboxReader<T>(new MailboxSide(memory, "read", options), maxMessageSize);
  }

  /**
   * Whether the mailbox is closed, by either side, or broken by the peer. Messages of a payload
   * that was taken before can still be read.
   */
  get closed(): boolean {
    return this.#side.closed;
  }

  /** How often this side slept, and how often it woke late. */
  get stats(): Pick<Stats, "parks" | "lateWakes"> {
    return this.#side.stats;
  }

  /**
   * Reads one message and blocks until there is one. `undefined` at the timeout, which loses
   * nothing: parts that came are kept.
   *
   * @throws {MessageError} if a payload was lost; the next call goes on behind it.
   * @throws {PeerClosedError} if everything is read and the writer has closed.
   * @throws {ClosedError} if this side is closed.
   * @throws {CorruptError} if the writer broke the mailbox; again from every later call.
   */
  read(options?: WaitOptions): T | undefined {
    const timeout = requireTimeout(options?.timeout, Infinity);
    options?.signal?.throwIfAborted();
    let value = this.#take();
    if (value !== NONE) return value;
    const deadline = deadlineOf(timeout);
    for (let waits = 0; this.#side.wait(deadline, waits); waits++) {
      value = this.#take();
      if (value !== NONE) return value;
    }
    return undefined;
  }

  /** Reads one message if there is one. Takes one part at most. */
  tryRead(): T | undefined {
    const value = this.#take();
    return value === NONE ? undefined : value;
  }

  /**
   * `read` without blocking. Calls are served in order, and keep the event loop alive while they
   * wait.
   */
  async readAsync(options?: WaitOptions): Promise<T | undefined> {
    const deadline = deadlineOfCall(options);
    const signal = options?.signal;
    if (!this.#turns.tryTake() && !await this.#turns.take(deadline, signal)) return undefined;
    try {
      if (++this.#streak % STREAK === 0) await this.#side.giveWay();
      for (let late = false;; late = isPast(deadline)) {
        const value = this.#take();
        if (value !== NONE) return value;
        if (late || !await this.#side.waitAsync(deadline, signal)) return undefined;
      }
    } finally {
      this.#turns.give();
    }
  }

  /**
   * Closes the mailbox now, for both sides; what is not read is dropped. Waits end with
   * `pipe.closed` here, and with `peer.closed` there.
   */
  close(): void {
    this.#queue = [];
    this.#queueIndex = 0;
    this.#parts.drop();
    this.#side.close();
  }

  /** The same as `close`. */
  [Symbol.dispose](): void {
    this.close();
  }

  #take(): T | typeof NONE {
    if (this.#queueIndex === this.#queue.length) {
      const values = this.#parts.take();
      if (values === undefined) return NONE;
      this.#queueIndex = 0;
      this.#queue = values;
    }
    const value = this.#queue[this.#queueIndex++];
    if (this.#queueIndex === this.#queue.length) this.#queue = [];
    if (this.#queue.length === 0) this.#queueIndex = 0;
    return value as T;
  }
}

function timedOut(begun: boolean): TimeoutError {
  const what = begun ? "Cannot write all of it" : "Cannot write";
  return new TimeoutError(`${what}: the mailbox stayed full until the deadline`, begun);
}
