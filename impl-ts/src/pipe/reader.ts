/**
 * The reading end of a pipe. See `spec/pipe.md`.
 *
 * @module
 */

import { Endpoint, type Stats } from "../wait/endpoint.ts";
import type { Channel } from "../memory/segment_geometry.ts";
import { Inlet, INTO, LEND, MESSAGE, type Mode, VALUE } from "./inlet.ts";
import { Lent } from "./lend.ts";
import { requireMax, takeMany } from "./many.ts";
import { deadlineOf, deadlineOfCall, findRing, Link, requireReaderOptions } from "./pipe.ts";
import { STREAK } from "./pipe.ts";
import type { Message, ReaderOptions, WaitOptions } from "./pipe.ts";
import { cannot, raise } from "../error.ts";
import { isPast, requireTimeout, type Segment } from "../memory/segment.ts";
import { Turns } from "../wait/wait.ts";

/**
 * Reads messages from a ring. Only the thread that attached it may call its methods.
 *
 * A read that returns `undefined` has found nothing yet; if `ended` is true, nothing will come.
 *
 * @typeParam T The values that it reads. Nothing checks that the peer writes such values.
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
   * Makes the reader of an attached endpoint; for ports. Use `Reader.attach`.
   *
   * @internal
   */
  constructor(link: Link, channel: Channel, options: ReaderOptions = {}) {
    this.#inlet = new Inlet(link, channel, options);
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
    const endpoint = Endpoint.attach(segment, channel.reader, options);
    return new Reader<T>(new Link(endpoint, channel.writer), channel, options);
  }

  /** Whether the end of the stream was reached: every later read returns `undefined`. */
  get ended(): boolean {
    return this.#inlet.ended;
  }

  /** What this endpoint has counted since it attached. */
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
   * Reads one message. Blocks until there is one. Returns `undefined` at the timeout, which loses
   * nothing, and at the end of the stream.
   *
   * @throws {MessageError} if a message was lost; the next call goes on after it.
   * @throws {PeerClosedError} if everything is read and the writer has closed without an `end`.
   * @throws {PeerFailedError} if everything is read and the writer is marked failed.
   * @throws {ClosedError} if this end was closed by `close`; or if everything is read and somebody
   * else has closed it or marked it failed.
   * @throws {CorruptError} if the writer broke the ring; every later call throws it again.
   */
  read(options?: WaitOptions): T | undefined {
    return this.#read(VALUE, undefined, options) as T | undefined;
  }

  /** Reads one message if there is one; otherwise returns `undefined`. Never waits. */
  tryRead(): T | undefined {
    return this.#try(VALUE, undefined) as T | undefined;
  }

  /** `read` without blocking. Calls are served in the order in which they were made. */
  readAsync(options?: WaitOptions): Promise<T | undefined> {
    return this.#wait(VALUE, undefined, options) as Promise<T | undefined>;
  }

  /**
   * Reads the messages that are there, up to `max`. Blocks until there is at least one. Returns
   * `undefined` where `read` does.
   *
   * Throws what `read` throws. A lost message ends the list, and the next call reports it.
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

  /**
   * Reads the messages that are there, up to `max`; returns `undefined` if there are none. Never
   * waits.
   */
  tryReadMany(max: number): T[] | undefined {
    requireMax(max);
    return takeMany(this.#inlet, this.tryRead(), max);
  }

  /** `readMany` without blocking. Calls are served in the order in which they were made. */
  async readManyAsync(max: number, options?: WaitOptions): Promise<T[] | undefined> {
    requireMax(max);
    const done = (first: unknown) => takeMany(this.#inlet, first as T | undefined, max);
    return await this.#wait(VALUE, undefined, options, done) as T[] | undefined;
  }

  /**
   * Reads message after message until the stream ends, and throws what `readAsync` rejects with.
   * Leaving the loop leaves the pipe as it is: later messages can be read, or looped over, later.
   */
  async *[Symbol.asyncIterator](): AsyncGenerator<T, void, void> {
    for (let value; (value = await this.readAsync()) !== undefined;) yield value;
  }

  /** Reads one message without decoding it; a batch is one message. Blocks until there is one. */
  readMessage(options?: WaitOptions): Message | undefined {
    return this.#read(MESSAGE, undefined, options) as Message | undefined;
  }

  /**
   * Reads one message without decoding it, if there is one; otherwise returns `undefined`. Never
   * waits.
   */
  tryReadMessage(): Message | undefined {
    return this.#try(MESSAGE, undefined) as Message | undefined;
  }

  /** `readMessage` without blocking. */
  readMessageAsync(options?: WaitOptions): Promise<Message | undefined> {
    return this.#wait(MESSAGE, undefined, options) as Promise<Message | undefined>;
  }

  /**
   * Copies the payload of one message into `target` and returns its size in bytes; `kind`, `codec`
   * and `tag` are then those of the message. Allocates nothing for a message of one frame. Blocks
   * until there is a message.
   *
   * @throws {RangeError} if the message is larger than `target`; it stays, and can be read again.
   * If the writer did not know its size when it began, it may be larger than the error says.
   */
  readInto(target: Uint8Array, options?: WaitOptions): number | undefined {
    try {
      return this.#read(INTO, target, options) as number | undefined;
    } finally {
      this.#inlet.leave(target);
    }
  }

  /** `readInto` if there is a message; otherwise returns `undefined`. Never waits. */
  tryReadInto(target: Uint8Array): number | undefined {
    try {
      return this.#try(INTO, target) as number | undefined;
    } finally {
      this.#inlet.leave(target);
    }
  }

  /**
   * Lends the payload of the next frame in place: a whole message, or one chunk. Blocks until there
   * is a frame. For trusted peers only, because they can still write to it. `release` ends the
   * loan.
   */
  peek(options?: WaitOptions): Lent | undefined {
    return this.#show(this.#read(LEND, undefined, options));
  }

  /** `peek` if there is a frame; otherwise returns `undefined`. Never waits. */
  tryPeek(): Lent | undefined {
    return this.#show(this.#try(LEND, undefined));
  }

  #show(area: unknown): Lent | undefined {
    const inlet = this.#inlet;
    if (area === undefined) return undefined;
    return (this.#lent ??= new Lent(inlet.bytes)).show(area as Uint8Array, inlet);
  }

  /**
   * Gives back the frame that `peek` lent.
   *
   * @throws {ClosedError} if this end was closed meanwhile, which has taken the frame back.
   */
  release(): void {
    const inlet = this.#inlet;
    raise(inlet.link.closedError("release")); // [pipe.lend_one]
    if (!inlet.isLent) cannot("release: nothing is lent");
    inlet.releaseLent();
  }

  /** Closes this endpoint now. Unread messages are dropped; its waits end with `pipe.closed`. */
  close(): void {
    this.#inlet.link.close();
  }

  /** The same as `close`. */
  [Symbol.dispose](): void {
    this.close();
  }

  /**
   * The incoming direction; for ports.
   *
   * @internal
   */
  get inlet(): Inlet {
    return this.#inlet;
  }

  /**
   * Whether asynchronous reads wait, which get messages before events do; for ports.
   *
   * @internal
   */
  get isBusy(): boolean {
    return this.#turns?.busy ?? false;
  }

  /**
   * Resolves when the asynchronous reads that wait now have been served; for ports.
   *
   * @internal
   */
  async served(): Promise<void> {
    const turns = this.#turns ??= new Turns();
    await turns.take(Infinity, undefined);
    turns.give();
  }

  #read(mode: Mode, target: Uint8Array | undefined, options: WaitOptions | undefined): unknown {
    // Checked before anything is taken.
    if (options !== undefined) requireTimeout(options, Infinity);
    const taken = this.#inlet.take(mode, target, true);
    return taken !== undefined || this.ended ? taken : this.#block(mode, target, options);
  }

  #try(mode: Mode, target: Uint8Array | undefined): unknown {
    const taken = this.#inlet.take(mode, target, true);
    return taken !== undefined || this.ended ? taken : this.#takeLast(mode, target);
  }

  /**
   * Called after a look that found nothing. If a state is final, looks once more, and throws the
   * error of the state if that finds nothing either. Looks once and not in a loop, because a peer
   * that is gone and still publishes must not keep this call here. [pipe.look_again]
   */
  #takeLast(mode: Mode, target: Uint8Array | undefined): unknown {
    const gone = this.#inlet.lookAgain();
    if (gone === undefined) return undefined;
    const taken = this.#inlet.take(mode, target, false);
    if (taken === undefined && !this.ended) throw this.#inlet.giveUp(gone);
    return taken;
  }

  /**
   * Looks a few times more before the call blocks, if the call may wait and what comes may be an
   * answer. Otherwise it does not: a stream passes faster if its reader does not look all the time,
   * and leaves the cache line of `tail` to the writer for a while. Returns whether something has
   * come.
   */
  #glance(options: WaitOptions | undefined): boolean {
    if (options?.timeout === 0 || options?.signal !== undefined) return false;
    const { link, endpoint } = this.#inlet;
    const { glances } = endpoint.spinner;
    if (glances === 0 || !link.outgoing?.isAnswerDue) return false;
    link.outgoing.prepareForAnswer();
    return this.#inlet.glance(glances);
  }

  /** Waits for a message, after a look that found none. */
  #block(mode: Mode, target: Uint8Array | undefined, options: WaitOptions | undefined): unknown {
    const inlet = this.#inlet;
    const { endpoint } = inlet;
    let taken = this.#glance(options) ? inlet.take(mode, target, false) : undefined;
    if (taken !== undefined || this.ended) return taken;
    options?.signal?.throwIfAborted();
    const timeout = options?.timeout ?? Infinity;
    taken = this.#takeLast(mode, target);
    // Computed only when it is needed, because within a stream most waits are brief.
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
