/**
 * The end of a fanout that reads. See `spec/fanout.md`.
 *
 * @module
 */

import { requireOptions } from "../error.ts";
import type { Codec, CodecName } from "../codec/codec.ts";
import { type FanoutHandoff, type FanoutMode, findFanout, requireHandoff } from "./channel.ts";
import { FanoutInlet, INTO, MESSAGE, type Mode, VALUE } from "./inlet.ts";
import {
  deadlineOfCall,
  type Message,
  requireReaderOptions,
  requireWait,
  type WaitOptions,
} from "../pipe/options.ts";
import { giveWayAtTimes } from "../pipe/tend.ts";
import { isPast, Segment } from "../memory/segment.ts";
import type { Channel } from "../memory/plan.ts";
import { Turns, waitFor, waitForAsync } from "../wait/waitable.ts";
import {
  attachEndpoint,
  type Endpoint,
  type EndpointOptions,
  requireVacant,
  type Stats,
  statsOfEndpoint,
} from "../wait/endpoint.ts";

/**
 * Options of a reader of a fanout.
 *
 * @example
 * ```ts
 * import { FanoutReader, type FanoutReaderOptions, FanoutWriter } from "@millrace/millrace/fanout";
 *
 * using writer = FanoutWriter.create<string>({ readers: 2, mode: "lose" });
 * writer.write("before anybody came");
 * const options: FanoutReaderOptions<string> = { oldest: true };
 * using reader = FanoutReader.from<string>(writer.handoff(0), options);
 * console.log(reader.read()); // before anybody came
 * ```
 */
export interface FanoutReaderOptions<T = unknown> extends EndpointOptions {
  /**
   * A codec of your own that messages may have. The codecs of this library are always understood.
   */
  readonly codec?: CodecName | Codec<T, never> | undefined;
  /** Further codecs of your own that messages may have. */
  readonly codecs?: readonly Codec<T, never>[] | undefined;
  /** Largest message in bytes; larger ones are dropped. Default 64 MiB, and 4 MiB for JSON. */
  readonly maxMessageSize?: number | undefined;
  /** Mode `lose`: begins at the oldest message left, and not at the next one. Default false. */
  readonly oldest?: boolean | undefined;
}

/**
 * Reads the messages of a fanout's writer; every other reader of the fanout gets them too. All
 * methods belong to the thread that created the reader.
 *
 * @typeParam T What it reads. Nothing checks that the writer keeps to it.
 *
 * @example
 * ```ts
 * import { FanoutReader, FanoutWriter } from "@millrace/millrace/fanout";
 *
 * using writer = FanoutWriter.create<string>({ readers: 2 });
 * using reader = FanoutReader.from<string>(writer.handoff(0)); // usually in another thread
 * writer.write("one");
 * writer.write("two");
 * writer.end();
 * for await (const message of reader) console.log(message); // one, then two
 * ```
 */
export class FanoutReader<T = unknown> {
  /** The name, which a bundler would shorten. @internal */
  static readonly name: string = "FanoutReader";

  readonly #inlet: FanoutInlet;
  readonly #turns: Turns = new Turns();

  private constructor(endpoint: Endpoint, channel: Channel, options: FanoutReaderOptions<T>) {
    this.#inlet = new FanoutInlet(endpoint, channel, options as FanoutReaderOptions<never>);
  }

  /**
   * Attaches an endpoint, by default 1, as a reader of a fanout, by default the first that this
   * endpoint can read. In mode `hold` the reader joins, and reads all that is written from now on.
   *
   * @throws {SegmentError} `segment.endpoint`, or `segment.channel` if there is no such fanout.
   */
  static attach<T = unknown>(
    segment: Segment,
    options: FanoutReaderOptions<T> & {
      readonly endpoint?: number | undefined;
      readonly channel?: number | undefined;
    } = {},
  ): FanoutReader<T> {
    requireReaderOptions(options);
    const { endpoint = 1 } = options;
    requireVacant(segment, endpoint);
    const channel = findFanout(segment, options.channel, endpoint, false);
    return new FanoutReader<T>(attachEndpoint(segment, endpoint, options), channel, options);
  }

  /**
   * Creates the reader that a handoff describes.
   *
   * @throws {TypeError} if `handoff` is not a handoff of a fanout.
   * @throws {SegmentError} as `attach` does.
   */
  static from<T = unknown>(
    handoff: FanoutHandoff,
    options: FanoutReaderOptions<T> = {},
  ): FanoutReader<T> {
    requireHandoff(handoff);
    const { memory, endpoint, channel } = handoff;
    const own = { ...requireOptions(options), endpoint, channel };
    return FanoutReader.attach<T>(Segment.attach(memory), own);
  }

  /** What happens with a slow reader. */
  get mode(): FanoutMode {
    return this.#inlet.place.isLossy ? "lose" : "hold";
  }

  /** The index of this thread's endpoint. */
  get endpoint(): number {
    return this.#inlet.link.endpoint.index;
  }

  /** Whether the end of the stream was reached: then every later read returns `undefined`. */
  get ended(): boolean {
    return this.#inlet.ended;
  }

  /** How many messages this reader has lost since it began, as errors have reported. */
  get lost(): number {
    return this.#inlet.lost;
  }

  /** What this endpoint has counted since it attached. */
  get stats(): Stats {
    return statsOfEndpoint(this.#inlet.link.endpoint);
  }

  /** The tag of the message that was read last. */
  get tag(): number {
    return this.#inlet.tag;
  }

  /** The number of the codec of the message that was read last. */
  get codec(): number {
    return this.#inlet.codec;
  }

  /** The kind of the message that was read last: always 1, data. */
  get kind(): number {
    return this.#inlet.kind;
  }

  /**
   * Reads one message, and blocks until there is one. Returns `undefined` at the timeout and at the
   * end of the stream.
   *
   * @throws {LostError} in mode `lose`, if messages were overwritten; the next call goes on.
   * @throws {MessageError} if one message cannot be read; the next call reads the one after it.
   * @throws {PeerClosedError} if everything is read and the writer has closed without an `end`.
   * @throws {PeerFailedError} if everything is read and the writer is marked failed.
   * @throws {ClosedError} if this end is closed or was marked failed.
   * @throws {CorruptError} if the writer broke the ring; every later call throws it again.
   * @throws {TypeError} in mode `hold`, after `leave`.
   */
  read(options?: WaitOptions): T | undefined {
    return this.#read(VALUE, undefined, options) as T | undefined;
  }

  /** Reads one message if there is one, else returns `undefined`. */
  tryRead(): T | undefined {
    return this.#inlet.take(VALUE, undefined) as T | undefined;
  }

  /** Does what `read` does, without blocking. Calls are served in order. */
  async readAsync(options?: WaitOptions): Promise<T | undefined> {
    const deadline = deadlineOfCall(options);
    const signal = options?.signal;
    const turns = this.#turns;
    if (!turns.tryTake() && !await turns.take(deadline, signal)) return undefined;
    try {
      const turn = giveWayAtTimes(this.#inlet.link);
      if (turn !== undefined) await turn;
      for (let late = options?.timeout === 0;; late = isPast(deadline)) {
        const taken = this.#inlet.take(VALUE, undefined);
        if (taken !== undefined || this.ended) return taken as T | undefined;
        if (late) return undefined;
        if (!await waitForAsync(this.#inlet.link.endpoint, this.#inlet, deadline, signal)) {
          return undefined;
        }
      }
    } finally {
      turns.give();
    }
  }

  /** Yields each message until the stream ends. Throws what `readAsync` throws. */
  async *[Symbol.asyncIterator](): AsyncGenerator<T, void, void> {
    for (let value; (value = await this.readAsync()) !== undefined;) yield value;
  }

  /** Reads one message without decoding it, a batch as one message. Blocks until there is one. */
  readMessage(options?: WaitOptions): Message | undefined {
    return this.#read(MESSAGE, undefined, options) as Message | undefined;
  }

  /** Reads one message without decoding it, if there is one. */
  tryReadMessage(): Message | undefined {
    return this.#inlet.take(MESSAGE, undefined) as Message | undefined;
  }

  /**
   * Copies one message into `target`, and returns its size; `codec` and `tag` are then those of the
   * message. Blocks until there is one, and allocates nothing. If this throws or returns
   * `undefined`, the contents of `target` have no meaning.
   *
   * @throws {RangeError} if the message is larger than `target`; the message stays, to be read
   * again.
   */
  readInto(target: Uint8Array, options?: WaitOptions): number | undefined {
    return this.#read(INTO, target, options) as number | undefined;
  }

  /** Does what `readInto` does, but only if there is a message; otherwise returns `undefined`. */
  tryReadInto(target: Uint8Array): number | undefined {
    return this.#inlet.take(INTO, target) as number | undefined;
  }

  /**
   * Mode `hold`: stops holding the writer back. The reader gets nothing until it joins again.
   *
   * @throws {TypeError} in mode `lose`.
   */
  leave(): void {
    this.#inlet.leave();
  }

  /**
   * Mode `hold`: begins to read what is written from now on. A new reader has joined already.
   *
   * @throws {TypeError} in mode `lose`.
   * @throws {CorruptError} if the writer broke the ring.
   */
  join(): void {
    this.#inlet.join();
  }

  /** Closes this endpoint now, and drops messages not read yet. Waits end with `pipe.closed`. */
  close(): void {
    this.#inlet.close();
  }

  /** Closes the endpoint; see `close`. */
  [Symbol.dispose](): void {
    this.close();
  }

  #read(mode: Mode, target: Uint8Array | undefined, options: WaitOptions | undefined): unknown {
    requireWait(options);
    const inlet = this.#inlet;
    const { endpoint } = inlet.link;
    let deadline: number | undefined;
    for (let waits = 0;; waits++) {
      const taken = this.#inlet.take(mode, target);
      if (taken !== undefined || this.ended || options?.timeout === 0) return taken;
      if (waits > 0 && isPast(deadline!)) return undefined;
      deadline ??= deadlineOfCall(options);
      if (!waitFor(endpoint, inlet, deadline, waits)) {
        return undefined;
      }
    }
  }
}
