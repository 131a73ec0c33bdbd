/**
 * The direction out, for a writer, the posts of a port and the drop-in: places messages in the
 * ring, one after the other, whole or in chunks. It never waits. See `spec/pipe.md`.
 *
 * @module
 */

import {
  type AnyCodec,
  type CodecName,
  encode,
  NO_BYTES,
  type Payload,
  takeBytes,
} from "./codec.ts";
import { cannot, ClosedError, type CorruptError, outOfRange, raise } from "./error.ts";
import { extentOf, packKind, WHOLE, writeHeader } from "./frame.ts";
import { ASIDE, ENCODING, ENDED, LENT, OWED, RENEWED, STOPPED, TAKEN } from "./gate.ts";
import * as layout from "./layout.ts";
import { CODEC_BYTES, CODEC_JSON } from "./layout.ts";
import type { Link, WriterOptions } from "./pipe.ts";
import { Lane } from "./ring.ts";
import type { Channel } from "./segment_geometry.ts";
import { Turns, type Waitable } from "./wait.ts";

// Constants of this module are part of the machine code; V8 looks imported ones up each time.
const HEADER_SIZE = layout.FRAME_HEADER_SIZE;
const PREAMBLE_SIZE = layout.MESSAGE_PREAMBLE_SIZE;
const ALIGN = layout.FRAME_ALIGN;
const RESERVE = layout.RING_RESERVE;
const FLAGS_OF_WHOLE = /* @__PURE__ */ packKind(0, WHOLE, 0);
/** [frame.pad] [frame.end] All of their fields but the kind, and a pad's size, are 0. */
const PAD = /* @__PURE__ */ packKind(layout.FRAME_KIND_PAD, 0, 0);
const END = /* @__PURE__ */ packKind(layout.FRAME_KIND_END, 0, 0);
/** A cancel, or credit, of a call. [call.message] */
const WHOLE_CALL = /* @__PURE__ */ packKind(layout.FRAME_KIND_CALL, WHOLE, layout.CODEC_VALUES);
/** Smallest extent of a chunk: a header and one byte, or a header and the preamble. */
const LEAST_CHUNK = 2 * ALIGN;

/** Bytes of a cache line, and how many of a frame are taken before it is written. */
const LINE_SIZE = 64;
const WARM_SIZE = 256;

/** What a port does while it waits for room: it takes what arrives into its inbox. */
export interface Idle {
  /** Takes in what is there; returns what to wait for as well, undefined when the inbox is full. */
  fill(): Waitable | undefined;
}

/** What was posted on a port and is not in the ring yet. It has the turn, or waits for it. */
export interface Posts {
  /**
   * Writes what has the turn, and gives the turn back behind it. Without `wait` it stops where
   * there is no room; what `wait` throws leaves the rest posted.
   */
  flush(wait?: () => void): void;
}

/**
 * The way into one ring. It holds one message at a time, the one under way, and places nothing
 * between the frames of one. [pipe.order] [frame.contiguous]
 */
export class Outlet extends Lane implements Payload {
  readonly link: Link;
  readonly codec: CodecName | AnyCodec;
  /** Whether several values may go out as one array of JSON. */
  readonly mayBatch: boolean;
  /** Looks at each value of JSON first. */
  readonly vet: ((value: never) => void) | undefined;
  /** Largest payload of one frame. */
  readonly largest: number;
  /** Whether bytes are written as they are. */
  readonly #isRaw: boolean;
  /** The payload of the message under way. */
  source: Uint8Array = NO_BYTES;
  size = 0;
  code = 0;
  isKept = true;
  /** Set by a port: what it does while it waits for room, and what is posted on it. */
  idle: Idle | undefined;
  posts: Posts | undefined;
  /** Asynchronous calls so far: what is posted behind one has to wait for a turn of its own. */
  asked = 0;
  /** Readers so far: one more each time that their endpoint was given back. */
  round = 0;
  /** Groups of posts that were accepted, and could not be written, so far. */
  lostCount = 0;
  /** Tags of the cancels, and of the credit, that calls owe. */
  readonly asides: number[] = [];
  /** Bytes of the place that is claimed; the pad before it is not placed yet. */
  claimed = 0;
  #pad = 0;
  /** Bytes of the message under way that are placed, -1 before its first frame. */
  sent = -1;
  /** Why it cannot go on: it was begun for a reader that is gone. [pipe.vacated] */
  cut: Error | undefined;
  /** Its kind, with its codec, and its tag. */
  #kind = 0;
  #tag = 0;
  /**
   * The same of the message of which a first frame is placed, and the last one is not. Whatever
   * keeps it from going on, its cancel comes before any other frame. [frame.cancel]
   */
  #owedKind = 0;
  #owedTag = 0;
  /** The `head` at which there is room for what found none. */
  #need = 0;
  #mayLoad = true;
  #turns: Turns | undefined;
  /** What was stored at the last `expectAnswer`, and the extent of the last whole frame. */
  #asking: number;
  #extent = 0;

  /** Joins a ring to an attached endpoint. */
  constructor(link: Link, channel: Channel, options: WriterOptions = {}) {
    const codec: CodecName | AnyCodec = options.codec ?? "json";
    super(link.endpoint, channel, true);
    this.link = link;
    const { code, vet } = codec as Partial<AnyCodec>;
    this.codec = code === CODEC_JSON ? "json" : codec;
    this.vet = vet;
    this.mayBatch = options.batch !== false && this.codec === "json";
    this.#isRaw = this.codec === "json" || codec === "bytes";
    this.largest = (this.capacity >> 1) - HEADER_SIZE;
    this.#asking = this.stored;
    link.outgoing = this;
  }

  /** Who writes next. */
  get turns(): Turns {
    return this.#turns ??= new Turns(this);
  }

  /** Whether an asynchronous write, or what was posted, has the turn. */
  get isTaken(): boolean {
    return (this.bits & TAKEN) !== 0;
  }

  /** Whether a claim is open. */
  get isLent(): boolean {
    return (this.bits & LENT) !== 0;
  }

  /** [wait.writer_asks] The head at which what found no room fits. */
  get need(): number {
    return this.#need;
  }

  look(): boolean {
    return this.hasMoved || (this.bits & RENEWED) !== 0;
  }

  override close(): void {
    super.close();
    this.own = this.stored;
    this.bits &= ~LENT;
  }

  /** Encodes one value, as the payload of this outlet or apart from that. */
  encode(value: unknown, payload: Payload): void {
    const { codec } = this;
    if (value instanceof Uint8Array && this.#isRaw) return takeBytes(value, CODEC_BYTES, payload);
    this.bits |= ENCODING; // the application's own code may run, and must not write meanwhile
    try {
      this.vet?.(value as never);
      encode(value, codec, payload);
    } finally {
      this.bits &= ~ENCODING;
    }
  }

  /** Takes a payload that was encoded before. */
  restore({ source, size, code, isKept }: Payload): void {
    this.source = source;
    this.size = size;
    this.code = code;
    this.isKept = isKept;
  }

  /** Begins the message whose payload it has; one that is under way is given up. */
  start(kind: number, tag: number): void {
    this.#kind = packKind(kind, 0, this.code);
    this.#tag = tag;
    this.sent = -1;
    this.cut = undefined;
  }

  /**
   * Throws the first answer that needs no look at the ring [pipe.first_answer], and lets the next
   * claim that needs it load `head`, once until the next call of this [ring.one_load]. `accepted`
   * is for what was written before the stream was to end.
   */
  check(accepted = false): void {
    this.bits &= ~RENEWED;
    this.#mayLoad = true;
    // Who has the turn makes no difference.
    if ((this.bits & ~TAKEN) === 0 && this.endpoint.isLinked(this.peer)) return;
    raise(this.link.closedError("write") ?? this.fault);
    if (!accepted && (this.bits & ENDED) !== 0) {
      throw new ClosedError("pipe.ended", "Cannot write: this end has ended");
    }
    raise(this.link.stateError("write")); // [pipe.peer_gone]
    this.requireFree();
  }

  /** Throws while a claim is open, or a value is encoded: nothing can be placed before that. */
  requireFree(): void {
    if ((this.bits & LENT) !== 0) cannot("write: a claim is open");
    if ((this.bits & ENCODING) !== 0) {
      cannot("write: a value is being encoded");
    }
  }

  /**
   * Writes the message under way if nothing stands in its way: false leaves it to `advance`. No
   * error is made, and nothing is asked twice: what is done between the arrival of a message and
   * the store of its answer is half of an echo.
   */
  send(): boolean {
    if (this.bits !== 0 || !this.endpoint.isLinked(this.peer) || !this.#put()) return false;
    this.store();
    return true;
  }

  /** Places and publishes all of the message under way, or nothing of it. [pipe.try_write] */
  trySend(): boolean {
    this.check();
    const { size, largest, capacity } = this;
    // [pipe.try_never]
    if (size > largest && this.#worstCost(size) > capacity - RESERVE) {
      outOfRange(`Cannot write ${size} bytes at once: the ring is too small`);
    }
    if (!this.placeCancel()) return false;
    const before = this.own;
    const isPlaced = this.advance();
    if (!isPlaced) { // nothing of it is visible yet
      this.own = before;
      this.#owe(0);
    }
    this.store();
    return isPlaced;
  }

  /**
   * Places what there is room for of the message under way; true when all of it is placed.
   *
   * @throws {TypeError} if the caller has taken its bytes away.
   */
  advance(): boolean {
    // The application's own code may have closed this end, while the value was encoded.
    if ((this.bits & STOPPED) !== 0) raise(this.link.closedError("write") ?? this.fault);
    raise(this.cut);
    if (this.sent < 0 && !this.placeCancel()) return false;
    if (this.source.length < this.size) {
      // The caller's own bytes, which a write that waits does not copy. What would be sent in place
      // of them are old bytes of the ring.
      cannot("write message: its bytes were detached, or are fewer now");
    }
    this.hold(); // the caller may place more, and run code of the application's in between
    if (this.size > this.largest) return this.#putChunks();
    return this.#put() || (this.#makeRoom(extentOf(this.size)) && this.#put());
  }

  /**
   * Places the message under way as one frame, whatever its size, if there is room for it by what
   * is known of `head`, without a pad. Not visible yet.
   */
  #put(): boolean {
    const { capacity, size, own } = this;
    const at = own & (capacity - 1);
    const extent = extentOf(size);
    const room = capacity - ((own - this.other) | 0);
    if (size > this.largest || extent > capacity - at || extent + RESERVE > room) return false;
    writeHeader(this.words, at >> 2, size, this.#kind | FLAGS_OF_WHOLE, this.#tag);
    this.#copy(0, size, at + HEADER_SIZE);
    this.own = (own + extent) | 0;
    this.#extent = extent;
    return true;
  }

  /** Copies a part of the payload into the byte area. */
  #copy(from: number, size: number, at: number): void {
    if (size === 0) return; // of memory that was detached, nothing can be set
    const { source } = this;
    const isWhole = size === source.length;
    this.bytes.set(isWhole ? source : source.subarray(from, from + size), at);
  }

  /**
   * Extent of the pad that a frame needs before it, mostly 0; or -1 where there is no room for
   * both, also behind a load of `head`. Changes nothing in the ring.
   */
  #padFor(extent: number): number {
    const { capacity, own } = this;
    const toEnd = capacity - (own & (capacity - 1));
    const pad = extent > toEnd ? toEnd : 0;
    const need = (own + pad + extent + RESERVE - capacity) | 0;
    if (((need - this.other) | 0) > 0 && this.#mayLoad) {
      this.#mayLoad = false;
      this.load();
    }
    if (((need - this.other) | 0) <= 0) return pad;
    this.#need = need;
    return -1;
  }

  /** Makes room for a frame at the own cursor, with a pad before it if need be. [ring.pad] */
  #makeRoom(extent: number): boolean {
    const pad = this.#padFor(extent);
    if (pad > 0) this.#frame(pad - HEADER_SIZE, PAD, 0);
    return pad >= 0;
  }

  /** Finishes a frame at the own cursor, whose payload is there already. */
  #frame(size: number, kindWord: number, tag: number): void {
    writeHeader(this.words, (this.own & (this.capacity - 1)) >> 2, size, kindWord, tag);
    this.own = (this.own + extentOf(size)) | 0;
  }

  /** Cuts the message into chunks, and places those for which there is room. [frame.multipart] */
  #putChunks(): boolean {
    const { size, words, capacity } = this;
    for (;;) {
      const isFirst = this.sent < 0;
      const from = isFirst ? 0 : this.sent;
      const head = HEADER_SIZE + (isFirst ? PREAMBLE_SIZE : 0);
      // [frame.part] Only a first chunk can be left without room for more than its preamble.
      const part = Math.min(size - from, this.#chunkExtent() - head);
      const payload = part + head - HEADER_SIZE;
      if (!this.#makeRoom(extentOf(payload))) return false;
      const at = this.own & (capacity - 1);
      if (isFirst) {
        const word = (at + HEADER_SIZE) >> 2; // [frame.preamble]
        words[word] = size;
        words[word + 1] = size / 2 ** 32;
        words[word + 2] = 0;
        words[word + 3] = 0;
      }
      this.#copy(from, part, at + head);
      this.sent = from + part;
      const isLast = this.sent === size;
      const flags = isFirst ? layout.FRAME_FLAG_FIRST : isLast ? layout.FRAME_FLAG_LAST : 0;
      this.#frame(payload, this.#kind | packKind(0, flags, 0), this.#tag);
      if (isFirst) this.#owe(this.#kind);
      else if (isLast) this.#owe(0);
      if (isLast) return true;
    }
  }

  /** Extent of the next chunk: up to the end of the byte area where that spares a pad. */
  #chunkExtent(): number {
    const { capacity } = this;
    const toEnd = capacity - (this.own & (capacity - 1));
    // A quarter, so that writing the next chunk overlaps with reading the last.
    return toEnd >= LEAST_CHUNK && toEnd < capacity >> 2 ? toEnd : capacity >> 2;
  }

  /** Most bytes that a multipart message can take, whatever the position it begins at. */
  #worstCost(size: number): number {
    const bytes = size + PREAMBLE_SIZE;
    // Full chunks, and one more: where the end of the byte area cuts one in two, or a pad of 16.
    const chunks = Math.ceil(bytes / ((this.capacity >> 2) - HEADER_SIZE)) + 1;
    // The last chunk's extent is rounded up; not by `extentOf`, as bytes go beyond 2^31 here.
    return Math.ceil(bytes / ALIGN) * ALIGN + chunks * HEADER_SIZE;
  }

  #owe(kind: number): void {
    this.#owedKind = kind;
    this.#owedTag = this.#tag;
    if (kind === 0) {
      this.bits &= ~OWED;
      this.sent = -1;
    } else this.bits |= OWED;
  }

  /**
   * Places and publishes what comes before the next message: the cancel of one that was given up,
   * and what calls owe. False: no room. [pipe.owed] [call.cancel_owed]
   */
  placeCancel(): boolean {
    if ((this.bits & OWED) !== 0) {
      if (!this.#makeRoom(HEADER_SIZE)) return false;
      const flags = layout.FRAME_FLAG_LAST | layout.FRAME_FLAG_CANCEL;
      this.#frame(0, this.#owedKind | packKind(0, flags, 0), this.#owedTag);
      this.#owe(0);
      this.store(); // [pipe.owed] At once: whatever becomes of the message behind it.
    }
    return (this.bits & ASIDE) === 0 || this.#placeAsides();
  }

  /** Has a cancel or credit of a call placed before the next message. [call.cancel_owed] */
  setAside(tag: number): void {
    this.asides.push(tag);
    this.bits |= ASIDE;
  }

  #placeAsides(): boolean {
    const { asides } = this;
    for (; asides.length > 0; asides.shift()) {
      if (!this.#makeRoom(HEADER_SIZE)) return false;
      this.#frame(0, WHOLE_CALL, asides[0]!);
      this.store();
    }
    this.bits &= ~ASIDE;
    return true;
  }

  /** Claims the place of a message that the caller fills: where its payload begins, or -1. */
  claim(size: number): number {
    if (!this.placeCancel()) return -1;
    const pad = this.#padFor(extentOf(size));
    if (pad < 0) return -1;
    this.#pad = pad; // not placed before the frame is: the claim may be given up, or become smaller
    this.claimed = size;
    this.bits |= LENT;
    return ((this.own + pad) & (this.capacity - 1)) + HEADER_SIZE;
  }

  /** Completes the claimed message with so many bytes. Not visible yet. */
  finish(size: number): void {
    if (this.#pad > 0) this.#frame(this.#pad - HEADER_SIZE, PAD, 0);
    this.#frame(size, this.#kind | FLAGS_OF_WHOLE, this.#tag);
    this.#extent = extentOf(size);
    this.bits &= ~LENT;
    this.hold();
  }

  /** Gives the claimed place back unused. */
  abandon(): void {
    this.bits &= ~LENT;
  }

  /** Places and publishes the `end`, for which there is always room. [pipe.end_now] */
  placeEnd(): void {
    this.placeCancel(); // [pipe.owed_end] Without room for both it is left away.
    this.bits |= ENDED; // [pipe.end]
    this.#frame(0, END, 0);
    this.store();
    this.link.incoming?.taker?.mute();
  }

  /** Whether anything was written since the last `expectAnswer`: what comes may answer it. */
  get isAnswerDue(): boolean {
    return this.stored !== this.#asking;
  }

  /**
   * Notes that the answer to what was written is waited for. Takes the cache lines of the next
   * frame, if it is like the last one, away from the reader, who has read what stood there a lap
   * ago: while the thread waits, that costs nothing, but when it writes, the store of `tail` would
   * wait for it, a twentieth of an echo of 64 bytes. Behind the tail, bytes mean nothing.
   */
  expectAnswer(): void {
    this.#asking = this.stored;
    const size = Math.min(this.#extent, WARM_SIZE);
    const free = this.capacity - ((this.own - this.other) | 0);
    if ((this.bits & (LENT | STOPPED)) !== 0 || free < size + LINE_SIZE) return;
    const mask = (this.capacity - 1) >> 2;
    const end = (this.own + size) >> 2;
    for (let word = this.own >> 2; word < end; word += LINE_SIZE >> 2) this.words[word & mask] = 0;
  }

  protected override fail(reason: number, what: string): CorruptError {
    this.own = this.stored;
    return super.fail(reason, what);
  }
}
