/**
 * The reading end of a pipe. See `spec/pipe.md`.
 *
 * @module
 */

import { type CodecTable, codecTable, copyInto, Decoder, Words } from "./codec.ts";
import { Endpoint, type Stats } from "./wait_endpoint.ts";
import { MessageError, MillraceError } from "./error.ts";
import { type Channel, requireInteger } from "./segment_geometry.ts";
import { CODEC_BYTES, CODEC_JSON, CODEC_JSON_BATCH, CODEC_TEXT } from "./layout.ts";
import { Lent } from "./pipe_lend.ts";
import { deadlineOf, findRing, Link, requireReaderOptions, STREAK } from "./pipe.ts";
import type { Message, ReaderOptions, WaitOptions } from "./pipe.ts";
import { ENDED, IN_PARTS, IN_RING, LEND, NOTHING, Receiver, requireFit } from "./pipe_receiver.ts";
import { Waiting } from "./pipe_waiting.ts";
import { NONE_YET, OTHER } from "./ring.ts";
import { requireTimeout, type Segment } from "./segment.ts";
import { Turns } from "./wait.ts";

/** No message, where `undefined` would be the end of the stream. */
const NONE: unique symbol = Symbol("none");

/**
 * Reads messages from a ring. All methods belong to the thread that attached it.
 *
 * `undefined` means that there is nothing yet, or, when `ended` is true, that nothing will come.
 *
 * @typeParam T What it reads. Nothing checks that the peer writes that.
 *
 * @example
 * ```ts
 * import { Reader, Segment, Writer } from "@millrace/millrace";
 *
 * const segment = Segment.allocate({
 *   endpoints: 2,
 *   channels: [{ writer: 0, reader: 1, capacity: 4096 }],
 * });
 * using writer = Writer.attach<string>(segment); // usually in another thread
 * using reader = Reader.attach<string>(segment);
 * writer.write("hello");
 * console.log(reader.read({ timeout: 100 })); // "hello"
 * console.log(reader.tryRead(), reader.ended); // undefined false
 * ```
 */
export class Reader<T = unknown> {
  readonly #link: Link;
  readonly #receiver: Receiver;
  readonly #decoder: Decoder = new Decoder();
  readonly #targetWords: Words = new Words();
  readonly #codecs: CodecTable;
  readonly #turns: Turns = new Turns();
  /** What comes before anything in the ring. */
  readonly #waiting: Waiting;
  readonly #lent: Lent;
  #streak = 0;
  /** What `#into` copies to. */
  #target: Uint8Array | undefined;
  // Made once: a closure for each wait would be most of what a stream allocates.
  readonly #value = (): T | typeof NONE | undefined => this.#takeValue();
  readonly #message = (): Message | typeof NONE | undefined => this.#takeMessage();
  readonly #into = (): number | typeof NONE | undefined => this.#takeInto(this.#target!);
  readonly #frameLent = (): Lent | typeof NONE | undefined => this.#takeLent();

  /**
   * Joins a ring to an attached endpoint; for ports. Use `Reader.attach`.
   *
   * @internal
   */
  constructor(link: Link, channel: Channel, options: ReaderOptions = {}) {
    this.#link = link;
    this.#codecs = codecTable(options.codec, options.codecs);
    this.#receiver = new Receiver(link, channel, options);
    this.#waiting = new Waiting(link, this.#receiver);
    this.#lent = new Lent(this.#receiver.ring);
    link.drop = () => this.#drop();
  }

  /**
   * Attaches the reading endpoint of a ring: the one with index `channel`, by default the first.
   *
   * @throws {SegmentError} `segment.channel` or `segment.endpoint`.
   */
  static attach<T = unknown>(
    segment: Segment,
    options: ReaderOptions<T> & { readonly channel?: number | undefined } = {},
  ): Reader<T> {
    requireReaderOptions(options);
    const channel = findRing(segment, options.channel, () => true);
    const endpoint = Endpoint.attach(segment, channel.reader, options);
    return new Reader<T>(new Link(endpoint, channel.writer), channel, options);
  }

  /** Whether the end of the stream was reached: every later read returns `undefined`. */
  get ended(): boolean {
    return this.#waiting.ended;
  }

  /** What this endpoint has counted. */
  get stats(): Stats {
    return this.#link.endpoint.stats;
  }

  /** The tag of the message that was read last. */
  get tag(): number {
    return this.#receiver.tag;
  }

  /** The codec of the message that was read last, as a number. */
  get codec(): number {
    return this.#receiver.codec;
  }

  /** The kind of the message that was read last. */
  get kind(): number {
    return this.#receiver.kind;
  }

  /**
   * Reads one message and blocks until there is one. `undefined` at the timeout, which loses
   * nothing, and at the end of the stream.
   *
   * @throws {MessageError} if a message was lost; the next call goes on behind it.
   * @throws {PeerClosedError} if everything is read and the writer has closed without an `end`.
   * @throws {PeerFailedError} if everything is read and the writer is marked failed.
   * @throws {ClosedError} if this end was closed by `close`; or if everything is read and somebody
   * else has closed it or marked it failed.
   * @throws {CorruptError} if the writer broke the ring; again from every later call.
   */
  read(options?: WaitOptions): T | undefined {
    requireWait(options);
    let value = this.#takeValue();
    if (value === NONE) value = this.#takeValue(true, this.#looks(options));
    return value !== NONE ? value : this.#block(this.#value, options);
  }

  /** Reads one message if there is one. */
  tryRead(): T | undefined {
    return this.#try(this.#value);
  }

  /** `read` without blocking. Calls are served in order. */
  readAsync(options?: WaitOptions): Promise<T | undefined> {
    return this.#wait(this.#value, options);
  }

  /**
   * Reads what is there, up to `max` messages, and blocks until there is one at least. `undefined`
   * where `read` returns it.
   *
   * Throws what `read` throws. A lost message ends what is there: the next call reports it.
   *
   * @example
   * ```ts
   * import { Port } from "@millrace/millrace";
   *
   * using here = Port.create<number>();
   * using there = Port.attach<number>(here.memory); // usually in another thread
   * here.writeMany([1, 2, 3]);
   * console.log(there.readMany(2), there.readMany(2)); // [1, 2] [3]
   * ```
   */
  readMany(max: number, options?: WaitOptions): T[] | undefined {
    requireMax(max);
    return this.#fill(this.read(options), max);
  }

  /** Reads what is there, up to `max` messages; `undefined` if nothing is. */
  tryReadMany(max: number): T[] | undefined {
    requireMax(max);
    return this.#fill(this.tryRead(), max);
  }

  /** `readMany` without blocking. Calls are served in order. */
  async readManyAsync(max: number, options?: WaitOptions): Promise<T[] | undefined> {
    requireMax(max);
    return await this.#wait(() => {
      const first = this.#takeValue();
      return first === NONE ? NONE : this.#fill(first, max);
    }, options);
  }

  /**
   * Reads message after message until the stream ends, and throws what `readAsync` throws. Leaving
   * the loop leaves the pipe as it is: what comes then can be read, or looped over, later.
   */
  async *[Symbol.asyncIterator](): AsyncGenerator<T, void, void> {
    for (let value; (value = await this.readAsync()) !== undefined;) yield value;
  }

  /** Reads one message as it is, a batch as one, and blocks until there is one. */
  readMessage(options?: WaitOptions): Message | undefined {
    requireWait(options);
    const message = this.#takeMessage();
    return message !== NONE ? message : this.#block(this.#message, options);
  }

  /** Reads one message as it is, if there is one. */
  tryReadMessage(): Message | undefined {
    return this.#try(this.#message);
  }

  /** `readMessage` without blocking. */
  readMessageAsync(options?: WaitOptions): Promise<Message | undefined> {
    return this.#wait(this.#message, options);
  }

  /**
   * Copies one message into `target`, allocating nothing for a message of one frame, and returns
   * its size; `kind`, `codec` and `tag` are then those of the message. Blocks until there is one.
   *
   * @throws {RangeError} if the message is larger than `target`; it stays, to be read again. One
   * whose size its writer does not know as it begins may be larger than the error says.
   */
  readInto(target: Uint8Array, options?: WaitOptions): number | undefined {
    requireWait(options);
    let short = this.#takeShort(target, 1);
    if (short === NONE_YET) short = this.#takeShort(target, this.#looks(options));
    if (short >= 0) return short;
    try {
      const size = short === NONE_YET ? NONE : this.#takeInto(target);
      return size !== NONE ? size : this.#blockInto(target, options);
    } finally {
      this.#receiver.leave(target);
    }
  }

  /** The same, if there is a message. */
  tryReadInto(target: Uint8Array): number | undefined {
    const short = this.#takeShort(target, 1);
    if (short >= 0) return short;
    try {
      const taken = short === NONE_YET ? NONE : this.#takeInto(target);
      const size = taken !== NONE ? taken : this.#takeLastInto(target);
      return size === NONE ? undefined : size;
    } finally {
      this.#receiver.leave(target);
    }
  }

  /**
   * Lends the payload of the next frame where it lies, a whole message or a chunk of one, and
   * blocks until there is one. For trusted peers: they can write to it. End with `release`.
   */
  peek(options?: WaitOptions): Lent | undefined {
    requireWait(options);
    let lent = this.#takeLent();
    if (lent === NONE && this.#receiver.glance(this.#looks(options))) lent = this.#takeLent();
    return lent !== NONE ? lent : this.#block(this.#frameLent, options);
  }

  /** The same, if there is a frame. */
  tryPeek(): Lent | undefined {
    return this.#try(this.#frameLent);
  }

  /**
   * Gives back what `peek` lent.
   *
   * @throws {ClosedError} if this end was closed meanwhile, which takes the frame back.
   */
  release(): void {
    const closed = this.#link.closedError("release");
    if (closed !== undefined) throw closed; // [pipe.lend_one]
    if (!this.#receiver.lent) throw new TypeError("Cannot release: nothing is lent");
    this.#receiver.lent = false;
    if (this.#receiver.isLentInRing) this.#receiver.releaseLent();
  }

  /** Closes this endpoint now; what is not read is dropped. Waits end with `pipe.closed`. */
  close(): void {
    this.#link.close();
  }

  /** The same as `close`. */
  [Symbol.dispose](): void {
    this.close();
  }

  /**
   * The link of this end; for ports.
   *
   * @internal
   */
  get link(): Link {
    return this.#link;
  }

  /**
   * What comes before anything in the ring; for ports.
   *
   * @internal
   */
  get waiting(): Waiting {
    return this.#waiting;
  }

  /**
   * Whether asynchronous reads wait, which are served before events; for ports.
   *
   * @internal
   */
  get busy(): boolean {
    return this.#turns.busy;
  }

  /**
   * Whether a frame is lent, or the rest of its message still has to be; for ports.
   *
   * @internal
   */
  get lending(): boolean {
    return this.#receiver.lending;
  }

  /**
   * Whether something came behind the last message, without a look at the states.
   *
   * @internal
   */
  get more(): boolean {
    const { ring } = this.#receiver;
    return !ring.isRead || ring.look() || this.#waiting.some;
  }

  /**
   * Settles when the asynchronous reads that wait now have been served; for ports.
   *
   * @internal
   */
  async served(): Promise<void> {
    await this.#turns.take(Infinity, undefined);
    this.#turns.give();
  }

  /** Behind a first value, takes what is there up to `max`. */
  #fill(first: T | undefined, max: number): T[] | undefined {
    if (first === undefined) return undefined;
    const values = [first];
    try {
      // One load more: a peer that goes on writing must not keep us here. [ring.one_load]
      for (let mayLoad = true; values.length < max;) {
        let value = this.#takeValue(false);
        if (value === NONE && mayLoad) {
          mayLoad = false;
          value = this.#takeValue();
        }
        if (value === NONE || value === undefined) break;
        values.push(value);
      }
    } catch (error) {
      // A fault keeps itself; the report of a lost message would go lost with what was read.
      if (!(error instanceof MillraceError)) throw error;
      if (error instanceof MessageError) this.#waiting.keepFirst(error);
    }
    return values;
  }

  /** [pipe.close] What was taken out of the ring and not delivered is dropped. */
  #drop(): void {
    this.#waiting.drop();
    this.#receiver.drop();
  }

  #try<R>(take: () => R | typeof NONE | undefined): R | undefined {
    const taken = take();
    const found = taken !== NONE ? taken : this.#takeLast(take);
    return found === NONE ? undefined : found as R;
  }

  /**
   * Behind a look that found nothing: throws for a state that is final, where one more look finds
   * nothing either. Once and not in a loop: a peer that is gone and still publishes must not keep
   * us here. [pipe.look_again]
   */
  #takeLast<R>(take: () => R | typeof NONE | undefined): R | typeof NONE | undefined {
    const gone = this.#receiver.lookAgain();
    if (gone === undefined) return NONE;
    const taken = take();
    if (taken === NONE) throw this.#receiver.giveUp(gone);
    return taken;
  }

  /**
   * How often a call that found nothing looks again before it blocks: a few times where it may
   * wait, and for an answer. A stream passes faster if its reader does not look all the time, and
   * lets the writer keep the line of `tail` for a while.
   */
  #looks(options: WaitOptions | undefined): number {
    if (options !== undefined && (options.timeout === 0 || options.signal !== undefined)) return 0;
    const { outgoing, endpoint } = this.#link;
    if (outgoing === undefined || !outgoing.expectsAnswer()) return 0;
    return endpoint.spinner.glances;
  }

  #blockInto(target: Uint8Array, options?: WaitOptions): number | undefined {
    this.#target = target;
    try {
      return this.#block(this.#into, options);
    } finally {
      this.#target = undefined;
    }
  }

  #takeLastInto(target: Uint8Array): number | typeof NONE | undefined {
    this.#target = target;
    try {
      return this.#takeLast(this.#into);
    } finally {
      this.#target = undefined;
    }
  }

  /** Behind a look that found nothing. */
  #block<R>(take: () => R | typeof NONE | undefined, options?: WaitOptions): R | undefined {
    const timeout = requireTimeout(options?.timeout, Infinity);
    options?.signal?.throwIfAborted();
    const { endpoint } = this.#link;
    const waiting = this.#waiting;
    // Only computed where it is needed: within a stream, most waits are brief.
    let deadline: number | undefined;
    for (let waits = 0;; waits++) {
      const last = this.#takeLast(take);
      if (last !== NONE) return last as R;
      if (timeout === 0 || (deadline !== undefined && performance.now() >= deadline)) {
        return undefined;
      }
      const isBrief = endpoint.waitBriefly(waiting);
      if (
        !isBrief && !endpoint.wait(waiting, undefined, deadline ??= deadlineOf(timeout), waits)
      ) {
        return undefined;
      }
      const taken = take();
      if (taken !== NONE) return taken as R;
      deadline ??= deadlineOf(timeout);
    }
  }

  async #wait<R>(
    take: () => R | typeof NONE | undefined,
    options?: WaitOptions,
  ): Promise<R | undefined> {
    const timeout = requireTimeout(options?.timeout, Infinity);
    const signal = options?.signal;
    signal?.throwIfAborted();
    const { endpoint } = this.#link;
    const deadline = deadlineOf(timeout);
    if (!this.#turns.tryTake() && !await this.#turns.take(deadline, signal)) return undefined;
    try {
      if (++this.#streak % STREAK === 0) await endpoint.giveWay();
      for (let late = timeout === 0;; late = performance.now() >= deadline) {
        const taken = take();
        if (taken !== NONE) return taken as R;
        const last = this.#takeLast(take);
        if (last !== NONE) return last as R;
        if (late) return undefined;
        if (!await endpoint.waitAsync(this.#waiting, deadline, signal)) return undefined;
      }
    } finally {
      this.#turns.give();
    }
  }

  #takeValue(mayLoad = true, looks = 1): T | typeof NONE | undefined {
    const waiting = this.#waiting;
    if (waiting.inBatch) return waiting.nextOfBatch() as T;
    if (waiting.inboxCount > 0) return this.#decode(waiting.shift()) as T;
    if (mayLoad || !this.#receiver.ring.isRead) {
      const decoder = this.#decoder;
      const size = this.#receiver.takeShort(decoder.scratch, decoder.words, looks);
      if (size >= 0) return this.#decodePayload(decoder.taken(size, this.#isOwn)) as T;
      if (size === NONE_YET) return NONE;
    }
    const found = this.#receiver.pull(undefined, mayLoad);
    if (found === NOTHING) return NONE;
    if (found === ENDED) return undefined;
    if (found === IN_PARTS || this.#isOwn) {
      return this.#decode(this.#receiver.makeMessage(found)) as T;
    }
    const { bytes, payload } = this.#receiver.ring;
    // The copy is made and the room given back before anything is decoded.
    const copy = this.#decoder.take(bytes, payload, this.#receiver.frame.size);
    this.#receiver.ring.release();
    return this.#decodePayload(copy) as T;
  }

  /** Whether the message is handed out as bytes, to the caller or to a codec of its own. */
  get #isOwn(): boolean {
    const { codec } = this.#receiver;
    return codec === CODEC_BYTES || codec > CODEC_JSON_BATCH;
  }

  #decode(message: Message): unknown {
    this.#receiver.note(message.kind, message.codec, message.tag);
    return this.#decodePayload(message.payload);
  }

  #decodePayload(payload: Uint8Array): unknown {
    switch (this.#receiver.codec) {
      case CODEC_BYTES:
        return payload;
      case CODEC_TEXT:
        return this.#decoder.text(payload);
      case CODEC_JSON:
        return this.#decoder.json(payload);
      case CODEC_JSON_BATCH:
        return this.#waiting.open(this.#decoder.batch(payload));
      default:
        return this.#decoder.foreign(payload, this.#receiver.codec, this.#codecs);
    }
  }

  #takeMessage(): Message | typeof NONE | undefined {
    const waiting = this.#waiting.take();
    if (waiting !== undefined) return waiting;
    const found = this.#receiver.pull(undefined);
    if (found === NOTHING) return NONE;
    if (found === ENDED) return undefined;
    return this.#receiver.makeMessage(found);
  }

  #takeShort(target: Uint8Array, looks: number): number {
    if (this.#waiting.some) return OTHER;
    return this.#receiver.takeShort(target, this.#targetWords.of(target), looks);
  }

  #takeInto(target: Uint8Array): number | typeof NONE | undefined {
    const waiting = this.#waiting.peek();
    if (waiting !== undefined) {
      requireFit(waiting.payload.length, target);
      this.#waiting.take();
      target.set(waiting.payload);
      return waiting.payload.length;
    }
    const found = this.#receiver.pull(target);
    if (found === NOTHING) return NONE;
    if (found === ENDED) return undefined;
    const { size, received } = this.#receiver.frame;
    if (found === IN_PARTS) {
      if (this.#receiver.parts !== target) target.set(this.#receiver.parts);
      this.#receiver.drop();
      return received;
    }
    const { bytes, words, payload } = this.#receiver.ring;
    copyInto(bytes, words, payload, size, target);
    this.#receiver.ring.release();
    return size;
  }

  #takeLent(): Lent | typeof NONE | undefined {
    if (this.#receiver.lent && !this.#link.closed) {
      throw new TypeError("Cannot peek: a frame is lent already");
    }
    const waiting = this.#waiting.take();
    if (waiting !== undefined) {
      this.#lent.showCopy(waiting.payload, waiting.kind, waiting.codec, waiting.tag);
      this.#receiver.isLentInRing = false;
    } else {
      const found = this.#receiver.pull(LEND);
      if (found === NOTHING) return NONE;
      if (found === ENDED) return undefined;
      this.#receiver.isLentInRing = found === IN_RING;
      if (found === IN_PARTS) {
        const { payload, kind, codec, tag } = this.#receiver.makeMessage(found);
        this.#lent.showCopy(payload, kind, codec, tag);
      } else {
        this.#lent.show(this.#receiver.ring, this.#receiver.frame);
      }
    }
    this.#receiver.lent = true;
    return this.#lent;
  }
}

/** Throws for a count that is none, before anything is taken. */
function requireMax(max: number): void {
  requireInteger("max", max, 1, Number.MAX_SAFE_INTEGER);
}

/** Throws for a timeout that is none, before anything is taken. */
function requireWait(options: WaitOptions | undefined): void {
  if (options !== undefined) requireTimeout(options.timeout, Infinity);
}
