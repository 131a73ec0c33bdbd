/**
 * The end of a fanout that writes. See `spec/fanout.md`.
 *
 * @module
 */

import { type Codec, type CodecName, requireCodec } from "../codec/codec.ts";
import { detach, encodePayload, makePayload, type Payload, takeBytes } from "../codec/payload.ts";
import { MillraceError, raise, requireOptions } from "../error.ts";
import { extentOf, Head, packKind, writeHeader } from "../ring/frame.ts";
import {
  fanoutChannel,
  type FanoutHandoff,
  type FanoutMode,
  type FanoutPlan,
  findFanout,
  modeOf,
} from "./channel.ts";
import { Floor, SlowReaders } from "./room.ts";
import { layout } from "../memory/layout.ts";
import { closeLink, Link } from "../pipe/link.ts";
import { deadlineOfCall, requireWait, type WaitOptions } from "../pipe/options.ts";
import { giveWayAtTimes, ownError } from "../pipe/tend.ts";
import type { MessageInit } from "../more/raw.ts";
import { isBytes } from "../memory/realm.ts";
import { isPast, type Memory, Segment } from "../memory/segment.ts";
import { fanoutReader, fanoutReaders } from "../memory/fanout.ts";
import { type Channel, requireInteger } from "../memory/plan.ts";
import { Turns, waitFor, waitForAsync } from "../wait/waitable.ts";
import {
  attachEndpoint,
  type Endpoint,
  type EndpointOptions,
  requireVacant,
  type Stats,
  statsOfEndpoint,
} from "../wait/endpoint.ts";
import { hasLeft, isLinked, ring } from "../wait/state.ts";

// V8 compiles constants of this module into the machine code, but looks up imported ones each time.
const TAIL = layout.FANOUT_TAIL_WORD;
const ENDED = layout.FANOUT_ENDED_WORD;
const READERS_WANT = layout.FANOUT_READERS_WANT_WORD;
const HEADER_SIZE = layout.FRAME_HEADER_SIZE;
const EXTENSION_SIZE = layout.HEADER_EXTENSION_SIZE;
const RESERVE = layout.RING_RESERVE;
const DATA = /* @__PURE__ */ packKind(layout.FRAME_KIND_DATA, Head.WHOLE, 0);
const EXTENDED = /* @__PURE__ */ packKind(0, layout.FRAME_FLAG_EXTENDED, 0);
/**
 * [frame.pad] [frame.end] All fields of these two are 0, except the kind, and the size of a pad.
 */
const PAD = /* @__PURE__ */ packKind(layout.FRAME_KIND_PAD, 0, 0);
const END = /* @__PURE__ */ packKind(layout.FRAME_KIND_END, 0, 0);

/**
 * Options of the writer of a fanout.
 *
 * @example
 * ```ts
 * import { FanoutWriter, type FanoutWriterOptions } from "@millrace/millrace/fanout";
 *
 * const options: FanoutWriterOptions<string> = { codec: "text", spin: 0 };
 * using writer = FanoutWriter.create<string>({ readers: 3, ...options });
 * writer.write("plain text");
 * ```
 */
export interface FanoutWriterOptions<T = unknown> extends EndpointOptions {
  /** The codec that encodes values: one of this library, or one of your own. Default `json`. */
  readonly codec?: CodecName | Codec<unknown, T> | undefined;
}

/**
 * Options of a new fanout and of its writer.
 *
 * @example
 * ```ts
 * import { type FanoutCreateOptions, FanoutWriter } from "@millrace/millrace/fanout";
 *
 * const options: FanoutCreateOptions<Uint8Array> = { readers: 2, mode: "lose", codec: "bytes" };
 * using writer = FanoutWriter.create<Uint8Array>(options);
 * writer.write(Uint8Array.of(1, 2, 3));
 * ```
 */
export interface FanoutCreateOptions<T = unknown>
  extends FanoutWriterOptions<T>, Omit<FanoutPlan, "writer"> {
  /** Blank memory, in which others may create the same fanout. Default: new shared memory. */
  readonly memory?: Memory | undefined;
  /** Milliseconds to wait for another thread to finish formatting the memory. Default 5,000. */
  readonly timeout?: number | undefined;
}

/**
 * Writes messages that every reader gets. All methods belong to the thread that created the writer.
 *
 * In mode `hold`, the slowest of the readers that have joined holds the writer back. In mode
 * `lose`, the writer never waits, and overwrites messages that a slow reader has not read.
 *
 * @typeParam T What it writes.
 *
 * @example
 * ```ts
 * import { FanoutReader, FanoutWriter } from "@millrace/millrace/fanout";
 *
 * using writer = FanoutWriter.create<{ n: number }>({ readers: 2 });
 * // Usually in two workers, to which `writer.handoff(0)` and `writer.handoff(1)` were posted:
 * using first = FanoutReader.from<{ n: number }>(writer.handoff(0));
 * using second = FanoutReader.from<{ n: number }>(writer.handoff(1));
 * writer.write({ n: 1 });
 * writer.end();
 * for (const reader of [first, second]) {
 *   for (let m; (m = reader.read()) !== undefined;) console.log(m.n); // 1, then 1
 * }
 * ```
 */
export class FanoutWriter<T = unknown> {
  /** The name, which a bundler would shorten. @internal */
  static readonly name: string = "FanoutWriter";

  /** The segment that contains the fanout. */
  readonly segment: Segment;
  /** What happens with a slow reader. */
  readonly mode: FanoutMode;
  /** The number of readers that the fanout has room for. */
  readonly readers: number;
  /** The largest size of an encoded message, in bytes. */
  readonly largest: number;
  readonly #link: Link;
  readonly #channel: Channel;
  readonly #codec: CodecName | Codec<unknown, T>;
  readonly #control: Int32Array;
  readonly #bytes: Uint8Array;
  readonly #words: Int32Array;
  readonly #slowReaders: SlowReaders | undefined;
  readonly #floor: Floor | undefined;
  readonly #payload: Payload = makePayload();
  readonly #turns: Turns = new Turns();
  /** The position after everything that is published, signed. */
  #tail: number;
  /** The number of messages written so far. */
  #count = 0;
  #isEnded = false;
  #isEncoding = false;

  private constructor(endpoint: Endpoint, channel: Channel, options: FanoutWriterOptions<T>) {
    const { segment } = endpoint;
    const start = (channel.start & ~layout.FANOUT_LOSE) | 0;
    this.segment = segment;
    this.mode = modeOf(channel);
    this.readers = fanoutReaders(channel, segment.endpointCount);
    this.#link = new Link(endpoint, endpoint.index);
    this.#channel = channel;
    this.#codec = options.codec ?? "json";
    this.#control = segment.words(channel.controlOffset, channel.controlSize);
    this.#bytes = segment.bytes(channel.dataOffset, channel.dataSize);
    this.#words = segment.words(channel.dataOffset, channel.dataSize);
    this.#tail = start;
    if (this.mode === "lose") {
      this.#floor = new Floor(this.#control, this.#words, start);
      this.largest = (channel.dataSize >> 2) - HEADER_SIZE - EXTENSION_SIZE; // [fanout.size]
    } else {
      this.#slowReaders = new SlowReaders(endpoint, this.#control, this.readers, start);
      this.largest = (channel.dataSize >> 1) - HEADER_SIZE;
    }
  }

  /**
   * Creates a fanout, and attaches its endpoint 0 as the writer. Post `handoff(i)` to reader `i`,
   * which passes it to `FanoutReader.from`.
   *
   * @throws {RangeError} if there are fewer than 1 or more than 255 readers, or the capacity is not
   * a power of two from 256 on.
   * @throws {SegmentError} as `Segment.create` does.
   */
  static create<T = unknown>(options: FanoutCreateOptions<T>): FanoutWriter<T> {
    const { memory, codec = "json" } = requireOptions(options);
    requireCodec(codec);
    const channel = fanoutChannel({ ...options, writer: 0 });
    const geometry = { endpoints: 1 + options.readers, channels: [channel] };
    const segment = memory === undefined
      ? Segment.allocate(geometry)
      : Segment.create(memory, geometry, { timeout: options.timeout });
    return FanoutWriter.attach<T>(segment, options as FanoutWriterOptions<T>);
  }

  /**
   * Attaches an endpoint, by default 0, as the writer of a fanout, by default the first that this
   * endpoint writes.
   *
   * @throws {SegmentError} `segment.endpoint`, or `segment.channel` if there is no such fanout.
   */
  static attach<T = unknown>(
    segment: Segment,
    options: FanoutWriterOptions<T> & {
      readonly endpoint?: number | undefined;
      readonly channel?: number | undefined;
    } = {},
  ): FanoutWriter<T> {
    const { endpoint = 0, codec = "json" } = requireOptions(options);
    requireCodec(codec);
    requireVacant(segment, endpoint);
    const channel = findFanout(segment, options.channel, endpoint, true);
    return new FanoutWriter<T>(attachEndpoint(segment, endpoint, options), channel, options);
  }

  /** The memory that contains the fanout. */
  get memory(): Memory {
    return this.segment.memory;
  }

  /** The index of this thread's endpoint. */
  get endpoint(): number {
    return this.#link.endpoint.index;
  }

  /** Whether `end` was called. */
  get ended(): boolean {
    return this.#isEnded;
  }

  /** What this endpoint has counted since it attached. */
  get stats(): Stats {
    return statsOfEndpoint(this.#link.endpoint);
  }

  /**
   * Returns the object to post to the thread of one reader; readers are numbered from 0.
   *
   * @throws {RangeError} if there is no such reader.
   */
  handoff(reader: number): FanoutHandoff {
    requireInteger("reader", reader, 0, this.readers - 1);
    const { segment } = this;
    if (!segment.shared) throw new TypeError("Cannot hand fanout over: its memory is not shared");
    const endpoint = fanoutReader(this.endpoint, segment.endpointCount, reader);
    const channel = segment.channels.indexOf(this.#channel);
    return { millrace: "fanout", memory: segment.memory, endpoint, channel };
  }

  /**
   * Writes one message. Blocks while a reader holds the room that the message needs.
   *
   * @throws {TimeoutError} at the timeout; then nothing of the message is written.
   * @throws {MessageError} `message.size` if the message is larger than `largest`.
   * @throws {ClosedError} if this end is closed, failed or ended.
   * @throws {TypeError} if the codec cannot encode the value.
   * @throws {ForbiddenError} on a thread that must not block, after a few looks.
   */
  write(value: T, options?: WaitOptions): void {
    requireWait(options);
    this.#requireTurn();
    this.#encode(value, this.#payload);
    this.#block(0, options);
  }

  /** Writes one message if there is room for it. Returns whether it did. Never waits. */
  tryWrite(value: T): boolean {
    if (this.#turns.busy) return false;
    this.#encode(value, this.#payload);
    return this.#put(this.#payload, 0);
  }

  /**
   * Writes one message without blocking. Messages keep the order of the calls. The promise resolves
   * when the message is in the ring. If the value is an array of bytes, it must not change until
   * then.
   */
  async writeAsync(value: T, options?: WaitOptions): Promise<void> {
    const deadline = deadlineOfCall(options);
    const signal = options?.signal;
    const turns = this.#turns;
    const payload = makePayload();
    this.#encode(value, payload);
    if (turns.busy) detach(payload);
    if (!turns.tryTake() && !await turns.take(deadline, signal)) throw timedOut();
    try {
      const turn = giveWayAtTimes(this.#link);
      if (turn !== undefined) {
        detach(payload);
        await turn;
      }
      while (!this.#put(payload, 0)) {
        detach(payload);
        if (isPast(deadline)) throw timedOut();
        await waitForAsync(this.#link.endpoint, this.#slowReaders!, deadline, signal);
      }
    } finally {
      turns.give();
    }
  }

  /** Writes a message with header fields; its kind must be data. Blocks while there is no room. */
  writeMessage(message: MessageInit, options?: WaitOptions): void {
    requireWait(options);
    this.#requireTurn();
    this.#block(this.#take(message), options);
  }

  /** Writes one message with its header fields, if there is room for it. Returns whether it did. */
  tryWriteMessage(message: MessageInit): boolean {
    if (this.#turns.busy) return false;
    return this.#put(this.#payload, this.#take(message));
  }

  /**
   * Ends the stream: each reader gets all messages that it has not lost, and then the end. Never
   * waits. A second call does nothing.
   *
   * @throws {ClosedError} if this end is closed or failed.
   * @throws {TypeError} while an asynchronous write waits for room.
   */
  end(): void {
    if (this.#isEnded) return; // [pipe.end_again]
    this.#check();
    this.#requireTurn();
    this.#isEnded = true;
    this.#frame(0, END, 0); // [pipe.end_now] Each frame has left room for the end.
    Atomics.store(this.#control, ENDED, this.#tail | layout.FANOUT_JOINED); // [fanout.ended]
    this.#publish();
  }

  /** Closes this endpoint now. Published messages stay readable. Waits end with `pipe.closed`. */
  close(): void {
    if (this.#link.isClosed) return;
    this.#slowReaders?.disarm();
    closeLink(this.#link);
  }

  /** Closes the endpoint; see `close`. */
  [Symbol.dispose](): void {
    this.close();
  }

  #requireTurn(): void {
    if (!this.#turns.busy) return;
    throw new TypeError("Cannot write: an asynchronous write is under way");
  }

  /** Throws the error that takes precedence over a write. [fanout.first_answer] */
  #check(): void {
    const { endpoint, isClosed } = this.#link;
    const isWell = !isClosed && isLinked(this.#link); // a writer's link has itself as its peer
    if (!isWell && (isClosed || hasLeft(endpoint))) raise(ownError(this.#link, "write"));
    if (this.#isEnded) throw new MillraceError("pipe.ended", "Cannot write: this end has ended");
    if (this.#isEncoding) throw new TypeError("Cannot write: a value is being encoded");
  }

  #encode(value: T, payload: Payload): void {
    this.#check();
    const codec = this.#codec;
    const isRaw = codec === "json" || codec === "bytes";
    if (isRaw && isBytes(value)) return takeBytes(value, layout.CODEC_BYTES, payload);
    this.#isEncoding = true; // application code may run, and must not write meanwhile
    try {
      encodePayload(value, codec as CodecName, payload);
    } finally {
      this.#isEncoding = false;
    }
  }

  /** Takes the payload of a message with header fields. Returns its tag. */
  #take(
    { kind = layout.FRAME_KIND_DATA, codec = layout.CODEC_BYTES, tag = 0, payload }: MessageInit,
  ) {
    if (kind !== layout.FRAME_KIND_DATA) throw new RangeError(`kind must be 1: ${kind}`);
    requireInteger("codec", codec, 0, 255);
    requireInteger("tag", tag, 0, 0xffffffff);
    takeBytes(payload, codec, this.#payload);
    return tag;
  }

  #block(tag: number, options: WaitOptions | undefined): void {
    let deadline: number | undefined;
    for (let waits = 0; !this.#put(this.#payload, tag); waits++) {
      if (options?.timeout === 0) throw timedOut();
      deadline ??= deadlineOfCall(options);
      if (isPast(deadline)) throw timedOut();
      detach(this.#payload);
      waitFor(this.#link.endpoint, this.#slowReaders!, deadline, waits);
    }
  }

  /** Places and publishes a message if there is room for it. Returns whether it did. */
  #put({ source, size, code }: Payload, tag: number): boolean {
    this.#check();
    if (size > this.largest) { // [fanout.size]
      const text = `Cannot write message: ${size} bytes are more than ${this.largest}`;
      throw new MillraceError("message.size", text);
    }
    if (source.length < size) {
      throw new TypeError("Cannot write message: its bytes were detached, or are fewer now");
    }
    const lead = this.#floor === undefined ? 0 : EXTENSION_SIZE;
    if (!this.#makeRoom(extentOf(size + lead))) return false;
    const at = this.#tail & (this.#bytes.length - 1);
    if (lead > 0) this.#number((at + HEADER_SIZE) >> 2);
    if (size > 0) {
      const isWhole = size === source.length;
      this.#bytes.set(isWhole ? source : source.subarray(0, size), at + HEADER_SIZE + lead);
    }
    this.#frame(size + lead, DATA | packKind(0, 0, code) | (lead > 0 ? EXTENDED : 0), tag);
    this.#count++;
    this.#publish();
    return true;
  }

  /** Makes room for a frame, and places a pad before it if necessary. [ring.pad] */
  #makeRoom(extent: number): boolean {
    const capacity = this.#bytes.length;
    const tail = this.#tail;
    const toEnd = capacity - (tail & (capacity - 1));
    const pad = extent > toEnd ? toEnd : 0;
    const need = (tail + pad + extent + RESERVE - capacity) | 0;
    // Each write publishes its frame, so nothing is finished and unpublished. [fanout.unpublished]
    if (this.#floor !== undefined) this.#floor.raise(need, tail);
    else if (!this.#slowReaders!.findRoom(need, tail)) return false;
    if (pad > 0) this.#frame(pad - HEADER_SIZE, PAD, 0);
    return true;
  }

  /** Writes the header extension that holds the number of the message. [fanout.number] */
  #number(word: number): void {
    const words = this.#words;
    words[word] = EXTENSION_SIZE;
    words[word + 1] = layout.EXTENSION_KIND_NUMBER;
    words[word + 2] = this.#count;
    words[word + 3] = this.#count / 2 ** 32;
  }

  /** Completes a frame whose payload is in place: writes its header and moves the tail. */
  #frame(size: number, kindWord: number, tag: number): void {
    writeHeader(this.#words, (this.#tail & (this.#bytes.length - 1)) >> 2, size, kindWord, tag);
    this.#tail = (this.#tail + extentOf(size)) | 0;
  }

  /** Publishes finished frames, and rings the readers that have asked for it. [fanout.wake] */
  #publish(): void {
    const control = this.#control;
    const { endpoint } = this.#link;
    Atomics.store(control, TAIL, this.#tail);
    for (let first = 0; first < this.readers; first += 32) {
      const word = READERS_WANT + (first >> 5);
      let bits = Atomics.load(control, word) === 0 ? 0 : Atomics.exchange(control, word, 0);
      if (bits === 0) endpoint.wakesElided++;
      while (bits !== 0) {
        const bit = 31 - Math.clz32(bits);
        bits &= ~(1 << bit);
        if (first + bit >= this.readers) continue;
        ring(endpoint, fanoutReader(endpoint.index, this.segment.endpointCount, first + bit));
      }
    }
  }
}

function timedOut(): MillraceError {
  return new MillraceError(
    "wait.timeout",
    "Cannot write: a reader held the room until the deadline",
  );
}
