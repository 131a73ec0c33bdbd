/**
 * Puts messages together from the frames of a ring, and says what became of those that cannot be.
 * The reader's lower half. See `spec/pipe.md`.
 *
 * @module
 */

import { copyOut } from "./codec.ts";
import { MessageError, type MillraceError } from "./error.ts";
import { FrameReader, TOTAL_UNKNOWN, WHOLE } from "./frame.ts";
import type { Channel } from "./segment_geometry.ts";
import * as layout from "./layout.ts";
import { type Link, MAX_JSON_SIZE, MAX_MESSAGE_SIZE, type Message } from "./pipe.ts";
import { type ReaderOptions, requireReaderOptions } from "./pipe.ts";
import { OTHER, RingReader, SHORT_SIZE } from "./ring.ts";

/** What `pull` found: nothing, a frame still in the ring, a message in `parts`, the end. */
export const NOTHING = 0;
export const IN_RING = 1;
export const IN_PARTS = 2;
export const ENDED = 3;

/** What happens to the multipart message in progress. */
const IDLE = 0;
const COLLECTING = 1;
const LENDING = 2;

/** Instead of a target: frames are lent where they lie. */
export const LEND: unique symbol = Symbol("lend");
/** The same: what has to be read stays where it is, and only an `end` is taken. */
export const LOOK: unique symbol = Symbol("look");

/** No parts. */
const EMPTY: Uint8Array = new Uint8Array(0);

/** What `pull` does with messages: collects them in fresh memory, in the caller's, or lends. */
export type Target = Uint8Array | typeof LEND | typeof LOOK | undefined;

/** Receives messages; one for each reader. */
export class Receiver {
  readonly ring: RingReader;
  /** The frame that the ring stands before. */
  readonly frame: FrameReader;
  /** Kind, codec and tag of the message that `pull` found last. */
  kind = 0;
  codec = 0;
  tag = 0;
  /** Whether `end` was read. */
  ended = false;
  /** Whether a frame is lent; nothing can be received meanwhile. */
  lent = false;
  /** Whether it is in the ring, and has to be given back there. */
  isLentInRing = false;
  /** The message in progress, or the one that is complete. */
  parts: Uint8Array = EMPTY;
  readonly #link: Link;
  readonly #calls: boolean;
  /** Largest message that it takes, in bytes, and the largest of JSON, which is no larger. */
  readonly #limit: number;
  readonly #jsonLimit: number;
  /** Most bytes of a message that `takeShort` takes: within the limit, and half the capacity. */
  readonly #short: number;
  #progress = IDLE;
  #fault: unknown = undefined;
  /** Whether `glance` or `lookAgain` has loaded a tail that `pull` has not made use of yet. */
  #shown = false;

  constructor(link: Link, channel: Channel, options: ReaderOptions) {
    requireReaderOptions(options);
    const { maxMessageSize, calls = false } = options;
    this.#link = link;
    this.#calls = calls;
    this.frame = new FrameReader();
    this.#limit = maxMessageSize ?? MAX_MESSAGE_SIZE;
    this.#jsonLimit = maxMessageSize ?? MAX_JSON_SIZE;
    const half = (channel.dataSize >> 1) - layout.FRAME_HEADER_SIZE;
    // Of `min`, V8 makes a number with a point.
    this.#short = Math.min(SHORT_SIZE, this.#jsonLimit, half) | 0;
    this.ring = link.incoming = new RingReader(link.endpoint, channel, this.frame);
  }

  /** Whether a frame is lent, or the rest of its message still has to be. */
  get lending(): boolean {
    return this.lent || this.#progress === LENDING;
  }

  /** Whether messages can still be received, and collected, in this state. */
  get open(): boolean {
    return !this.lent && !this.ended && this.#fault === undefined && this.#progress !== LENDING;
  }

  /**
   * Takes what earlier loads showed, up to the first whole message; with `mayLoad`, loads once and
   * takes what that shows. [ring.one_load]
   */
  pull(target: Target, mayLoad = true): number {
    // [pipe.first_answer]
    if (this.#link.closed) throw this.#link.closedError("read");
    if (this.#fault !== undefined) throw this.#fault;
    if (this.ended) return ENDED;
    if (this.lent) throw new TypeError("Cannot read: a frame is lent");
    const ring = this.ring;
    let load = mayLoad && !this.#shown;
    this.#shown = false;
    try {
      for (;; load = false) {
        while (ring.next()) {
          const found = this.#arrive(target);
          if (found !== NOTHING) return found;
        }
        if (!load || !ring.load()) return NOTHING;
      }
    } catch (thrown) {
      throw this.#keepFault(thrown);
    }
  }

  /**
   * Copies a short whole message out and returns its size, if nothing stands before it: most
   * messages are such, and take half the time of the long way. `NONE_YET` if nothing is there,
   * behind so many looks, and `OTHER` for what `pull` has to judge, and where there is no view of
   * the target's words.
   */
  takeShort(target: Uint8Array, targetWords: Int32Array | undefined, looks: number): number {
    if (this.lent || this.ended || this.#fault !== undefined || this.#link.closed) return OTHER;
    const { ring, frame } = this;
    const wasRead = ring.isRead;
    if (targetWords === undefined || (this.#shown && wasRead)) return OTHER;
    const { length } = target;
    const most = length < this.#short ? length : this.#short;
    const size = ring.take(target, targetWords, most, looks);
    if (size < 0) {
      // [ring.one_load] Where a load has shown something, `pull` does without one.
      this.#shown = !ring.isRead && (wasRead || this.#shown);
      return size;
    }
    this.#shown = false;
    if (looks > 1) this.#link.endpoint.spinner.hit();
    this.note(layout.FRAME_KIND_DATA, frame.codec, frame.tag);
    return size;
  }

  /**
   * Behind a look that found nothing: loads the tail so many times in a row, and returns whether
   * that shows more, which the next look takes. For calls that may block: where the peer is
   * awake, it spares the looks at the states, the deadline and a second load.
   */
  glance(looks: number): boolean {
    if (!this.ring.tryLoad(looks)) return false;
    this.#link.endpoint.spinner.hit();
    return this.#shown = true;
  }

  /** [pipe.fault] The first fault is kept and reported by every later call. */
  #keepFault(thrown: unknown): unknown {
    const error = this.#link.fault("read", thrown);
    if (error !== thrown) {
      this.#fault = error;
      this.drop();
      this.ring.stop();
    }
    return error;
  }

  /** Handles one frame of a message, or the end. */
  #arrive(target: Target): number {
    const frame = this.frame;
    if (frame.flags !== WHOLE || target === LOOK) return this.#arriveOther(target);
    this.#admit(frame.size);
    if (typeof target === "object") requireFit(frame.size, target);
    this.note(frame.kind, frame.codec, frame.tag);
    return IN_RING;
  }

  /** The same for what is no whole message, or is only looked at. */
  #arriveOther(target: Target): number {
    const frame = this.frame;
    const isEnd = frame.kind === layout.FRAME_KIND_END;
    if (target === LOOK && !(frame.inProgress ? frame.dropped : isEnd)) return IN_RING;
    if (isEnd) return this.#arriveEnd();
    return target === LOOK ? this.#skip() : this.#arriveChunk(target);
  }

  #arriveEnd(): number {
    const frame = this.frame;
    const cut = frame.inProgress && !frame.dropped;
    this.ended = true;
    this.parts = EMPTY;
    this.ring.release();
    this.#link.endpoint.watch.look(); // whoever waits for the end of the port
    if (!cut) return ENDED;
    // [pipe.truncated]
    throw new MessageError("message.truncated", "Cannot read message: the stream ended inside it");
  }

  #arriveChunk(target: Exclude<Target, typeof LOOK>): number {
    const frame = this.frame;
    const first = frame.flags === layout.FRAME_FLAG_FIRST;
    // What there must be room for: a message of unknown size as far as it has come.
    const sum = first ? frame.size : frame.received + frame.size;
    const isUnknown = frame.total === TOTAL_UNKNOWN;
    const total = isUnknown ? sum : frame.total;
    if (first) this.#admit(isUnknown && target === LEND ? 0 : total);
    else if (frame.dropped) return this.#skip(); // [pipe.report_once]
    if ((frame.flags & layout.FRAME_FLAG_CANCEL) !== 0) { // [pipe.cancelled]
      this.#refuse("message.cancelled", "its writer gave up");
    }
    if (first) this.#beginParts(target, total);
    const last = (frame.flags & layout.FRAME_FLAG_LAST) !== 0;
    if (this.#progress === LENDING) {
      if (target !== LEND) throw new TypeError("Cannot read: a message is lent in part");
      this.note(frame.kind, frame.codec, frame.tag);
      return IN_RING;
    }
    // A message of which a part is collected already, by a call whose time was up or by a write
    // that waited, is collected to its end, and lent from there.
    if (isUnknown) this.#requireLimit(sum); // [pipe.limit_unknown]
    if (target instanceof Uint8Array) requireFit(total, target);
    if (sum > this.parts.length) this.#growParts(sum);
    const { bytes, payload } = this.ring;
    this.parts.set(bytes.subarray(payload, payload + frame.size), sum - frame.size);
    if (last && this.parts !== target) this.#resizeParts(sum, sum);
    this.ring.release();
    if (!last) return NOTHING;
    this.#progress = IDLE;
    this.note(frame.kind, frame.codec, frame.tag);
    return IN_PARTS;
  }

  #beginParts(target: Exclude<Target, typeof LOOK>, total: number): void {
    if (target === LEND) this.#progress = LENDING;
    else {
      if (target !== undefined) requireFit(total, target);
      this.parts = target ?? this.#allocate(total);
      this.#progress = COLLECTING;
    }
  }

  /** Makes room for `size` bytes of a message of unknown size, and for some that may follow. */
  #growParts(size: number): void {
    const capacity = Math.min(Math.max(size, 2 * this.parts.length), this.#limitOf());
    this.#resizeParts(this.frame.received, capacity);
  }

  /** Takes the first bytes of the parts, so many, into memory of that capacity. */
  #resizeParts(size: number, capacity: number): void {
    if (this.parts.length === capacity) return;
    const parts = this.#allocate(capacity);
    parts.set(this.parts.subarray(0, size));
    this.parts = parts;
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
  #admit(total: number): void {
    const { kind } = this.frame;
    if (kind !== layout.FRAME_KIND_DATA && !this.#calls) {
      this.#refuse("message.kind", `its kind is ${kind}`);
    }
    this.#requireLimit(total);
  }

  /** Drops a message that has more bytes than this reader takes. */
  #requireLimit(size: number): void {
    const limit = this.#limitOf();
    if (size <= limit) return;
    const { total } = this.frame;
    const has = total === TOTAL_UNKNOWN ? `${size} bytes or more` : `${total} bytes`;
    this.#refuse("message.size", `it has ${has}, and maxMessageSize is ${limit}`);
  }

  #limitOf(): number {
    const { codec } = this.frame;
    const isJson = codec === layout.CODEC_JSON || codec === layout.CODEC_JSON_BATCH;
    return isJson ? this.#jsonLimit : this.#limit;
  }

  #skip(): number {
    this.ring.release();
    return NOTHING;
  }

  /** Drops the frame and what was collected of its message, and reports it. */
  #refuse(code: MessageError["code"], why: string): never {
    this.ring.release();
    // What comes of it behind this frame is not reported again.
    this.frame.dropped = this.frame.unsummed = true;
    this.parts = EMPTY;
    this.#progress = IDLE;
    throw new MessageError(code, `Cannot read message: ${why}`);
  }

  /** Takes the caller's storage out of use: when the call returns, it is the caller's again. */
  leave(target: Uint8Array): void {
    if (this.parts !== target) return;
    const { total, received } = this.frame;
    this.parts = copyOut(target, 0, total === TOTAL_UNKNOWN ? received : total);
  }

  /**
   * Nothing was found: throws if this end was closed here, and returns undefined while more can
   * come. If the peer is gone, or somebody else has closed or failed this end, it loads `tail` once
   * more, for the next `pull`, and returns the error for `giveUp` when no message comes of that: a
   * hub publishes, and then closes its client. [pipe.look_again]
   */
  lookAgain(): MillraceError | undefined {
    const closed = this.#link.closedError("read");
    if (closed !== undefined) throw this.giveUp(closed);
    const gone = this.#link.ownError("read") ?? this.#link.peerError("read");
    if (gone === undefined) return undefined;
    this.#load();
    this.#shown = true;
    return gone;
  }

  /** Whether one load of `tail` shows more. */
  #load(): boolean {
    try {
      return this.ring.load();
    } catch (thrown) {
      throw this.#keepFault(thrown);
    }
  }

  /** Drops the parts of the message in progress, for the report of a state. [pipe.keep_parts] */
  giveUp(error: MillraceError): MillraceError {
    this.drop();
    this.#progress = IDLE;
    // What a peer still publishes of that message is skipped: the report has covered it.
    if (this.frame.inProgress) this.frame.dropped = true;
    return error;
  }

  /**
   * Behind a look at the peer's final state: whether nothing of what it published is left in the
   * ring but what nobody reads. [segment.vacate_read]
   */
  isTaken(): boolean {
    if (this.ended || this.#fault !== undefined) return true;
    if (this.lent && this.isLentInRing) return false;
    this.#shown = false;
    try {
      this.ring.load();
      while (this.ring.next()) if (this.#arrive(LOOK) === IN_RING) return false;
      return true;
    } catch (thrown) {
      if (this.#keepFault(thrown) === thrown) throw thrown;
      return true;
    }
  }

  /** Begins anew with the next writer. [pipe.vacated] */
  renew(): void {
    this.ended = this.#shown = false;
    this.#fault = undefined;
    this.#progress = IDLE;
    this.drop();
    this.ring.renew();
  }

  /** The message that `pull` found, in memory of its own. */
  makeMessage(found: number): Message {
    let payload = this.parts;
    if (found === IN_RING) {
      payload = copyOut(this.ring.bytes, this.ring.payload, this.frame.size);
      this.ring.release();
    }
    this.parts = EMPTY;
    return { kind: this.kind, codec: this.codec, tag: this.tag, payload };
  }

  /** Remembers what the message is. */
  note(kind: number, codec: number, tag: number): void {
    this.kind = kind;
    this.codec = codec;
    this.tag = tag >>> 0;
  }

  /** Gives back the frame that was lent. */
  releaseLent(): void {
    if ((this.frame.flags & layout.FRAME_FLAG_LAST) !== 0) this.#progress = IDLE;
    this.ring.release();
  }

  /** Lets go of the parts that were collected. */
  drop(): void {
    this.parts = EMPTY;
  }
}

/** Throws unless the message fits the memory that the caller gave. */
export function requireFit(size: number, target: Uint8Array): void {
  if (size > target.length) throw unfit(size, target);
}

function unfit(size: number, target: Uint8Array): RangeError {
  return new RangeError(`Cannot read message of ${size} bytes into ${target.length}`);
}
