/**
 * The writing end of a pipe. See `spec/pipe.md`.
 *
 * @module
 */

import { type AnyCodec, type CodecName, type Encoded, isBatchable, Words } from "./codec.ts";
import { Endpoint, type Stats } from "./wait_endpoint.ts";
import { packKind, WHOLE } from "./frame.ts";
import { type Channel, requireInteger } from "./segment_geometry.ts";
import * as layout from "./layout.ts";
import { Place } from "./pipe_lend.ts";
import { findRing, Link, type Message, type WaitOptions } from "./pipe.ts";
import { requireWriterOptions, type WriterOptions } from "./pipe.ts";
import { Deadline, type Idle, Outlet, RUN_COUNT, RUN_SIZE, timedOut } from "./pipe_outlet.ts";
import { NO_ROOM, type RingWriter } from "./ring.ts";
import { requireTimeout, type Segment } from "./segment.ts";
import { Sender } from "./pipe_sender.ts";

/** No values for a batch. */
const NONE: readonly never[] = [];
/** A whole message of bytes. */
const BYTES = packKind(layout.FRAME_KIND_DATA, WHOLE, layout.CODEC_BYTES);

/**
 * What a claimed message is.
 *
 * @example
 * ```ts
 * import { type ClaimOptions, Port } from "@millrace/millrace";
 *
 * using here = Port.create<Uint8Array>();
 * using there = Port.attach(here.memory); // usually in another thread
 * const image: ClaimOptions = { codec: 128, tag: 7, timeout: 1000 };
 * here.claim(640, image).payload.fill(255);
 * here.publish();
 * const { codec, tag, payload } = there.readMessage()!;
 * console.log(codec, tag, payload.length); // 128 7 640
 * ```
 */
export interface ClaimOptions extends WaitOptions {
  /** Default 0: bytes. 3, a batch, and the application's own from 128 on are allowed. */
  readonly codec?: number | undefined;
  /** The application's own number. Default 0. */
  readonly tag?: number | undefined;
}

/**
 * Writes messages into a ring. All methods belong to the thread that attached it.
 *
 * @typeParam T What it writes.
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
  readonly #link: Link;
  readonly #sender: Sender;
  readonly #ring: RingWriter;
  readonly #words: Words = new Words();
  readonly #codec: CodecName | AnyCodec;
  /** Whether bytes are written as they are. */
  readonly #isRaw: boolean;
  readonly #outlet: Outlet;
  /** The `end` that waits for its turn. */
  #ending: Promise<void> | undefined;
  /** How many values `writeMany` tries to pack next. */
  #run = RUN_COUNT;
  #written = 0;
  #claimedKind = 0;
  #claimedTag = 0;
  readonly #place: Place;

  /**
   * Joins a ring to an attached endpoint; for ports. Use `Writer.attach`.
   *
   * @internal
   */
  constructor(link: Link, channel: Channel, options: WriterOptions = {}, idle?: Idle) {
    requireWriterOptions(options);
    this.#link = link;
    this.#sender = new Sender(link, channel);
    this.#ring = this.#sender.ring;
    this.#place = new Place(this.#ring);
    this.#codec = options.codec ?? "json";
    this.#isRaw = this.#codec === "json" || this.#codec === "bytes";
    this.#outlet = new Outlet(link, this.#sender, this.#codec, idle);
  }

  /**
   * Attaches the writing endpoint of a ring: the one with index `channel`, by default the first.
   *
   * @throws {SegmentError} `segment.channel` or `segment.endpoint`.
   */
  static attach<T = unknown>(
    segment: Segment,
    options: WriterOptions<T> & { readonly channel?: number | undefined } = {},
  ): Writer<T> {
    requireWriterOptions(options);
    const channel = findRing(segment, options.channel, () => true);
    const endpoint = Endpoint.attach(segment, channel.writer, options);
    return new Writer<T>(new Link(endpoint, channel.reader), channel, options);
  }

  /** Whether `end` was called. */
  get ended(): boolean {
    return this.#outlet.ended;
  }

  /**
   * What this writer shares with the posts of its port.
   *
   * @internal
   */
  get outlet(): Outlet {
    return this.#outlet;
  }

  /** What this endpoint has counted. */
  get stats(): Stats {
    return this.#link.endpoint.stats;
  }

  /**
   * Writes one message, and blocks while there is no room for it.
   *
   * @throws {TimeoutError} at the timeout; the reader drops what was written of the message.
   * @throws {PeerClosedError} if the reader has closed.
   * @throws {PeerFailedError} if the reader is marked failed.
   * @throws {ClosedError} if this end is closed, failed or ended.
   * @throws {CorruptError} if the reader broke the ring.
   * @throws {TypeError} if the codec cannot carry the value.
   */
  write(value: T, options?: WaitOptions): void {
    if (isWait(options) && this.#sendBytes(value)) return;
    const deadline = this.#begin(options);
    this.#sender.encoder.encode(value, this.#codec);
    this.#send(layout.FRAME_KIND_DATA, 0, options, deadline);
  }

  /**
   * Writes one message if there is room for all of it, and returns whether it did. Never waits.
   *
   * @throws {RangeError} if the message could not be written at once even to an empty ring.
   */
  tryWrite(value: T): boolean {
    if (this.#sendBytes(value)) return true;
    this.#outlet.check();
    if (!this.#outlet.takeOver()) return false;
    this.#sender.encoder.encode(value, this.#codec);
    return this.#trySend(layout.FRAME_KIND_DATA, 0);
  }

  /**
   * Writes one message without blocking. Messages keep the order of the calls. The promise settles
   * when all of the message is in the ring; until then, bytes given must not change.
   *
   * Throws what `write` throws, and a `TypeError` if bytes given are detached or become fewer while
   * it waits: that message alone is lost.
   */
  async writeAsync(value: T, options?: WaitOptions): Promise<void> {
    this.#outlet.check();
    const signal = options?.signal;
    signal?.throwIfAborted();
    const deadline = new Deadline(options);
    // Encoded at the call, as a copy, beside the message that may be under way; and before the
    // turn is taken, which a value that cannot be encoded must not keep.
    const own = this.#encodeApart(value);
    this.#outlet.asked++;
    const { turns } = this.#outlet;
    if (!turns.tryTake() && !await turns.take(deadline.time, signal)) throw timedOut();
    try {
      if (own !== undefined) this.#sender.encoder.restore(own);
      const turn = this.#link.giveWay();
      if (turn !== undefined) {
        this.#sender.encoder.detach();
        await turn;
      }
      this.#outlet.checkAccepted();
      this.#sender.start(layout.FRAME_KIND_DATA, 0);
      if (this.#sender.advance()) return this.#ring.publish();
      this.#sender.encoder.detach();
      do await this.#outlet.waitRoomAsync(deadline, signal); while (!this.#sender.advance());
      this.#ring.publish();
    } finally {
      turns.give();
    }
  }

  /**
   * Writes many messages, made visible together as far as there is room. With JSON, short runs are
   * packed into batches, which takes half the time; the reader unpacks them.
   *
   * Blocks, and throws what `write` throws. The values before the one that failed are written, and
   * `written` says how many they are.
   */
  writeMany(values: readonly T[], options?: WaitOptions): void {
    this.#written = 0;
    const deadline = this.#begin(options) ?? new Deadline(options);
    let index = 0;
    try {
      while (index < values.length) {
        const count = this.#encodeRun(values, index);
        this.#sender.start(layout.FRAME_KIND_DATA, 0);
        while (!this.#sender.advance()) {
          this.#written = index; // the wait publishes them
          this.#outlet.waitRoom(deadline);
        }
        index += count;
      }
    } finally {
      // Also when a value cannot be encoded: what stands before it is written.
      if (!this.#link.closed) {
        this.#ring.publish();
        this.#written = index;
      }
    }
  }

  /**
   * How many values the last `writeMany` has written: all, or, if it threw, those that stand before
   * the one that failed. Of that one nothing is delivered.
   *
   * @example
   * ```ts
   * import { Port, TimeoutError } from "@millrace/millrace";
   *
   * using here = Port.create<number>({ capacity: 256 });
   * using there = Port.attach<number>(here.memory); // usually in another thread
   * let values = Array.from({ length: 1000 }, (_, index) => index);
   * while (values.length > 0) {
   *   try {
   *     here.writeMany(values, { timeout: 1 });
   *   } catch (error) {
   *     if (!(error instanceof TimeoutError)) throw error;
   *   }
   *   values = values.slice(here.writer.written); // the rest, later
   *   while (there.tryRead() !== undefined);
   * }
   * ```
   */
  get written(): number {
    return this.#written;
  }

  /** Writes one message as it is, and blocks while there is no room. */
  writeMessage(message: MessageInit, options?: WaitOptions): void {
    const deadline = this.#begin(options);
    const { kind, tag } = this.#encodeMessage(message);
    this.#send(kind, tag, options, deadline);
  }

  /** Writes one message as it is, if there is room for all of it. */
  tryWriteMessage(message: MessageInit): boolean {
    this.#outlet.check();
    if (!this.#outlet.takeOver()) return false;
    const { kind, tag } = this.#encodeMessage(message);
    return this.#trySend(kind, tag);
  }

  /**
   * Lends the place of one message of up to `size` bytes, at most half the capacity less 16, and
   * blocks while there is no room. Fill it, then `publish` or `abandon`.
   *
   * @throws {RangeError} if no frame can be so large.
   */
  claim(size: number, options?: ClaimOptions): Place {
    let deadline = this.#begin(options);
    this.#prepareClaim(size, options);
    if (!this.#tryClaim(size)) {
      deadline ??= new Deadline(options);
      do this.#outlet.waitRoom(deadline); while (!this.#tryClaim(size));
    }
    return this.#place;
  }

  /** Lends a place if there is room; `undefined` if there is none. */
  tryClaim(size: number, options?: ClaimOptions): Place | undefined {
    this.#outlet.check();
    if (!this.#outlet.takeOver()) return undefined;
    this.#prepareClaim(size, options);
    return this.#tryClaim(size) ? this.#place : undefined;
  }

  /**
   * Completes the claimed message with `size` bytes; it becomes visible at the next publish.
   *
   * @throws {ClosedError} if this end was closed meanwhile, which drops the claim.
   * @throws {PeerClosedError} and {PeerFailedError} if another call has found the reader gone.
   */
  finish(size?: number): void {
    // [pipe.close] drops the claim, and [pipe.peer_gone] forbids to place it.
    const known = this.#link.knownError("finish");
    if (known !== undefined) throw known;
    if (this.#outlet.claimed < 0) throw new TypeError("Cannot finish: nothing is claimed");
    const bytes = size ?? this.#outlet.claimed;
    requireInteger("size", bytes, 0, this.#outlet.claimed);
    this.#ring.finish(bytes, this.#claimedKind, this.#claimedTag);
    this.#ring.hold();
    this.#outlet.claimed = -1;
  }

  /**
   * Completes the claimed message, if one is open, and makes all finished ones visible. Behind the
   * own close, which has dropped them, it does nothing. [pipe.publish_none]
   */
  publish(size?: number): void {
    const { closed } = this.#link;
    if ((this.#outlet.claimed >= 0 && !closed) || size !== undefined) this.finish(size);
    if (!closed) this.#ring.publish();
  }

  /**
   * Gives the claimed place back unused.
   *
   * @throws {ClosedError} if this end was closed meanwhile, which drops the claim.
   */
  abandon(): void {
    const closed = this.#link.closedError("abandon");
    if (closed !== undefined) throw closed; // [pipe.claim_one]
    if (this.#outlet.claimed < 0) throw new TypeError("Cannot abandon: nothing is claimed");
    this.#outlet.claimed = -1;
    this.#ring.rewind(this.#ring.tail);
  }

  /**
   * Ends the stream: the reader gets everything written, then the end. Never waits: while posts or
   * asynchronous writes are under way, the end comes behind them. Nothing can be written from now
   * on, and a second call does nothing, whatever has happened since.
   *
   * Where the reader has closed already, or a hub has closed this end, there is nobody to tell, and
   * it does nothing. [pipe.end_closed] Otherwise it throws what `tryWrite` throws.
   */
  end(): void {
    const outlet = this.#outlet;
    if (outlet.ended) return;
    this.#ending = outlet.tryEnd() ? undefined : this.#endLater();
    // Who waits for it calls `endAsync`; to others the state of the pipe says the same.
    this.#ending?.catch(() => {});
  }

  /**
   * Ends the stream as `end` does, and waits until the end is in the ring, behind everything that
   * was posted and written before; rejects with the reason if posts that it waits for are lost. The
   * wait can be given up, the end cannot.
   */
  async endAsync(options?: WaitOptions): Promise<void> {
    const deadline = new Deadline(options);
    options?.signal?.throwIfAborted();
    this.end();
    if (this.#ending === undefined) return;
    const { turns } = this.#outlet;
    if (!await turns.take(deadline.time, options?.signal)) throw timedOut();
    turns.give();
    return this.#ending;
  }

  async #endLater(): Promise<void> {
    const outlet = this.#outlet;
    outlet.ended = true;
    const { lostCount, round } = outlet;
    await outlet.turns.take(Infinity, undefined);
    try {
      if (outlet.round !== round) return; // the stream was one to a reader that is gone
      outlet.checkAccepted();
      outlet.placeEnd();
    } catch (error) {
      if (outlet.lostCount !== lostCount || !outlet.mayEnd(error)) throw error;
    } finally {
      outlet.turns.give();
    }
  }

  /** Closes this endpoint now. What is published stays readable; waits end with `pipe.closed`. */
  close(): void {
    this.#link.close();
  }

  /** The same as `close`. */
  [Symbol.dispose](): void {
    this.close();
  }

  /**
   * Writes short bytes as they are if nothing stands in the way; false leaves them to the long way.
   * Nothing of them is kept and nothing is asked twice, for what is done between the arrival of a
   * message and the store of its answer is half of an echo: of 64 bytes, it takes four fifths of
   * what it takes the long way (V8 14, 15).
   */
  #sendBytes(value: T): boolean {
    if (!this.#isRaw || !(value instanceof Uint8Array)) return false;
    const words = this.#words.of(value);
    return words !== undefined && this.#ring.send(value, words, value.length, BYTES, 0);
  }

  /** What a blocking call does first; returns its deadline if posts had to be written before. */
  #begin(options: WaitOptions | undefined): Deadline | undefined {
    this.#outlet.check();
    // Here and not only at the first wait: nothing may be stored for a call that is refused.
    requireTimeout(options?.timeout, Infinity);
    options?.signal?.throwIfAborted();
    return this.#outlet.turns.busy ? this.#outlet.takeOverBlocking(options) : undefined;
  }

  #send(
    kind: number,
    tag: number,
    options: WaitOptions | undefined,
    deadline: Deadline | undefined,
  ): void {
    if (!this.#sender.send(kind, tag)) this.#sendSlowly(kind, tag, options, deadline);
  }

  #sendSlowly(
    kind: number,
    tag: number,
    options: WaitOptions | undefined,
    deadline: Deadline | undefined,
  ): void {
    this.#sender.start(kind, tag);
    if (!this.#sender.advance()) {
      deadline ??= new Deadline(options);
      do this.#outlet.waitRoom(deadline); while (!this.#sender.advance());
    }
    this.#ring.publish();
  }

  #trySend(kind: number, tag: number): boolean {
    if (this.#sender.send(kind, tag)) return true;
    // [pipe.try_never]
    if (!this.#sender.fitsAtOnce) {
      const { size } = this.#sender.encoder;
      throw new RangeError(`Cannot write ${size} bytes at once: the ring is too small`);
    }
    this.#sender.start(kind, tag);
    const placed = this.#sender.tryAdvance();
    this.#ring.publish();
    return placed;
  }

  /**
   * Encodes a value. Where the encoder holds one that is under way, that is in place afterwards,
   * and the new one is returned.
   */
  #encodeApart(value: T): Encoded | undefined {
    const { encoder } = this.#sender;
    if (!this.#outlet.turns.busy) {
      encoder.encode(value, this.#codec);
      return undefined;
    }
    const active = encoder.save();
    try {
      encoder.encode(value, this.#codec);
      encoder.detach();
      return encoder.save();
    } finally {
      encoder.restore(active);
    }
  }

  /** Encodes the next values as one payload and returns how many it took. */
  #encodeRun(values: readonly T[], index: number): number {
    const { encoder, largestFrame } = this.#sender;
    const run = this.#codec === "json" ? this.#takeRun(values, index) : NONE;
    if (run.length > 1 && this.#encodeBatch(run)) {
      const { size } = encoder;
      this.#run = size > RUN_SIZE ? (this.#run >> 1) || 1 : RUN_COUNT;
      // [frame.batch_whole]
      if (size <= largestFrame) return run.length;
    }
    encoder.encode(values[index], this.#codec);
    if (encoder.size < RUN_SIZE / RUN_COUNT) this.#run = RUN_COUNT;
    return 1;
  }

  /**
   * The next values that may go into one batch. One that throws when it is looked at is not among
   * them: it throws again when it is encoded alone, in its turn, behind those before it.
   */
  #takeRun(values: readonly T[], index: number): readonly T[] {
    const { encoder } = this.#sender;
    const run: T[] = [];
    const end = Math.min(values.length, index + this.#run);
    encoder.active = true; // a value may have a `toJSON`
    try {
      for (; index < end; index++) {
        const value = values[index]!;
        if (!isBatchable(value)) break;
        run.push(value);
      }
    } catch {
      // See above.
    } finally {
      encoder.active = false;
    }
    return run;
  }

  /** False if one of the values cannot be encoded: one by one, those before it can be written. */
  #encodeBatch(values: readonly T[]): boolean {
    try {
      this.#sender.encoder.encodeBatch(values);
      return true;
    } catch {
      return false;
    }
  }

  #encodeMessage(message: MessageInit): { kind: number; tag: number } {
    const { kind = layout.FRAME_KIND_DATA, codec = layout.CODEC_BYTES, tag = 0 } = message;
    requireInteger("kind", kind, 0, 255);
    requireKind(kind);
    requireInteger("codec", codec, 0, 255);
    requireInteger("tag", tag, 0, 0xffffffff);
    const { payload } = message;
    if (codec === layout.CODEC_JSON_BATCH && payload.length > this.#sender.largestFrame) {
      throw new RangeError(`Cannot write a batch of ${payload.length} bytes: it takes one frame`);
    }
    this.#sender.encoder.take(payload, codec);
    return { kind, tag };
  }

  #prepareClaim(size: number, options: ClaimOptions | undefined): void {
    const codec = options?.codec ?? layout.CODEC_BYTES;
    const tag = options?.tag ?? 0;
    requireInteger("size", size, 0, this.#sender.largestFrame);
    requireInteger("codec", codec, 0, 255);
    requireInteger("tag", tag, 0, 0xffffffff);
    this.#sender.start(0, 0);
    this.#claimedKind = packKind(layout.FRAME_KIND_DATA, WHOLE, codec);
    this.#claimedTag = tag;
  }

  #tryClaim(size: number): boolean {
    const at = this.#sender.claim(size);
    if (at === NO_ROOM) return false;
    this.#place.offset = at;
    this.#place.size = this.#outlet.claimed = size;
    return true;
  }
}

/**
 * A message to write.
 *
 * @example
 * ```ts
 * import { type MessageInit, Port } from "@millrace/millrace";
 *
 * using here = Port.create();
 * using there = Port.attach(here.memory); // usually in another thread
 * const init: MessageInit = { payload: Uint8Array.of(1, 2), tag: 42 };
 * here.writeMessage(init);
 * console.log(there.readMessage()?.tag); // 42
 * ```
 */
export interface MessageInit extends Partial<Omit<Message, "payload">> {
  /** The payload. */
  readonly payload: Uint8Array;
}

/** Whether a call that need not wait may go on with such options: they are right, and no signal. */
function isWait(options: WaitOptions | undefined): boolean {
  if (options === undefined) return true;
  const { timeout, signal } = options;
  return signal === undefined &&
    (timeout === undefined || (typeof timeout === "number" && timeout >= 0));
}

function requireKind(kind: number): void {
  const calls = kind >= layout.FRAME_KIND_CALL && kind <= layout.FRAME_KIND_THROW;
  if (kind === layout.FRAME_KIND_DATA || calls) return;
  throw new RangeError(`kind must be 1, 3, 4 or 5: ${kind}`);
}
