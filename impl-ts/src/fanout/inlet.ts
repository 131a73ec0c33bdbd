/**
 * The reading side of a fanout: takes messages out of it, and waits for them. See `spec/fanout.md`.
 *
 * @module
 */

import {
  type AnyCodec,
  type CodecName,
  type CodecTable,
  codecTable,
  copyOut,
  decodeBatch,
  decodeForeign,
  decodeJson,
  decodeText,
  encodeJson,
  takeCopy,
} from "../codec/codec.ts";
import { copyInto, KeptTarget } from "../codec/payload.ts";
import { MillraceError, raise, reasonName, throwRangeError } from "../error.ts";
import { BROKEN, Place, SOUND } from "./place.ts";
import type { FanoutReaderOptions } from "./reader.ts";
import { checkFrame, type Frame, Head, makeFrame } from "../ring/frame.ts";
import { layout } from "../memory/layout.ts";
import { closeLink, Link } from "../pipe/link.ts";
import { MAX_JSON_SIZE, MAX_MESSAGE_SIZE } from "../pipe/options.ts";
import { closedError, ownError, peerError } from "../pipe/tend.ts";
import { fanoutRecord } from "../memory/fanout.ts";
import type { Channel } from "../memory/plan.ts";
import type { Waitable } from "../wait/waitable.ts";
import { type Endpoint, look } from "../wait/endpoint.ts";
import { hasLeft, isLinked, markFailed, ring } from "../wait/state.ts";

/** What `take` returns: a message's value, the message as it is, or the size of a copy of it. */
export const VALUE = 0;
export const MESSAGE = 1;
export const INTO = 2;
export type Mode = typeof VALUE | typeof MESSAGE | typeof INTO;

// V8 compiles constants of this module into the machine code, but looks up imported ones each time.
const HEAD = layout.FANOUT_READER_HEAD_WORD;
const WRITER_WANTS = layout.FANOUT_READER_WRITER_WANTS_WORD;
const HEADER_SIZE = layout.FRAME_HEADER_SIZE;
const KIND_PAD = layout.FRAME_KIND_PAD;
/** The words of a header extension, counted from the first word of the frame. */
const EXTENSION_KIND = (HEADER_SIZE + layout.EXTENSION_KIND_OFFSET) >> 2;
const NUMBER = (HEADER_SIZE + layout.EXTENSION_CONTENT_OFFSET) >> 2;

/**
 * Thrown by a reader of a fanout in mode `lose` that was overrun: `count` messages were overwritten
 * before it read them. Code `message.lost`. The next call goes on with the oldest message left.
 *
 * @example
 * ```ts
 * import { FanoutReader, FanoutWriter, LostError } from "@millrace/millrace/fanout";
 *
 * using writer = FanoutWriter.create<number>({ readers: 1, mode: "lose", capacity: 256 });
 * using reader = FanoutReader.from<number>(writer.handoff(0)); // usually in another thread
 * for (let n = 0; n < 100; n++) writer.write(n);
 * try {
 *   reader.read();
 * } catch (error) {
 *   if (error instanceof LostError) console.log(error.count, reader.read()); // 95 95
 * }
 * ```
 */
export class LostError extends MillraceError {
  /** The name, which a bundler would shorten. @internal */
  static override readonly name: string = "LostError";

  /** How many messages were lost. */
  readonly count: number;

  /** Makes the error for `count` lost messages. */
  constructor(count: number) {
    super("message.lost", `Cannot read ${count} messages: they were overwritten`);
    this.name = "LostError";
    this.count = count;
  }
}

/** The reading side of a fanout, of one endpoint. */
export class FanoutInlet implements Waitable {
  readonly link: Link;
  readonly place: Place;
  readonly #bytes: Uint8Array;
  readonly #words: Int32Array;
  readonly #codecs: CodecTable;
  readonly #limit: number;
  readonly #jsonLimit: number;
  readonly #isOldest: boolean;
  /** The word and the bit in `readers_want` of this reader. */
  readonly #want: number;
  readonly #bit: number;
  /**
   * The frame under inspection, and in mode `lose` the number of its message, or -1 if it has none.
   */
  readonly #frame: Frame = makeFrame();
  #number = -1;
  /** In mode `hold`: the position that was stored last in `head`, which the writer sees. */
  #stored = 0;
  /** Whether this end reads: false before it has begun or joined, and after it has left. */
  #isJoined = false;
  /** Whether the end of the stream was read. */
  isEnded = false;
  #fault: MillraceError | undefined;
  #arms = 0;
  /** How many lost messages were reported by errors. */
  lost = 0;
  /** The expected number of the next message; -1 if it is not known. [fanout.expected] */
  #expected = -1;
  /** The elements of a batch that are not delivered yet, in reverse order. */
  #batch: unknown[] = [];
  /** The kind, codec and tag of the message that was read last. */
  kind = 0;
  codec = 0;
  tag = 0;
  /** The byte area as doubles, for copying texts. */
  #doubles: Float64Array | undefined;
  /** Created when a message is first read into memory of the caller. */
  #target: KeptTarget | undefined;

  /** Opens a fanout that has passed the checks, on an attached endpoint that has a record in it. */
  constructor(endpoint: Endpoint, channel: Channel, options: FanoutReaderOptions<never>) {
    const { segment, index } = endpoint;
    const { maxMessageSize, codec, codecs, oldest = false } = options;
    const record = fanoutRecord(channel, segment.endpointCount, index);
    this.link = new Link(endpoint, channel.writer);
    this.place = new Place(segment, channel, record);
    this.#bytes = segment.bytes(channel.dataOffset, channel.dataSize);
    this.#words = segment.words(channel.dataOffset, channel.dataSize);
    this.#codecs = codecTable(codec as CodecName, codecs as readonly AnyCodec[] | undefined);
    this.#limit = maxMessageSize ?? MAX_MESSAGE_SIZE;
    this.#jsonLimit = maxMessageSize ?? MAX_JSON_SIZE;
    this.#isOldest = oldest;
    this.#want = layout.FANOUT_READERS_WANT_WORD + (record >> 5);
    this.#bit = 1 << (record & 31);
    if (this.place.isLossy) this.#begin();
    else this.#join();
  }

  /** Whether the end of the stream was reached and no element of a batch is left. */
  get ended(): boolean {
    return this.isEnded && this.#batch.length === 0;
  }

  get peer(): number {
    return this.link.peer;
  }

  look(): boolean {
    return this.link.isClosed || this.#fault !== undefined || this.isEnded ||
      !this.#isJoined || this.place.hasMore;
  }

  arm(): void {
    this.#arms++;
    this.#setWant(true);
  }

  stayArmed(): void {
    if ((Atomics.load(this.place.control, this.#want) & this.#bit) === 0) this.#setWant(true);
  }

  disarm(): void {
    if (--this.#arms === 0) this.#setWant(false);
  }

  settle(): void {
    this.#release(); // [ring.release_all]
  }

  /** Sets or clears this reader's bit in `readers_want`. [fanout.ask] */
  #setWant(isOn: boolean): void {
    if (this.link.isClosed || this.#fault !== undefined || !this.link.endpoint.words.length) return;
    if (isOn) Atomics.or(this.place.control, this.#want, this.#bit);
    else Atomics.and(this.place.control, this.#want, ~this.#bit);
  }

  /**
   * Mode `hold`: leaves, so that the writer no longer counts this reader. Drops a batch in
   * progress.
   */
  leave(): void {
    this.#requireHold("leave");
    if (!this.#isJoined) return;
    this.#isJoined = false;
    const place = this.place;
    this.#batch = [];
    if (!this.link.endpoint.words.length) return;
    Atomics.store(place.control, place.record + HEAD, place.head = 0); // [fanout.leave]
    if (Atomics.exchange(place.control, place.record + WRITER_WANTS, 0) !== 0) this.#ring();
    look(this.link.endpoint); // a pending `readAsync` must find that this end has left
  }

  /** Mode `hold`: the writer counts this reader, which reads all that is written from now on. */
  join(): void {
    this.#requireHold("join");
    if (!this.#isJoined) this.#join();
    raise(this.#fault);
  }

  /** Withdraws the request for a ring, drops what was not read, and closes the endpoint. */
  close(): void {
    if (this.link.isClosed) return;
    if (this.#arms > 0) this.#setWant(false); // [wait.disarm]
    this.#batch = [];
    closeLink(this.link);
  }

  #requireHold(verb: string): void {
    raise(closedError(this.link, verb) ?? this.#fault ?? ownError(this.link, verb));
    if (this.place.isLossy) throw new TypeError(`Cannot ${verb} fanout: its mode is lose`);
  }

  /** Takes a message if there is one. Throws if there is an error to report instead. */
  take(mode: Mode, target: Uint8Array | undefined): unknown {
    this.place.renew();
    const taken = this.#takeKnown(mode, target);
    if (taken !== undefined || this.ended) return taken;
    const gone = peerError(this.link, "read");
    if (gone === undefined) return undefined;
    const last = this.#takeKnown(mode, target); // [pipe.look_again]
    if (last === undefined && !this.ended) throw gone;
    return last;
  }

  /** Throws the error that takes precedence over what the ring holds. [fanout.first_answer] */
  #check(): void {
    const link = this.link;
    if (link.isClosed || this.#fault !== undefined) {
      raise(closedError(link, "read") ?? this.#fault);
    }
    const { endpoint } = link;
    if (!isLinked(link) && hasLeft(endpoint)) raise(ownError(link, "read"));
    if (this.isEnded || this.#isJoined) return;
    if (!this.place.isLossy) throw new TypeError("Cannot read fanout: this end has left it");
    this.#begin();
    raise(this.#fault);
  }

  /** Joins. If it finds a fault, the next calls report it. */
  #join(): void {
    if (this.place.join() === BROKEN) this.#fail(layout.REASON_RING_CURSOR);
    else {
      this.#isJoined = true;
      this.#storeHead();
      this.isEnded = this.place.isAfterEnd;
    }
  }

  /**
   * Mode `lose`: begins to read; tries again at the next call if the writer has spoilt each look.
   */
  #begin(): void {
    const found = this.place.begin(this.#isOldest);
    if (found === BROKEN) this.#fail(layout.REASON_RING_CURSOR);
    this.#isJoined = found === SOUND;
    if (!this.#isJoined) return;
    if (this.place.isFirst) this.#expected = 0;
    this.isEnded = !this.#isOldest && this.place.isAfterEnd;
  }

  /** Takes what is known to be published, and then what one more load shows. [ring.one_load] */
  #takeKnown(mode: Mode, target: Uint8Array | undefined): unknown {
    const place = this.place;
    this.#check();
    if (this.#batch.length > 0) return this.#takeElement(mode, target);
    if (this.isEnded || !this.#isJoined) return undefined;
    for (let mayLoad = true;; mayLoad = false) {
      while (place.own !== place.tail && place.hasTries) {
        const taken = this.#takeFrame(mode, target);
        if (taken !== undefined || this.isEnded) return taken;
      }
      // After an overrun, this end is at the floor, and has not looked yet at what is there.
      if (!mayLoad && !(place.isStale && place.hasTries)) return undefined;
      const found = place.load();
      if (found === BROKEN) throw this.#fail(layout.REASON_RING_CURSOR);
      if (found !== SOUND) return undefined;
    }
  }

  /** Takes one frame. Returns undefined if it is no message, or was overwritten meanwhile. */
  #takeFrame(mode: Mode, target: Uint8Array | undefined): unknown {
    const place = this.place;
    const frame = this.#frame;
    const { capacity, own } = place;
    const at = own & (capacity - 1);
    const known = (place.tail - own) | 0;
    const words = this.#words;
    const index = at >> 2;
    const size = words[index]! >>> 0;
    const word = words[index + 1]!;
    const half = capacity >> 1;
    const reason = checkFrame(frame, words, index, size, word, known, capacity - at, half);
    const isMessage = reason === 0 && frame.kind < KIND_PAD &&
      frame.kind !== layout.FRAME_KIND_END;
    if (place.isLossy) this.#number = this.#numberAt(index);
    const refusal = isMessage ? this.#refusal() : undefined;
    const isTaken = isMessage && refusal === undefined &&
      (mode !== INTO || frame.size <= target!.length);
    const payload = isTaken ? this.#copy(mode, target) : undefined;
    const found = place.settleCopy();
    if (found === BROKEN) throw this.#fail(layout.REASON_RING_CURSOR);
    if (found !== SOUND) return undefined; // [fanout.overrun]
    // [fanout.held] If this endpoint was marked failed, the writer may have overwritten the copied
    // bytes.
    if (hasLeft(this.link.endpoint)) raise(ownError(this.link, "read"));
    const fault = reason === 0 && isMessage ? this.#checkMessage() : reason;
    if (fault !== 0) throw this.#fail(fault);
    if (!isMessage) {
      if (frame.kind === layout.FRAME_KIND_END) this.isEnded = true;
      this.#pass();
      return undefined;
    }
    return this.#deliver(mode, target, payload, refusal);
  }

  /** The number of the message in that frame, from its header extension; -1 if it has none. */
  #numberAt(word: number): number {
    const words = this.#words;
    const isNumbered = this.#frame.at === 4 * word + HEADER_SIZE + layout.HEADER_EXTENSION_SIZE &&
      words[word + EXTENSION_KIND] === layout.EXTENSION_KIND_NUMBER;
    if (!isNumbered) return -1;
    return (words[word + NUMBER]! >>> 0) + (words[word + NUMBER + 1]! >>> 0) * 2 ** 32;
  }

  /** Copies the message; whether it was still there is checked afterwards. */
  #copy(mode: Mode, target: Uint8Array | undefined): Uint8Array | undefined {
    const { at, size, codec } = this.#frame;
    const isText = codec !== layout.CODEC_BYTES && codec <= layout.CODEC_JSON_BATCH;
    if (mode === VALUE && isText) { // decoded before the shared copy is used again
      const doubles = this.#doubles ??= doublesOf(this.#words);
      return takeCopy(this.#bytes, this.#words, doubles, at, size);
    }
    if (mode !== INTO) return copyOut(this.#bytes, at, size);
    const kept = this.#target ??= new KeptTarget();
    copyInto(this.#bytes, this.#words, at, size, target!, kept.wordsOf(target!));
    return undefined;
  }

  /**
   * Makes the checks of a message, in the order of the chapter. Returns the reason of a fault, or
   * 0; throws if messages were lost before this one.
   */
  #checkMessage(): number {
    const frame = this.#frame;
    const place = this.place;
    if (frame.flags !== Head.WHOLE) return layout.REASON_FRAME_FLAGS;
    if (!place.isLossy) return 0;
    if (frame.extent > place.capacity >> 2) return layout.REASON_FRAME_SIZE;
    const number = this.#number;
    if (number < 0) return layout.REASON_FRAME_EXTENSION;
    const expected = this.#expected < 0 ? number : this.#expected;
    const lost = number - expected;
    if (lost !== 0 && !(place.isOverrun && lost > 0)) return layout.REASON_FANOUT_NUMBER;
    place.isOverrun = false;
    this.#expected = number;
    if (lost === 0) return 0;
    this.lost += lost;
    throw new LostError(lost);
  }

  /** Says why this reader does not take the message, if so. [pipe.unknown_kind] [pipe.limit] */
  #refusal(): string | undefined {
    const { kind, codec, size } = this.#frame;
    if (kind !== layout.FRAME_KIND_DATA) return `its kind is ${kind}`;
    const isJson = codec === layout.CODEC_JSON || codec === layout.CODEC_JSON_BATCH;
    const limit = isJson ? this.#jsonLimit : this.#limit;
    return size <= limit ? undefined : `it has ${size} bytes, and maxMessageSize is ${limit}`;
  }

  /** Delivers a message that is whole, or throws why it does not. */
  #deliver(
    mode: Mode,
    target: Uint8Array | undefined,
    payload: Uint8Array | undefined,
    refusal: string | undefined,
  ): unknown {
    const { kind, codec, tag, size } = this.#frame;
    if (refusal === undefined && mode === INTO) requireFit(size, target!);
    if (this.#expected >= 0) this.#expected++;
    this.#pass();
    if (refusal !== undefined) {
      const code = kind === layout.FRAME_KIND_DATA ? "message.size" : "message.kind";
      throw new MillraceError(code, `Cannot read message: ${refusal}`);
    }
    this.kind = kind;
    this.codec = codec;
    this.tag = tag;
    if (mode === INTO) return size;
    if (mode === MESSAGE) return { kind, codec, tag, payload: payload! };
    return this.#decode(payload!);
  }

  #decode(payload: Uint8Array): unknown {
    switch (this.codec) {
      case layout.CODEC_JSON:
        return decodeJson(payload);
      case layout.CODEC_TEXT:
        return decodeText(payload);
      case layout.CODEC_BYTES:
        return payload;
      case layout.CODEC_JSON_BATCH:
        this.#batch = decodeBatch(payload).reverse();
        return this.#takeElement(VALUE, undefined);
      default:
        return decodeForeign(payload, this.codec, this.#codecs);
    }
  }

  /** Takes the next element of a batch. [codec.batch_read] */
  #takeElement(mode: Mode, target: Uint8Array | undefined): unknown {
    const batch = this.#batch;
    const value = batch[batch.length - 1];
    const payload = mode === VALUE ? undefined : encodeJson(value);
    if (mode === INTO) requireFit(payload!.length, target!);
    batch.pop();
    this.codec = layout.CODEC_JSON;
    if (mode === VALUE) return value;
    if (mode === MESSAGE) {
      return { kind: this.kind, codec: layout.CODEC_JSON, tag: this.tag, payload: payload! };
    }
    target!.set(payload!);
    return payload!.length;
  }

  /**
   * Passes the frame. Tells the writer when a quarter of the ring is free again, or all of it, or
   * any of it if the writer waits. [ring.release_asked]
   */
  #pass(): void {
    const place = this.place;
    place.advance(this.#frame.extent);
    if (place.isLossy) return;
    const { own, tail, capacity, control, record } = place;
    const isDue = own === tail || ((own - this.#stored) | 0) >= capacity >> 2;
    if (isDue || Atomics.load(control, record + WRITER_WANTS) !== 0) this.#release();
  }

  /** Gives the space of what was read back to the writer. [fanout.release] */
  #release(): void {
    const isReading = this.#isJoined && !this.link.isClosed && this.#fault === undefined;
    if (isReading && !this.place.isLossy && this.place.own !== this.#stored) this.#storeHead();
  }

  /** Stores the own position in `head`, and wakes the writer if it waits for that position. */
  #storeHead(): void {
    const { control, record, own } = this.place;
    this.#stored = own;
    Atomics.store(control, record + HEAD, this.place.head = own | layout.FANOUT_JOINED);
    const wants = Atomics.load(control, record + WRITER_WANTS);
    const isMet = wants !== 0 && ((own - (wants & ~layout.WANTS_ARMED)) | 0) >= 0;
    if (isMet && Atomics.exchange(control, record + WRITER_WANTS, 0) !== 0) this.#ring();
    else this.link.endpoint.wakesElided++;
  }

  #ring(): void {
    ring(this.link.endpoint, this.link.peer);
  }

  /** Marks the writer failed for a fault. Returns the error of this call and of all later ones. */
  #fail(reason: number): MillraceError {
    const { endpoint, peer } = this.link;
    if (this.#arms > 0) this.#setWant(false);
    markFailed(endpoint.segment, peer, reason, endpoint.mechanism);
    const { kind, flags, size } = this.#frame;
    const what = `frame of kind ${kind}, flags ${flags}, size ${size}, or a cursor`;
    return this.#fault = new MillraceError(
      reasonName(reason)!,
      `Cannot read: the writer wrote a wrong ${what}`,
    );
  }
}

/** The same memory as doubles, by which texts are copied. */
function doublesOf({ buffer, byteOffset, length }: Int32Array): Float64Array {
  return new Float64Array(buffer, byteOffset, length >> 1);
}

/** Throws unless the message fits the caller's memory. */
function requireFit(size: number, target: Uint8Array): void {
  if (size <= target.length) return;
  throwRangeError(`Cannot read message of ${size} bytes into ${target.length}`);
}
