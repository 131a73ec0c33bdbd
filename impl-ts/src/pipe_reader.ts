/**
 * The reading end of a pipe. See `spec/pipe.md`.
 *
 * @module
 */

import { Endpoint, type Stats } from "./wait_endpoint.ts";
import type { Channel } from "./segment_geometry.ts";
import { Inlet, INTO, LEND, MESSAGE, type Mode, VALUE } from "./pipe_inlet.ts";
import { Lent } from "./pipe_lend.ts";
import { requireMax, takeMany } from "./pipe_many.ts";
import { deadlineOf, deadlineOfCall, findRing, Link, requireReaderOptions } from "./pipe.ts";
import { STREAK } from "./pipe.ts";
import type { Message, ReaderOptions, WaitOptions } from "./pipe.ts";
import { cannot, raise } from "./error.ts";
import { isPast, requireTimeout, type Segment } from "./segment.ts";
import { Turns } from "./wait.ts";

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
  readonly #inlet: Inlet;
  #turns: Turns | undefined;
  #lent: Lent | undefined;
  #streak = 0;

  /**
   * Joins a ring to an attached endpoint; for ports. Use `Reader.attach`.
   *
   * @internal
   */
  constructor(link: Link, channel: Channel, options: ReaderOptions = {}) {
    this.#inlet = new Inlet(link, channel, options);
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
    return this.#inlet.ended;
  }

  /** What this endpoint has counted. */
  get stats(): Stats {
    return this.#inlet.endpoint.stats;
  }

  /** The tag of the message that was read last. */
  get tag(): number {
    return this.#inlet.tag;
  }

  /** The codec of the message that was read last, as a number. */
  get codec(): number {
    return this.#inlet.codec;
  }

  /** The kind of the message that was read last. */
  get kind(): number {
    return this.#inlet.kind;
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
    return this.#read(VALUE, undefined, options) as T | undefined;
  }

  /** Reads one message if there is one. */
  tryRead(): T | undefined {
    return this.#try(VALUE, undefined) as T | undefined;
  }

  /** `read` without blocking. Calls are served in order. */
  readAsync(options?: WaitOptions): Promise<T | undefined> {
    return this.#wait(VALUE, undefined, options) as Promise<T | undefined>;
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
    return takeMany(this.#inlet, this.read(options), max);
  }

  /** Reads what is there, up to `max` messages; `undefined` if nothing is. */
  tryReadMany(max: number): T[] | undefined {
    requireMax(max);
    return takeMany(this.#inlet, this.tryRead(), max);
  }

  /** `readMany` without blocking. Calls are served in order. */
  async readManyAsync(max: number, options?: WaitOptions): Promise<T[] | undefined> {
    requireMax(max);
    const done = (first: unknown) => takeMany(this.#inlet, first as T | undefined, max);
    return await this.#wait(VALUE, undefined, options, done) as T[] | undefined;
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
    return this.#read(MESSAGE, undefined, options) as Message | undefined;
  }

  /** Reads one message as it is, if there is one. */
  tryReadMessage(): Message | undefined {
    return this.#try(MESSAGE, undefined) as Message | undefined;
  }

  /** `readMessage` without blocking. */
  readMessageAsync(options?: WaitOptions): Promise<Message | undefined> {
    return this.#wait(MESSAGE, undefined, options) as Promise<Message | undefined>;
  }

  /**
   * Copies one message into `target`, allocating nothing for a message of one frame, and returns
   * its size; `kind`, `codec` and `tag` are then those of the message. Blocks until there is one.
   *
   * @throws {RangeError} if the message is larger than `target`; it stays, to be read again. One
   * whose size its writer does not know as it begins may be larger than the error says.
   */
  readInto(target: Uint8Array, options?: WaitOptions): number | undefined {
    try {
      return this.#read(INTO, target, options) as number | undefined;
    } finally {
      this.#inlet.leave(target);
    }
  }

  /** The same, if there is a message. */
  tryReadInto(target: Uint8Array): number | undefined {
    try {
      return this.#try(INTO, target) as number | undefined;
    } finally {
      this.#inlet.leave(target);
    }
  }

  /**
   * Lends the payload of the next frame where it lies, a whole message or a chunk of one, and
   * blocks until there is one. For trusted peers: they can write to it. End with `release`.
   */
  peek(options?: WaitOptions): Lent | undefined {
    return this.#show(this.#read(LEND, undefined, options));
  }

  /** The same, if there is a frame. */
  tryPeek(): Lent | undefined {
    return this.#show(this.#try(LEND, undefined));
  }

  #show(area: unknown): Lent | undefined {
    const inlet = this.#inlet;
    if (area === undefined) return undefined;
    return (this.#lent ??= new Lent(inlet.bytes)).show(area as Uint8Array, inlet);
  }

  /**
   * Gives back what `peek` lent.
   *
   * @throws {ClosedError} if this end was closed meanwhile, which takes the frame back.
   */
  release(): void {
    const inlet = this.#inlet;
    raise(inlet.link.closedError("release")); // [pipe.lend_one]
    if (!inlet.isLent) cannot("release: nothing is lent");
    inlet.giveBack();
  }

  /** Closes this endpoint now; what is not read is dropped. Waits end with `pipe.closed`. */
  close(): void {
    this.#inlet.link.close();
  }

  /** The same as `close`. */
  [Symbol.dispose](): void {
    this.close();
  }

  /**
   * The direction in; for ports.
   *
   * @internal
   */
  get inlet(): Inlet {
    return this.#inlet;
  }

  /**
   * Whether asynchronous reads wait, which are served before events; for ports.
   *
   * @internal
   */
  get isBusy(): boolean {
    return this.#turns?.busy ?? false;
  }

  /**
   * Settles when the asynchronous reads that wait now have been served; for ports.
   *
   * @internal
   */
  async served(): Promise<void> {
    const turns = this.#turns ??= new Turns();
    await turns.take(Infinity, undefined);
    turns.give();
  }

  #read(mode: Mode, target: Uint8Array | undefined, options: WaitOptions | undefined): unknown {
    // Before anything is taken.
    if (options !== undefined) requireTimeout(options.timeout, Infinity);
    const taken = this.#inlet.take(mode, target, true);
    return taken !== undefined || this.ended ? taken : this.#block(mode, target, options);
  }

  #try(mode: Mode, target: Uint8Array | undefined): unknown {
    const taken = this.#inlet.take(mode, target, true);
    return taken !== undefined || this.ended ? taken : this.#takeLast(mode, target);
  }

  /**
   * Behind a look that found nothing: throws for a state that is final, where one more look finds
   * nothing either. Once and not in a loop: a peer that is gone and still publishes must not keep
   * us here. [pipe.look_again]
   */
  #takeLast(mode: Mode, target: Uint8Array | undefined): unknown {
    const gone = this.#inlet.lookAgain();
    if (gone === undefined) return undefined;
    const taken = this.#inlet.take(mode, target, false);
    if (taken === undefined && !this.ended) throw this.#inlet.giveUp(gone);
    return taken;
  }

  /**
   * Looks again a few times before the call blocks, where it may wait, and for an answer. A stream
   * passes faster if its reader does not look all the time, and lets the writer keep the line of
   * `tail` for a while. Returns whether something has come.
   */
  #glance(options: WaitOptions | undefined): boolean {
    if (options?.timeout === 0 || options?.signal !== undefined) return false;
    const { link, endpoint } = this.#inlet;
    const { glances } = endpoint.spinner;
    if (glances === 0 || !link.outgoing?.isAnswerDue) return false;
    link.outgoing.expectAnswer();
    return this.#inlet.glance(glances);
  }

  /** Behind a look that found nothing. */
  #block(mode: Mode, target: Uint8Array | undefined, options: WaitOptions | undefined): unknown {
    const inlet = this.#inlet;
    const { endpoint } = inlet;
    let taken = this.#glance(options) ? inlet.take(mode, target, false) : undefined;
    if (taken !== undefined || this.ended) return taken;
    options?.signal?.throwIfAborted();
    const timeout = options?.timeout ?? Infinity;
    taken = this.#takeLast(mode, target);
    // Only computed where it is needed: within a stream, most waits are brief.
    let deadline: number | undefined;
    for (let waits = 0; taken === undefined && !this.ended; waits++) {
      if (timeout === 0) break;
      if (waits > 0 && isPast(deadline ??= deadlineOf(timeout))) break;
      if (
        !endpoint.waitBriefly(inlet) &&
        !endpoint.wait(inlet, deadline ??= deadlineOf(timeout), waits)
      ) break;
      taken = this.#try(mode, target);
    }
    return taken;
  }

  async #wait(
    mode: Mode,
    target: Uint8Array | undefined,
    options: WaitOptions | undefined,
    done = (taken: unknown): unknown => taken,
  ): Promise<unknown> {
    const deadline = deadlineOfCall(options);
    const signal = options?.signal;
    const inlet = this.#inlet;
    const turns = this.#turns ??= new Turns();
    if (!turns.tryTake() && !await turns.take(deadline, signal)) return undefined;
    try {
      if (++this.#streak % STREAK === 0) await inlet.endpoint.giveWay();
      for (let late = options?.timeout === 0;; late = isPast(deadline)) {
        const taken = this.#try(mode, target);
        if (taken !== undefined || this.ended) return done(taken);
        if (late || !await inlet.endpoint.waitAsync(inlet, deadline, signal)) return undefined;
      }
    } finally {
      turns.give();
    }
  }
}
