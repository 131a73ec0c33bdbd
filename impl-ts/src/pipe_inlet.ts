/**
 * The direction in, for a reader: puts messages together from the frames of a ring, says what
 * became of those that cannot be, and keeps what was read and not handed out. See `spec/pipe.md`.
 *
 * @module
 */

import { type CodecTable, codecTable, copyInto, copyOut, decodeBatch } from "./codec.ts";
import { decodeForeign, decodeJson, decodeText, encodeJson, NO_BYTES, takeCopy } from "./codec.ts";
import {
  cannot,
  type CorruptError,
  lost,
  MessageError,
  type MillraceError,
  outOfRange,
  raise,
} from "./error.ts";
import { FrameReader, WHOLE } from "./frame.ts";
import { ENDED, GONE, LENT, STOPPED } from "./gate.ts";
import * as layout from "./layout.ts";
import {
  CODEC_BYTES,
  CODEC_JSON,
  CODEC_JSON_BATCH,
  CODEC_TEXT,
  FRAME_KIND_DATA,
} from "./layout.ts";
import { type Link, MAX_JSON_SIZE, MAX_MESSAGE_SIZE, type Message } from "./pipe.ts";
import type { ReaderOptions } from "./pipe.ts";
import { KeptTarget } from "./pipe_target.ts";
import type { CallTaker } from "./pipe_calls.ts";
import { Lane } from "./ring.ts";
import type { Channel } from "./segment_geometry.ts";

/** How a message is taken: as its value, as it is, into the caller's memory, where it lies. */
export const VALUE = 0;
export const MESSAGE = 1;
export const INTO = 2;
export const LEND = 3;
/** As it is, out of the ring, whatever is in the queue: for an inbox. */
export const KEEP = 4;
/** Not taken: what has to be read stays where it is, and only an `end` is taken. */
export const LOOK = 5;
export type Mode =
  | typeof VALUE
  | typeof MESSAGE
  | typeof INTO
  | typeof LEND
  | typeof KEEP
  | typeof LOOK;

/** What `pull` found: nothing, a frame still in the ring, a message in `parts`, the end. */
export const NOTHING = 0;
export const IN_RING = 1;
export const IN_PARTS = 2;
export const OVER = 3;

// Constants of this module are part of the machine code; V8 looks imported ones up each time.
const TAIL = layout.RING_TAIL_WORD;
const HEADER_SIZE = layout.FRAME_HEADER_SIZE;
/** First kind of a frame that is skipped. */
const KIND_PAD = layout.FRAME_KIND_PAD;
/** The elements of a batch that are not handed out: those from `next` on. */
interface Batch {
  readonly values: readonly unknown[];
  next: number;
  readonly kind: number;
  /** That of the elements: JSON. */
  readonly codec: number;
  readonly tag: number;
}

/** The way out of one ring, and what was taken out of it and not handed out. */
export class Inlet extends Lane {
  readonly link: Link;
  /** The frame that the own cursor stands before. */
  readonly frame: FrameReader = new FrameReader();
  /** Kind, codec and tag of the message that was taken last. */
  kind = 0;
  codec = 0;
  tag = 0;
  /** What was collected of the message in progress, or of the one that is complete. */
  #parts: Uint8Array = NO_BYTES;
  /** What comes before anything in the ring: of a batch, messages of an inbox, reports. */
  readonly queue: (Batch | Message | MessageError)[] = [];
  /** Bytes of the messages in it. */
  keptSize = 0;
  /** The codecs of an application that it knows. */
  readonly codecs: CodecTable;
  readonly #calls: boolean;
  /** Largest message that it takes, in bytes, and the largest of JSON, which is no larger. */
  readonly #limit: number;
  readonly #jsonLimit: number;
  /** Whether the message in progress is lent, frame by frame, and not collected. */
  #isLentInParts = false;
  /** Whether what is lent lies in the ring, and has to be given back there. */
  isLentInRing = false;
  /** The byte area once more, for texts. */
  #doubles: Float64Array | undefined;
  /** Made when a message is first read into memory of the caller's. */
  #target: KeptTarget | undefined;
  /** Set where calls are offered: takes all messages of their kinds. */
  taker: CallTaker | undefined;
  /** Why the message of those kinds that is in progress was dropped at its first frame. */
  refusal: MessageError | undefined;

  /** Joins a ring to an attached endpoint. */
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

  /** [wait.reader_asks] */
  get need(): number {
    return this.own + layout.FRAME_ALIGN;
  }

  /**
   * Whether something has come since a read has found nothing: into the ring, where another call
   * may have seen it and left it, or by another call. [port.inbox_wake]
   */
  look(): boolean {
    return this.hasMoved || this.own !== this.other || this.queue.length > 0 ||
      (this.bits & ENDED) !== 0 || (this.taker !== undefined && this.taker.isDue);
  }

  /** Whether something came behind the last message, without a look at the states. */
  get hasMore(): boolean {
    return this.own !== this.other || this.hasMoved || this.queue.length > 0;
  }

  /** Whether the end of the stream was read, and nothing is left. */
  get ended(): boolean {
    return (this.bits & ENDED) !== 0 && this.queue.length === 0;
  }

  /** Whether a frame is lent. */
  get isLent(): boolean {
    return (this.bits & LENT) !== 0;
  }

  /** Whether a frame is lent, or the rest of its message still has to be. */
  get isLending(): boolean {
    return this.isLent || this.#isLentInParts;
  }

  /** Whether messages can still be received, and collected, in this state. */
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
   * Takes the next message, in one of the four ways; `undefined` where there is none, or the stream
   * has ended. With `mayLoad` it loads the tail where what was known has no message.
   * [ring.one_load]
   *
   * @throws {MessageError} for one that was lost.
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
    // The copy is made and the room given back before anything is decoded.
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

  /** Takes the message whose parts `pull` has put together. */
  takeParts(mode: Mode, target: Uint8Array | undefined): unknown {
    const parts = this.#parts;
    this.drop();
    return parts === target ? this.frame.received : this.#handOut(parts, mode, target);
  }

  /** Hands out a message that is in private memory. */
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

  /** Lends the frame in the ring, or a copy of what was taken out before; returns what has it. */
  #lend(copy: Uint8Array | undefined): Uint8Array {
    this.isLentInRing = copy === undefined;
    this.bits |= LENT;
    return copy ?? this.bytes;
  }

  /** Gives back what was lent. */
  giveBack(): void {
    this.bits &= ~LENT;
    if (!this.isLentInRing) return;
    if (this.frame.isLast) this.#isLentInParts = false;
    this.release();
  }

  /** Puts a message, or a report, behind what was read before. */
  keep(arrival: Message | MessageError): void {
    if (!(arrival instanceof MessageError)) this.keptSize += arrival.payload.length;
    this.queue.push(arrival);
  }

  /** Takes what was read before and not handed out. [port.inbox_order] */
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

  /** [codec.batch_read] */
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
   * Takes what earlier loads showed, up to the first whole message; with `mayLoad`, loads once and
   * takes what that shows. [ring.one_load] The message stays where it is found.
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
        if (frame.flags === WHOLE && frame.kind < KIND_PAD && mode !== LOOK) {
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

  /** Handles one frame that is no whole message, or is only looked at. */
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
    this.endpoint.watch.look(); // whoever waits for the end of the port
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
    // What there must be room for: a message of unknown size as far as it has come.
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
    // A message of which a part is collected already, by a call whose time was up or by a write
    // that waited, is collected to its end, and lent from there.
    if (isUnknown) this.#requireLimit(sum); // [pipe.limit_unknown]
    if (mode === INTO) requireFit(total, target!);
    if (isFirst) this.#parts = target ?? this.#allocate(total);
    else if (sum > this.#parts.length) { // of unknown size: some more may follow
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

  /** Takes the first bytes of the parts, so many, into memory of that capacity. */
  #resizeParts(size: number, capacity: number): void {
    if (this.#parts.length === capacity) return;
    const parts = this.#allocate(capacity);
    parts.set(this.#parts.subarray(0, size));
    this.#parts = parts;
  }

  /** [pipe.total_trust] The size is within the limit, which may exceed the memory there is. */
  #allocate(size: number): Uint8Array {
    try {
      return new Uint8Array(size);
    } catch {
      this.#refuse("message.size", `there is no memory for its ${size} bytes`);
    }
  }

  /**
   * Drops a message at its first frame, before anything is allocated for it, when this reader does
   * not take it. [pipe.unknown_kind] [pipe.limit]
   */
  admit(total: number): void {
    const { kind } = this.frame;
    if (kind !== FRAME_KIND_DATA && !this.#calls && this.taker === undefined) {
      this.#refuse("message.kind", `its kind is ${kind}`);
    }
    this.#requireLimit(total);
  }

  /** Drops a message that has more bytes than this reader takes. */
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

  /** Drops the frame and what was collected of its message, and reports it. */
  #refuse(code: MessageError["code"], why: string): never {
    this.release();
    // What comes of it behind this frame is not reported again.
    this.frame.dropped = this.frame.unsummed = true;
    this.drop();
    throw lost(code, why);
  }

  /** Gives the frame back; stored when a quarter is, or nothing is left. [ring.release_early] */
  release(): void {
    const { frame } = this;
    if (frame.flags !== WHOLE) frame.accept();
    const own = this.own = (this.own + frame.extent) | 0;
    if (own === this.other || ((own - this.stored) | 0) >= this.capacity >> 2) this.store();
    else this.hold();
  }

  /** Remembers what the message is. */
  note({ kind, codec, tag }: Pick<Message, "kind" | "codec" | "tag">): void {
    this.kind = kind;
    this.codec = codec;
    this.tag = tag >>> 0;
  }

  /** Takes the caller's storage out of use: when the call returns, it is the caller's again. */
  leave(target: Uint8Array): void {
    if (this.#parts !== target) return;
    const { total, received, isUnknown } = this.frame;
    this.#parts = copyOut(target, 0, isUnknown ? received : total);
  }

  /**
   * Behind a look that found nothing: throws if this end was closed here, and returns undefined
   * while more can come. If the peer is gone, or somebody else has closed or failed this end, it
   * loads `tail` once more, for a look that does not, and returns the error for `giveUp` when no
   * message comes of that: a hub publishes, and then closes its client. [pipe.look_again]
   */
  lookAgain(): MillraceError | undefined {
    // Mostly both are attached, and neither error has to be looked for.
    if ((this.bits & (STOPPED | GONE)) === 0 && this.endpoint.isLinked(this.peer)) return undefined;
    const closed = this.link.closedError("read");
    if (closed !== undefined) throw this.giveUp(closed);
    const gone = this.link.stateError("read");
    if (gone !== undefined) this.load();
    return gone;
  }

  /** Drops the parts of the message in progress, for the report of a state. [pipe.keep_parts] */
  giveUp(error: MillraceError): MillraceError {
    this.drop();
    this.taker?.finish(error);
    // What a peer still publishes of that message is skipped: the report has covered it.
    if (this.frame.inProgress) this.frame.dropped = true;
    return error;
  }

  /**
   * Loads the tail so many times in a row, and returns whether that shows more, which a look takes
   * that does not load. For calls that may block: where the peer is awake, it spares the looks at
   * the states, the deadline and a second load.
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

  /** Lets go of the message in progress. */
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

  // Apart, for what throws it is short for the sake of speed.
  #frameFault(reason: number): CorruptError {
    const { kind, flags, size } = this.frame;
    return this.fail(reason, `kind ${kind}, flags ${flags}, size ${size}`);
  }
}

/** The same memory by doubles, for texts. */
export function doublesOf({ buffer, byteOffset, length }: Int32Array): Float64Array {
  return new Float64Array(buffer, byteOffset, length >> 1);
}

/** Throws unless the message fits the memory that the caller gave. */
export function requireFit(size: number, target: Uint8Array): void {
  if (size <= target.length) return;
  outOfRange(`Cannot read message of ${size} bytes into ${target.length}`);
}
