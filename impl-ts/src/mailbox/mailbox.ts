/**
 * Moves JSON messages one way through eight words and a byte area. Either side works with an
 * endpoint of `sab-message-port` 1.0 at the other end. See `spec/mailbox.md`.
 *
 * @module
 */

import { encodeText, isScratch } from "../codec/codec.ts";
import { isBatchable } from "../codec/payload.ts";
import { requireJson } from "../codec/loss.ts";
import { MillraceError, requireOptions } from "../error.ts";
import { PartReader, type Parts, PartWriter } from "./parts.ts";
import { MailboxSide } from "./side.ts";
import {
  deadlineOf,
  deadlineOfCall,
  MAX_JSON_SIZE,
  MAX_MESSAGE_SIZE_MAX,
  type WaitOptions,
} from "../pipe/options.ts";
import { isBytes } from "../memory/realm.ts";
import { isPast, type Memory, requireTimeout } from "../memory/segment.ts";
import { requireInteger } from "../memory/plan.ts";
import { giveWay, Turn } from "../wait/loop.ts";
import { type Sleeping, Turns, wakeLater } from "../wait/waitable.ts";
import { type EndpointOptions, type Stats, wait } from "../wait/endpoint.ts";

/** Stands for "no message yet": a message itself may be any JSON value. */
const NONE: unique symbol = Symbol("none");

/** What a side waits for. */
const TURN = 1;

/**
 * Writes messages into a mailbox. All methods belong to the thread that attached it.
 *
 * @typeParam T What it writes: JSON values.
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
  /** The name, which a bundler would shorten. @internal */
  static readonly name: string = "MailboxWriter";

  readonly #side: MailboxSide;
  readonly #turn: Sleeping;
  readonly #parts: PartWriter;
  readonly #turns: Turns = new Turns();

  private constructor(side: MailboxSide) {
    this.#side = side;
    this.#turn = waiterOf(side);
    this.#parts = new PartWriter(side);
  }

  /**
   * Takes the writing side of a mailbox. The memory does not say that it is a mailbox: both sides
   * must know it. It must be blank before its first use.
   *
   * @throws {SegmentError} `mailbox.size` if it is not aligned to 4 or has less than 33 bytes.
   */
  static attach<T = unknown>(memory: Memory, options: EndpointOptions = {}): MailboxWriter<T> {
    return new MailboxWriter<T>(new MailboxSide(memory, "write", requireOptions(options)));
  }

  /** Whether either side has closed the mailbox, or the peer has broken it. */
  get closed(): boolean {
    return this.#side.closed;
  }

  /** How often this side slept, and how often it woke late. */
  get stats(): Pick<Stats, "parks" | "lateWakes"> {
    return statsOf(this.#side);
  }

  /**
   * Whether a write that timed out has left parts of its payload unwritten. The next write writes
   * them first; `writeMany([])` writes only them.
   */
  get owes(): boolean {
    return this.#parts.owed !== undefined && !this.closed;
  }

  /**
   * Writes one message. Blocks while the byte area holds a part that the reader has not taken. A
   * message that does not fit the byte area is written in parts, each after the reader has taken
   * the one before.
   *
   * @throws {TimeoutError} at the timeout. If `begun` of the error is false, nothing was written.
   * If it is true, a part was written, and the next write completes the message. [mailbox.begun]
   * @throws {PeerClosedError} if the reader has closed.
   * @throws {ClosedError} if this side is closed.
   * @throws {CorruptError} if the reader broke the mailbox; every later call throws it again.
   * @throws {TypeError} if the value is not a JSON value.
   */
  write(value: T, options?: WaitOptions): void {
    this.#write([value], options);
  }

  /** Writes several messages as one payload; the reader gets each one. Throws as `write` does. */
  writeMany(values: readonly T[], options?: WaitOptions): void {
    this.#write(values, options);
  }

  /**
   * Writes one message if the byte area is free. Returns whether it did. Never waits.
   *
   * @throws {RangeError} if the message does not fit the byte area.
   */
  tryWrite(value: T): boolean {
    this.#side.checkTurn();
    const payload = this.#encode([value], false)!;
    if (this.#turns.busy) return false;
    if (payload.count > 1) {
      throw new RangeError(`Cannot write ${payload.size} bytes at once: the mailbox is too small`);
    }
    return this.#parts.advance(payload);
  }

  /**
   * Writes one message without blocking. Messages keep the order of the calls. The promise resolves
   * when all of the message is in the mailbox; until then it keeps the event loop alive.
   */
  writeAsync(value: T, options?: WaitOptions): Promise<void> {
    return this.#writeAsync([value], options);
  }

  /** Does what `writeMany` does, without blocking. */
  writeManyAsync(values: readonly T[], options?: WaitOptions): Promise<void> {
    return this.#writeAsync(values, options);
  }

  /**
   * Closes the mailbox now, for both sides. A part that the reader has not taken is lost. Waits end
   * with `pipe.closed` on this side, and with `peer.closed` on the other.
   */
  close(): void {
    this.#parts.owed = undefined;
    this.#side.close();
  }

  /** Closes the mailbox; see `close`. */
  [Symbol.dispose](): void {
    this.close();
  }

  #write(values: readonly T[], options: WaitOptions | undefined): void {
    this.#side.checkTurn();
    options?.signal?.throwIfAborted();
    const payload = this.#encode(values, false);
    // Checked after encoding, since a `toJSON` method may call this writer too.
    if (this.#turns.busy) throw new TypeError("Cannot write: an asynchronous write is under way");
    const deadline = deadlineOfCall(options);
    for (let waits = 0; !this.#parts.advance(payload); waits++) {
      if (!waitForTurn(this.#turn, deadline, waits)) throw timedOut(payload);
    }
  }

  async #writeAsync(values: readonly T[], options: WaitOptions | undefined): Promise<void> {
    this.#side.checkTurn();
    const signal = options?.signal;
    signal?.throwIfAborted();
    const deadline = deadlineOfCall(options);
    // Encoded now, and into memory of its own, because other writes may come before this one.
    const payload = this.#encode(values, true);
    if (!this.#turns.tryTake() && !await this.#turns.take(deadline, signal)) {
      throw timedOut(undefined);
    }
    try {
      for (let late = false; !this.#parts.advance(payload); late = isPast(deadline)) {
        if (late || !await wakeLater(this.#turn, TURN, deadline, signal)) throw timedOut(payload);
      }
    } finally {
      this.#turns.give();
    }
  }

  /** The values as one payload, or undefined if there are none. [mailbox.payload] */
  #encode(values: readonly T[], apart: boolean): Parts | undefined {
    if (values.length === 0) return undefined;
    for (const value of values) {
      if (isBytes(value)) throw new TypeError("Cannot write bytes: a mailbox carries JSON");
      requireJson(value);
      if (isBatchable(value)) continue;
      throw new TypeError(`Cannot write ${typeof value}: a mailbox carries JSON`);
    }
    const source = encodeText(JSON.stringify(values));
    const payload = this.#parts.begin(source, !isScratch(source));
    // A payload still unfinished when the next one is encoded must not lie in memory that is
    // reused.
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
  /** The name, which a bundler would shorten. @internal */
  static readonly name: string = "MailboxReader";

  readonly #side: MailboxSide;
  readonly #turn: Sleeping;
  readonly #parts: PartReader;
  readonly #turns: Turns = new Turns();
  /** Messages of the payload that was read last. */
  #queue: readonly unknown[] = [];
  #queueIndex = 0;
  #streak = 0;

  private constructor(side: MailboxSide, limit: number) {
    this.#side = side;
    this.#turn = waiterOf(side);
    this.#parts = new PartReader(side, limit);
  }

  /**
   * Takes the reading side of a mailbox. The memory does not say that it is a mailbox: both sides
   * must know it. It must be blank before its first use. A payload of more than `maxMessageSize`
   * bytes, by default 4 MiB, is dropped with `message.size`; a payload holds all messages of one
   * `writeMany`. See `ReaderOptions` for what JSON costs.
   *
   * @throws {SegmentError} `mailbox.size` if it is not aligned to 4 or has less than 33 bytes.
   */
  static attach<T = unknown>(
    memory: Memory,
    options: EndpointOptions & { readonly maxMessageSize?: number | undefined } = {},
  ): MailboxReader<T> {
    const { maxMessageSize = MAX_JSON_SIZE } = requireOptions(options);
    requireInteger("maxMessageSize", maxMessageSize, 0, MAX_MESSAGE_SIZE_MAX);
    return new MailboxReader<T>(new MailboxSide(memory, "read", options), maxMessageSize);
  }

  /**
   * Whether either side has closed the mailbox, or the peer has broken it. Messages of a payload
   * that was taken before that can still be read.
   */
  get closed(): boolean {
    return this.#side.closed;
  }

  /** How often this side slept, and how often it woke late. */
  get stats(): Pick<Stats, "parks" | "lateWakes"> {
    return statsOf(this.#side);
  }

  /**
   * Reads one message, and blocks until there is one. Returns `undefined` at the timeout, which
   * loses nothing: the parts that have arrived are kept.
   *
   * @throws {MessageError} if a payload was lost; the next call reads the one after it.
   * @throws {PeerClosedError} if everything is read and the writer has closed.
   * @throws {ClosedError} if this side is closed.
   * @throws {CorruptError} if the writer broke the mailbox; every later call throws it again.
   */
  read(options?: WaitOptions): T | undefined {
    const timeout = requireTimeout(options, Infinity);
    options?.signal?.throwIfAborted();
    let value = this.#take();
    if (value !== NONE) return value;
    const deadline = deadlineOf({ timeout });
    for (let waits = 0; waitForTurn(this.#turn, deadline, waits); waits++) {
      value = this.#take();
      if (value !== NONE) return value;
    }
    return undefined;
  }

  /** Reads one message if there is one, else returns `undefined`. Takes at most one part. */
  tryRead(): T | undefined {
    const value = this.#take();
    return value === NONE ? undefined : value;
  }

  /**
   * Does what `read` does, without blocking. Calls are served in order, and keep the event loop
   * alive while they wait.
   */
  async readAsync(options?: WaitOptions): Promise<T | undefined> {
    const deadline = deadlineOfCall(options);
    const signal = options?.signal;
    if (!this.#turns.tryTake() && !await this.#turns.take(deadline, signal)) return undefined;
    try {
      if (++this.#streak % Turn.STREAK === 0) await giveWay();
      for (let late = false;; late = isPast(deadline)) {
        const value = this.#take();
        if (value !== NONE) return value;
        if (late || !await wakeLater(this.#turn, TURN, deadline, signal)) return undefined;
      }
    } finally {
      this.#turns.give();
    }
  }

  /**
   * Closes the mailbox now, for both sides, and drops messages that are not read yet. Waits end
   * with `pipe.closed` on this side, and with `peer.closed` on the other.
   */
  close(): void {
    this.#queue = [];
    this.#queueIndex = 0;
    this.#parts.drop();
    this.#side.close();
  }

  /** Closes the mailbox; see `close`. */
  [Symbol.dispose](): void {
    this.close();
  }

  #take(): T | typeof NONE {
    if (this.#queueIndex === this.#queue.length) {
      const values = this.#parts.take();
      if (!values) return NONE;
      this.#queueIndex = 0;
      this.#queue = values;
    }
    const value = this.#queue[this.#queueIndex++];
    if (this.#queueIndex === this.#queue.length) this.#queue = [];
    if (this.#queue.length === 0) this.#queueIndex = 0;
    return value as T;
  }
}

/** The waits of a side for its turn. There is no word to arm: each turn is passed with a wake. */
function waiterOf(side: MailboxSide): Sleeping {
  return {
    endpoint: side.endpoint,
    peerStates: [], // a state of the peer is in `status` too
    isKeeping: true,
    asks: 0,
    prepare: (asks) => asks,
    sees: () => side.sees(),
    arm() {},
    disarm() {},
    tend() {
      this.wake();
    },
    wake() {},
  };
}

/**
 * Blocks until it may be this side's turn or the mailbox has ended. Returns false at the deadline,
 * which is checked first, because a quick peer may have the next part ready at every look.
 * [mailbox.spin] [mailbox.recheck]
 */
const waitForTurn = (turn: Sleeping, deadline: number, waits: number): boolean =>
  !isPast(deadline) && wait(turn, TURN, deadline, waits);

function statsOf({ endpoint }: MailboxSide): Pick<Stats, "parks" | "lateWakes"> {
  const { parks, lateWakes } = endpoint;
  return { parks, lateWakes };
}

function timedOut(payload: Parts | undefined): MillraceError {
  const begun = payload !== undefined && payload.next > 0;
  const what = begun ? "Cannot write all of it" : "Cannot write";
  return Object.assign(
    new MillraceError("wait.timeout", `${what}: the mailbox stayed full until the deadline`),
    { begun },
  );
}
