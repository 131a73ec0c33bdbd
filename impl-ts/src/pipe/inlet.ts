/**
 * The incoming direction of a pipe, for a reader. It puts messages together from the frames of a
 * ring, reports those that are lost, and keeps what it has taken out of the ring and not handed
 * out. See `spec/pipe.md`.
 *
 * @module
 */

import { type CodecTable, codecTable, copyInto, copyOut, decodeBatch } from "../codec/codec.ts";
import {
  decodeForeign,
  decodeJson,
  decodeText,
  encodeJson,
  NO_BYTES,
  takeCopy,
} from "../codec/codec.ts";
import {
  cannot,
  type CorruptError,
  lost,
  MessageError,
  type MillraceError,
  outOfRange,
  raise,
} from "../error.ts";
import { FrameReader, WHOLE } from "../ring/frame.ts";
import { ENDED, GONE, LENT, STOPPED } from "../memory/gate.ts";
import * as layout from "../memory/layout.ts";
import {
  CODEC_BYTES,
  CODEC_JSON,
  CODEC_JSON_BATCH,
  CODEC_TEXT,
  FRAME_KIND_DATA,
} from "../memory/layout.ts";
import { type Link, MAX_JSON_SIZE, MAX_MESSAGE_SIZE, type Message } from "./pipe.ts";
import type { ReaderOptions } from "./pipe.ts";
import { KeptTarget } from "./target.ts";
import type { CallTaker } from "./calls.ts";
import { Lane } from "../ring/ring.ts";
import type { Channel } from "../memory/segment_geometry.ts";

/**
 * How a message is taken: decoded, as a `Message`, copied into the caller's memory, or lent in
 * place.
 */
export const VALUE = 0;
export const MESSAGE = 1;
export const INTO = 2;
export const LEND = 3;
/** Like `MESSAGE`, but from the ring, whatever is in the queue: for an inbox. */
export const KEEP = 4;
/**
 * Not at all: what has to be read stays where it is. Only an `end`, and what is skipped, is taken.
 */
export const LOOK = 5;
export type Mode =
  | typeof VALUE
  | typeof MESSAGE
  | typeof INTO
  | typeof LEND
  | typeof KEEP
  | typeof LOOK;

/**
 * What `pull` found: nothing, a frame that is still in the ring, a message in `#parts`, the end.
 */
export const NOTHING = 0;
export const IN_RING = 1;
export const IN_PARTS = 2;
export const OVER = 3;

// V8 builds constants of this module into the machine code, but looks imported ones up each time.
const TAIL = layout.RING_TAIL_WORD;
const WRITER_WANTS = layout.RING_WRITER_WANTS_WORD;
const HEADER_SIZE = layout.FRAME_HEADER_SIZE;
/** Frames of this kind and of all higher ones are skipped. */
const KIND_PAD = layout.FRAME_KIND_PAD;
/** A batch of which the elements from `next` on are not handed out yet. */
interface Batch {
  readonly values: readonly unknown[];
  next: number;
  readonly kind: number;
  /** The codec of the elements: JSON. */
  readonly codec: number;
  readonly tag: number;
}

/** The reader's end of one ring, and what was taken out of the ring and not handed out. */
export class Inlet extends Lane {
  readonly link: Link;
  /** The frame at the own cursor. */
  readonly frame: FrameReader = new FrameReader();
  /** Kind, codec and tag of the message that was taken last. */
  kind = 0;
  codec = 0;
  tag = 0;
  /** The bytes collected of the message in progress, or all bytes of the one that is complete. */
  #parts: Uint8Array = NO_BYTES;
  /** What is delivered before anything in the ring: a batch, messages of an inbox, reports. */
  readonly queue: (Batch | Message | MessageError)[] = [];
  /** Bytes of the messages in the queue. */
  keptSize = 0;
  /** The codecs of the application that this reader knows. */
  readonly codecs: CodecTable;
  readonly #calls: boolean;
  /**
   * The largest message that is accepted, in bytes, and the largest one of JSON, which is no
   * larger.
   */
  readonly #limit: number;
  readonly #jsonLimit: number;
  /** Whether the message in progress is lent frame by frame, and not collected. */
  #isLentInParts = false;
  /** Whether the lent frame lies in the ring, so that it has to be released there. */
  isLentInRing = false;
  /** The byte area as doubles, by which texts are copied. */
  #doubles: Float64Array | undefined;
  /** Made when a message is first read into the caller's memory. */
  #target: KeptTarget | undefined;
  /**
   * The call layer, where calls are offered: it takes all messages of kinds call, return and throw.
   */
  taker: CallTaker | undefined;
  /** The report of such a message in progress that was dropped before its last frame. */
  refusal: MessageError | undefined;

  /** Makes the inlet of an attached endpoint for one of its rings. */
  constructor(link: Link, channel: Channel, options: ReaderOptions) {
    super(link.endpoint, channel, false);
    const { maxMessageSize, calls = false, codec, codecs } = options;
    this.link = link;
    this.codecs = codecTable(codec, codecs);
    this.#calls = calls;
    this.#limit = maxMessageSize ?? MAX_MESSAGE_SIZE;
    this.#jsonLimit = maxMessageSize ?? MAX_JSON_SIZE;
    link.incoming = this;
  }

  /** [wait.reader_asks] The `tail` at which there is something to read. */
  get need(): number {
    return this.own + layout.FRAME_ALIGN;
  }

  /**
   * Whether something has come since a read found nothing: into the ring, where another call may
   * have seen it and left it, or into the queue, by another call. [port.inbox_wake]
   */
  look(): boolean {
    // `hasMoved` as well, in one function: for each message this runs four times.
    try {
      return (this.bits & (ENDED | STOPPED)) !== 0 || this.own !== this.other ||
        Atomics.load(this.control, TAIL) !== this.other || this.queue.length > 0 ||
        (this.taker !== undefined && this.taker.isDue);
    } catch {
      return true; // the memory is gone, which `load` reports
    }
  }

  /** Whether anything came after the last message. Does not look at the states. */
  get hasMore(): boolean {
    return this.own !== this.other || this.hasMoved || this.queue.length > 0;
  }

  /** Whether the end of the stream was read, and the queue is empty. */
  get ended(): boolean {
    return (this.bits & ENDED) !== 0 && this.queue.length === 0;
  }

  /** Whether a frame is lent. */
  get isLent(): boolean {
    return (this.bits & LENT) !== 0;
  }

  /** Whether a frame is lent, or the rest of its message still has to be lent. */
  get isLending(): boolean {
    return this.isLent || this.#isLentInParts;
  }

  /** Whether messages can still be received and collected: nothing has ended or is being lent. */
  get isOpen(): boolean {
    return (this.bits & (LENT | ENDED | STOPPED)) === 0 && !this.#isLentInParts;
  }

  override close(): void {
    super.close();
    this.queue.length = this.keptSize = 0;
    this.drop();
    this.taker?.finish(this.link.closedError("call"));
  }

  /**
   * Takes the next message as `mode` says. Returns `undefined` if there is none or the stream has
   * ended. With `mayLoad` it loads the tail once if the frames known before make no message.
   * [ring.one_load]
   *
   * @throws {MessageError} for a message that was lost.
   */
  take(mode: Mode, target: Uint8Array | undefined, mayLoad: boolean): unknown {
    if (this.taker !== undefined && mode !== KEEP && (this.bits & LENT) === 0) {
      this.taker.serve(mayLoad);
      mayLoad = false;
    }
    if (this.queue.length > 0 && mode !== KEEP) return this.#takeQueued(mode, target);
    const found = this.pull(mode, target, mayLoad);
    if (found !== IN_RING) return found === IN_PARTS ? this.takeParts(mode, target) : undefined;
    if (mode === LEND) return this.#lend(undefined);
    const { bytes, words, codec } = this;
    const { size, lead } = this.frame;
    const at = (this.own & (this.capacity - 1)) + HEADER_SIZE + lead;
    // The payload is copied, and its room given back, before anything is decoded.
    if (mode === INTO) {
      const kept = this.#target ??= new KeptTarget();
      copyInto(bytes, words, at, size, target!, kept.wordsOf(target!));
      this.release();
      return size;
    }
    const isOwn = mode !== VALUE || codec === CODEC_BYTES || codec > CODEC_JSON_BATCH;
    const payload = isOwn
      ? copyOut(bytes, at, size)
      : takeCopy(bytes, words, this.#doubles ??= doublesOf(words), at, size);
    this.release();
    return mode === VALUE ? this.#decode(payload) : this.#handOut(payload, mode, target);
  }

  /** Takes the message that `pull` has put together in `#parts`. */
  takeParts(mode: Mode, target: Uint8Array | undefined): unknown {
    const parts = this.#parts;
    this.drop();
    return parts === target ? this.frame.received : this.#handOut(parts, mode, target);
  }

  /** Hands out a message that is in private memory, as `mode` says. */
  #handOut(payload: Uint8Array, mode: Mode, target: Uint8Array | undefined): unknown {
    if (mode === VALUE) return this.#decode(payload);
    if (mode === LEND) return this.#lend(payload);
    if (mode === INTO) {
      target!.set(payload);
      return payload.length;
    }
    const { kind, codec, tag } = this;
    return { kind, codec, tag, payload } satisfies Message;
  }

  #decode(payload: Uint8Array): unknown {
    switch (this.codec) {
      case CODEC_JSON:
        return decodeJson(payload);
      case CODEC_TEXT:
        return decodeText(payload);
      case CODEC_BYTES:
        return payload;
      case CODEC_JSON_BATCH: {
        const { kind, tag } = this;
        const values = decodeBatch(payload);
        this.queue.unshift({ values, next: 0, kind, codec: CODEC_JSON, tag });
        return this.#takeQueued(VALUE, undefined);
      }
      default:
        return decodeForeign(payload, this.codec, this.codecs);
    }
  }

  /**
   * Lends the frame in the ring, or `copy`, which was taken out before. Returns the memory it is
   * in.
   */
  #lend(copy: Uint8Array | undefined): Uint8Array {
    this.isLentInRing = copy === undefined;
    this.bits |= LENT;
    return copy ?? this.bytes;
  }

  /** Gives back the frame that is lent. */
  releaseLent(): void {
    this.bits &= ~LENT;
    if (!this.isLentInRing) return;
    if (this.frame.isLast) this.#isLentInParts = false;
    this.release();
  }

  /** Appends a message, or a report, to the queue. */
  keep(arrival: Message | MessageError): void {
    if (!(arrival instanceof MessageError)) this.keptSize += arrival.payload.length;
    this.queue.push(arrival);
  }

  /** Takes what comes next in the queue. [port.inbox_order] */
  #takeQueued(mode: Mode, target: Uint8Array | undefined): unknown {
    this.#requireBack(mode);
    const { queue } = this;
    const first = queue[0]!;
    if ("values" in first) return this.#takeElement(first, mode, target);
    if (first instanceof MessageError) {
      queue.shift();
      throw first;
    }
    const { payload } = first;
    if (mode === INTO) requireFit(payload.length, target!);
    queue.shift();
    this.keptSize -= payload.length;
    this.note(first);
    return this.#handOut(payload, mode, target);
  }

  /** Hands out the next element of a batch. [codec.batch_read] */
  #takeElement(batch: Batch, mode: Mode, target: Uint8Array | undefined): unknown {
    const { values } = batch;
    const value = values[batch.next++];
    if (batch.next === values.length) this.queue.shift();
    if (mode === VALUE) {
      this.note(batch);
      return value;
    }
    const payload = encodeJson(value);
    if (mode === INTO && payload.length > target!.length) { // it stays, to be read again
      if (batch.next-- === values.length) this.queue.unshift(batch);
      requireFit(payload.length, target!);
    }
    this.note(batch);
    return this.#handOut(payload, mode, target);
  }

  /** Throws while a frame is lent. [pipe.lend_one] */
  #requireBack(mode: Mode): void {
    if ((this.bits & LENT) === 0 || mode === LOOK) return;
    const what = mode === LEND ? "peek: a frame is lent already" : "read: a frame is lent";
    cannot(`${what}`);
  }

  /**
   * Goes through the frames that earlier loads of the tail showed, up to the first message. With
   * `mayLoad`, then loads the tail once and goes through what that showed. [ring.one_load] A
   * message of one frame stays in the ring, for the caller to take.
   */
  pull(mode: Mode, target: Uint8Array | undefined, mayLoad: boolean): number {
    if (this.bits !== 0) { // [pipe.first_answer]
      raise(this.link.closedError("read") ?? this.fault);
      if ((this.bits & ENDED) !== 0) return OVER;
      this.#requireBack(mode);
    }
    const { frame, capacity, words } = this;
    for (;;) {
      while (this.own !== this.other) {
        const at = this.own & (capacity - 1);
        const known = (this.other - this.own) | 0;
        const reason = frame.check(words, at >> 2, known, capacity - at, capacity >> 1);
        if (reason !== 0) throw this.#frameFault(reason);
        if (frame.flags === WHOLE && frame.kind < KIND_PAD) {
          if (mode === LOOK) return IN_RING;
          if (frame.kind !== FRAME_KIND_DATA || frame.size > this.#jsonLimit) {
            this.admit(frame.size);
          }
          if (mode === INTO) requireFit(frame.size, target!);
          this.note(frame);
          return IN_RING;
        }
        const found = this.#arrive(mode, target);
        if (found !== NOTHING) return found;
      }
      if (!mayLoad || !this.load()) return NOTHING;
      mayLoad = false;
    }
  }

  /** Handles a frame that is not a whole message. */
  #arrive(mode: Mode, target: Uint8Array | undefined): number {
    const { frame } = this;
    const isSkipped = frame.kind >= KIND_PAD; // [frame.skip]
    const isEnd = frame.kind === layout.FRAME_KIND_END;
    const isDropped = frame.dropped && this.refusal === undefined;
    if (mode === LOOK && !isSkipped && !(frame.inProgress ? isDropped : isEnd)) return IN_RING;
    if (isEnd) return this.#arriveEnd();
    // [pipe.report_once]
    if (!isSkipped && (frame.isFirst || !frame.dropped)) return this.#arriveChunk(mode, target);
    this.release();
    if (!isSkipped && frame.isLast) { // the message was dropped
      const { refusal } = this;
      this.refusal = undefined;
      if ((frame.flags & layout.FRAME_FLAG_CANCEL) === 0) raise(refusal);
    }
    return NOTHING;
  }

  #arriveEnd(): number {
    const { frame, taker } = this;
    this.bits |= ENDED;
    this.refusal = undefined;
    this.drop();
    this.release();
    this.endpoint.watch.look(); // ends waits for the end of the port
    // [pipe.truncated]
    const error = frame.inProgress && !frame.dropped
      ? lost("message.truncated", "the stream ended inside it")
      : undefined;
    const isTold = error !== undefined &&
      taker?.cut(frame.begun & 0xff, frame.begunTag >>> 0, error);
    taker?.finish(undefined);
    if (error === undefined || isTold) return OVER;
    throw error;
  }

  #arriveChunk(mode: Mode, target: Uint8Array | undefined): number {
    const { frame } = this;
    const { size, isFirst, isLast, isUnknown } = frame;
    // What there must be room for: the whole message, or, if its size is unknown, what has come of
    // it.
    const sum = isFirst ? size : frame.received + size;
    const total = isUnknown ? sum : frame.total;
    if (isFirst) {
      this.admit(isUnknown && mode === LEND ? 0 : total);
      this.#isLentInParts = mode === LEND;
    }
    if ((frame.flags & layout.FRAME_FLAG_CANCEL) !== 0) { // [pipe.cancelled]
      this.#refuse("message.cancelled", "its writer gave up");
    }
    if (this.#isLentInParts) {
      if (mode !== LEND) cannot("read: a message is lent in part");
      this.note(frame);
      return IN_RING;
    }
    // If a part of the message is collected already, by a call that timed out or by a write that
    // waited for room, the rest is collected too, and the whole is lent from there.
    if (isUnknown) this.#requireLimit(sum); // [pipe.limit_unknown]
    if (mode === INTO) requireFit(total, target!);
    if (isFirst) this.#parts = target ?? this.#allocate(total);
    else if (sum > this.#parts.length) { // its size is unknown, and more may follow
      const capacity = Math.min(Math.max(sum, 2 * this.#parts.length), this.#limitOf());
      this.#resizeParts(frame.received, capacity);
    }
    const from = (this.own & (this.capacity - 1)) + HEADER_SIZE + frame.lead;
    this.#parts.set(this.bytes.subarray(from, from + size), sum - size);
    if (isLast && this.#parts !== target) this.#resizeParts(sum, sum);
    this.release();
    if (!isLast) return NOTHING;
    this.note(frame);
    return IN_PARTS;
  }

  /** Moves the first `size` bytes of the parts into memory of `capacity` bytes. */
  #resizeParts(size: number, capacity: number): void {
    if (this.#parts.length === capacity) return;
    const parts = this.#allocate(capacity);
    parts.set(this.#parts.subarray(0, size));
    this.#parts = parts;
  }

  /** [pipe.total_trust] The size is within the limit, but there may be less memory than that. */
  #allocate(size: number): Uint8Array {
    try {
      return new Uint8Array(size);
    } catch {
      this.#refuse("message.size", `there is no memory for its ${size} bytes`);
    }
  }

  /**
   * Drops a message at its first frame, before anything is allocated for it, if this reader does
   * not accept its kind or its size. [pipe.unknown_kind] [pipe.limit]
   */
  admit(total: number): void {
    const { kind } = this.frame;
    if (kind !== FRAME_KIND_DATA && !this.#calls && this.taker === undefined) {
      this.#refuse("message.kind", `its kind is ${kind}`);
    }
    if (total > this.#jsonLimit) this.#requireLimit(total); // the lower limit of the two
  }

  /** Drops a message that is larger than this reader accepts. */
  #requireLimit(size: number): void {
    const limit = this.#limitOf();
    if (size <= limit) return;
    const { total, isUnknown } = this.frame;
    const has = isUnknown ? `${size} bytes or more` : `${total} bytes`;
    this.#refuse("message.size", `it has ${has}, and maxMessageSize is ${limit}`);
  }

  #limitOf(): number {
    const { codec } = this.frame;
    const isJson = codec === CODEC_JSON || codec === CODEC_JSON_BATCH;
    return isJson ? this.#jsonLimit : this.#limit;
  }

  /** Drops the frame, and what was collected of its message, and reports the message as lost. */
  #refuse(code: MessageError["code"], why: string): never {
    this.release();
    // Later frames of the message are skipped without another report.
    this.frame.dropped = this.frame.unsummed = true;
    this.drop();
    throw lost(code, why);
  }

  /**
   * Releases the frame. Stores `head` when a quarter of the capacity is released, or nothing is
   * left to read, or the writer waits. [ring.release_early] [ring.release_asked]
   */
  release(): void {
    const { frame } = this;
    if (frame.flags !== WHOLE) frame.accept();
    const own = this.own = (this.own + frame.extent) | 0;
    const isDue = own === this.other || ((own - this.stored) | 0) >= this.capacity >> 2;
    if (isDue || Atomics.load(this.control, WRITER_WANTS) !== 0) this.store();
    else this.hold();
  }

  /** Remembers kind, codec and tag of the message that was read last. */
  note({ kind, codec, tag }: Pick<Message, "kind" | "codec" | "tag">): void {
    this.kind = kind;
    this.codec = codec;
    this.tag = tag >>> 0;
  }

  /** Stops using the caller's array, which is the caller's again when the call returns. */
  leave(target: Uint8Array): void {
    if (this.#parts !== target) return;
    const { total, received, isUnknown } = this.frame;
    this.#parts = copyOut(target, 0, isUnknown ? received : total);
  }

  /**
   * Called after a look that found nothing. Throws if this end was closed by its own `close`, and
   * returns undefined while more can come. If the peer is gone, or somebody else has closed or
   * failed this end, loads `tail` once more and returns the error of that state. The caller then
   * looks without a load, and hands the error to `giveUp` if that finds no message. A hub, for one,
   * publishes and then closes its client. [pipe.look_again]
   */
  lookAgain(): MillraceError | undefined {
    // Mostly both ends are attached, and there is no error to look for.
    if ((this.bits & (STOPPED | GONE)) === 0 && this.endpoint.isLinked(this.peer)) return undefined;
    const closed = this.link.closedError("read");
    if (closed !== undefined) throw this.giveUp(closed);
    const gone = this.link.stateError("read");
    if (gone !== undefined) this.load();
    return gone;
  }

  /**
   * Drops the parts of the message in progress, as the report of a state does. [pipe.keep_parts]
   */
  giveUp(error: MillraceError): MillraceError {
    this.drop();
    this.taker?.finish(error);
    // What the peer still publishes of that message is skipped, because this report covers it.
    if (this.frame.inProgress) this.frame.dropped = true;
    return error;
  }

  /**
   * Loads the tail up to `looks` times in a row. Returns whether there is more, which a `take`
   * without a load then finds. For calls that may block: where the peer is awake, this spares the
   * looks at the states and the deadline, and a second load.
   */
  glance(looks: number): boolean {
    const { control, other } = this;
    for (let count = 0; count < looks; count++) {
      if (Atomics.load(control, TAIL) === other) continue;
      if (count > 0) this.endpoint.spinner.hit();
      return this.load();
    }
    return false;
  }

  /** Drops what was collected of the message in progress. */
  drop(): void {
    this.#parts = NO_BYTES;
    this.#isLentInParts = false;
  }

  protected override fail(reason: number, what: string): CorruptError {
    this.drop();
    const fault = super.fail(reason, what);
    this.taker?.finish(fault);
    return fault;
  }

  // A function of its own, so that the one that throws this stays short, for speed.
  #frameFault(reason: number): CorruptError {
    const { kind, flags, size } = this.frame;
    return this.fail(reason, `kind ${kind}, flags ${flags}, size ${size}`);
  }
}

/** The same memory as doubles, by which texts are copied. */
export function doublesOf({ buffer, byteOffset, length }: Int32Array): Float64Array {
  return new Float64Array(buffer, byteOffset, length >> 1);
}

/** Throws unless the message fits the caller's memory. */
export function requireFit(size: number, target: Uint8Array): void {
  if (size <= target.length) return;
  outOfRange(`Cannot read message of ${size} bytes into ${target.length}`);
}
