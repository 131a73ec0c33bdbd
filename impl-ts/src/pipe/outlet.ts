/**
 * The outgoing direction of a pipe, for a writer, the posts of a port and the drop-in layer. It
 * places messages in the ring one after the other, whole or in chunks, and never waits. See
 * `spec/pipe.md`.
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
} from "../codec/codec.ts";
import { cannot, ClosedError, type CorruptError, outOfRange, raise } from "../error.ts";
import { extentOf, packKind, WHOLE, writeHeader } from "../ring/frame.ts";
import { ASIDE, ENCODING, ENDED, LENT, OWED, RENEWED, STOPPED, TAKEN } from "../memory/gate.ts";
import * as layout from "../memory/layout.ts";
import { CODEC_BYTES, CODEC_JSON } from "../memory/layout.ts";
import type { Link, WriterOptions } from "./pipe.ts";
import { isBytes } from "../memory/realm.ts";
import { Lane } from "../ring/ring.ts";
import type { Channel } from "../memory/segment_geometry.ts";
import { Turns, type Waitable } from "../wait/wait.ts";

// V8 builds constants of this module into the machine code, but looks imported ones up each time.
const HEADER_SIZE = layout.FRAME_HEADER_SIZE;
const PREAMBLE_SIZE = layout.MESSAGE_PREAMBLE_SIZE;
const ALIGN = layout.FRAME_ALIGN;
const RESERVE = layout.RING_RESERVE;
const FLAGS_OF_WHOLE = /* @__PURE__ */ packKind(0, WHOLE, 0);
/** [frame.pad] [frame.end] All fields of both are 0 except the kind, and the size of a pad. */
const PAD = /* @__PURE__ */ packKind(layout.FRAME_KIND_PAD, 0, 0);
const END = /* @__PURE__ */ packKind(layout.FRAME_KIND_END, 0, 0);
/** The second header word of a call's cancel or credit. [call.message] */
const WHOLE_CALL = /* @__PURE__ */ packKind(layout.FRAME_KIND_CALL, WHOLE, layout.CODEC_VALUES);
/** The smallest extent of a chunk: a header and one byte, or a header and the preamble. */
const LEAST_CHUNK = 2 * ALIGN;

/**
 * Bytes of a cache line, and the most bytes of the next frame whose lines `prepareForAnswer`
 * fetches.
 */
const LINE_SIZE = 64;
const WARM_SIZE = 256;

/** What a port does while it waits for room: it takes what arrives into its inbox. */
export interface Idle {
  /**
   * Takes in what has arrived. Returns what else to wait for, or undefined when the inbox is full.
   */
  fill(): Waitable | undefined;
}

/**
 * The messages posted on a port that are not in the ring yet. They have the turn, or wait for it.
 */
export interface Posts {
  /**
   * Writes the posts that have the turn, and then gives the turn back. Without `wait` it stops
   * where there is no room. If `wait` throws, the rest stays posted.
   */
  flush(wait?: () => void): void;
}

/**
 * The writer's end of one ring. It holds one message at a time, the message under way, and places
 * nothing between the frames of that message. [pipe.order] [frame.contiguous]
 */
export class Outlet extends Lane implements Payload {
  readonly link: Link;
  readonly codec: CodecName | AnyCodec;
  /** Whether several JSON values may go out as one array. */
  readonly mayBatch: boolean;
  /** Checks each JSON value before it is encoded, if the codec has such a check. */
  readonly vet: ((value: never) => void) | undefined;
  /** Largest payload of one frame. */
  readonly largest: number;
  /** Whether a `Uint8Array` is written as it is, with codec `bytes`. */
  readonly #isRaw: boolean;
  /** The payload of the message under way. */
  source: Uint8Array = NO_BYTES;
  size = 0;
  code = 0;
  isKept = true;
  /** Set by a port: what it does while it waits for room, and its posts. */
  idle: Idle | undefined;
  posts: Posts | undefined;
  /**
   * How many turns were asked for so far. Posts that follow the request of another write need a new
   * turn.
   */
  asked = 0;
  /** How many times the reader's endpoint was vacated, and the outlet began anew. */
  round = 0;
  /**
   * How many times posts that were accepted could not be written, those of one turn counted once.
   */
  lostCount = 0;
  /** Tags of the cancels and of the credit that calls owe, in their order. */
  readonly asides: number[] = [];
  /** Is told each of these tags when its message is placed. */
  asidePlaced: ((tag: number) => void) | undefined;
  /** Payload bytes of the claimed place. The pad before it is placed only with the frame. */
  claimed = 0;
  #pad = 0;
  /** Bytes of the message under way that are placed; -1 before its first frame. */
  sent = -1;
  /** Why the message under way cannot go on: its reader's endpoint was vacated. [pipe.vacated] */
  cutError: Error | undefined;
  /** Kind and codec, packed, and the tag of the message under way. */
  #kind = 0;
  #tag = 0;
  /**
   * Kind and codec, and the tag, of a message whose first frame is placed and whose last frame is
   * not. If that message does not go on, for whatever reason, its cancel comes before any other
   * frame. [frame.cancel]
   */
  #owedKind = 0;
  #owedTag = 0;
  /** The `head` at which there is room for the frame that found none. */
  #need = 0;
  #mayLoad = true;
  #turns: Turns | undefined;
  /** The value of `stored` at the last `prepareForAnswer`; the extent of the last whole frame. */
  #asking: number;
  #extent = 0;

  /** Makes the outlet of an attached endpoint for one of its rings. */
  constructor(link: Link, channel: Channel, options: WriterOptions<never> = {}) {
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

  /** Gives the turn to write to one asynchronous write, or to the posts, at a time. */
  get turns(): Turns {
    return this.#turns ??= new Turns(this);
  }

  /** Whether an asynchronous write has the turn, or the posts have it. */
  get isTaken(): boolean {
    return (this.bits & TAKEN) !== 0;
  }

  /** Whether a claim is open. */
  get isLent(): boolean {
    return (this.bits & LENT) !== 0;
  }

  /** [wait.writer_asks] The `head` at which the frame that found no room fits. */
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

  /** Encodes one value into `payload`, which is this outlet or a separate one. */
  encode(value: unknown, payload: Payload): void {
    const { codec } = this;
    if (this.#isRaw && isBytes(value)) return takeBytes(value, CODEC_BYTES, payload);
    this.bits |= ENCODING; // the application's own code may run, and must not write meanwhile
    try {
      this.vet?.(value as never);
      encode(value, codec, payload);
    } finally {
      this.bits &= ~ENCODING;
    }
  }

  /** Takes over a payload that was encoded before. */
  restore({ source, size, code, isKept }: Payload): void {
    this.source = source;
    this.size = size;
    this.code = code;
    this.isKept = isKept;
  }

  /** Begins a message with the payload that this outlet holds. A message under way is given up. */
  start(kind: number, tag: number): void {
    this.#kind = packKind(kind, 0, this.code);
    this.#tag = tag;
    this.sent = -1;
    this.cutError = undefined;
  }

  /**
   * Throws the first answer that needs no look at the ring, if there is one. [pipe.first_answer]
   * Allows the claims that follow one load of `head`, until this is called again. [ring.one_load]
   * `accepted` says that the message was written before the stream was to end, so that `pipe.ended`
   * does not apply.
   */
  check(accepted = false): void {
    this.bits &= ~RENEWED;
    this.#mayLoad = true;
    // It makes no difference here whether somebody has the turn.
    if ((this.bits & ~TAKEN) === 0 && this.endpoint.isLinked(this.peer)) return;
    raise(this.link.closedError("write") ?? this.fault);
    if (!accepted && (this.bits & ENDED) !== 0) {
      throw new ClosedError("pipe.ended", "Cannot write: this end has ended");
    }
    raise(this.link.stateError("write")); // [pipe.peer_gone]
    this.requireFree();
  }

  /** Throws while a claim is open or a value is being encoded: nothing else can be placed then. */
  requireFree(): void {
    if ((this.bits & LENT) !== 0) cannot("write: a claim is open");
    if ((this.bits & ENCODING) !== 0) {
      cannot("write: a value is being encoded");
    }
  }

  /**
   * Writes and publishes the message under way if nothing stands in the way. Returns false
   * otherwise, and leaves the message to `advance`. For speed it makes no error and checks nothing
   * twice: what is done between the arrival of a message and the store of its answer is half of an
   * echo.
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
   * Places as much of the message under way as there is room for. Returns true when all of it is
   * placed.
   *
   * @throws {TypeError} if the caller has detached its bytes, or made them fewer.
   */
  advance(): boolean {
    // The application's own code may have closed this end while the value was encoded.
    if ((this.bits & STOPPED) !== 0) raise(this.link.closedError("write") ?? this.fault);
    raise(this.cutError);
    if (this.sent < 0 && !this.placeCancel()) return false;
    if (this.source.length < this.size) {
      // These are the caller's own bytes, since a write that waits does not copy them. Without this
      // check, old bytes of the ring would be sent in place of the missing ones.
      cannot("write message: its bytes were detached, or are fewer now");
    }
    this.hold(); // the caller may place more before it publishes, and run the application's code
    if (this.size > this.largest) return this.#putChunks();
    return this.#put() || (this.#makeRoom(extentOf(this.size)) && this.#put());
  }

  /**
   * Places the message under way as one frame, if it fits one and the known `head` leaves room for
   * that without a pad. Otherwise returns false. Does not publish.
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

  /** Copies `size` bytes of the payload, beginning at `from`, to `at` in the byte area. */
  #copy(from: number, size: number, at: number): void {
    if (size === 0) return; // for detached memory, `set` throws even if there is nothing to copy
    const { source } = this;
    const isWhole = size === source.length;
    this.bytes.set(isWhole ? source : source.subarray(from, from + size), at);
  }

  /**
   * Returns the extent of the pad that a frame of this extent needs before it, mostly 0; or -1 if
   * there is no room for both, even after the load of `head` that is allowed. Changes nothing in
   * the ring.
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

  /**
   * Makes room for a frame at the own cursor: places a pad if one is needed. False: no room.
   * [ring.pad]
   */
  #makeRoom(extent: number): boolean {
    const pad = this.#padFor(extent);
    if (pad > 0) this.#frame(pad - HEADER_SIZE, PAD, 0);
    return pad >= 0;
  }

  /** Finishes a frame at the own cursor: writes its header. Its payload is in place already. */
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
      // [frame.part] Only a first chunk can be so small that its preamble fills it.
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

  /**
   * The extent of the next chunk: up to the end of the byte area, if that is near and spares a pad.
   */
  #chunkExtent(): number {
    const { capacity } = this;
    const toEnd = capacity - (this.own & (capacity - 1));
    // A quarter, so that writing the next chunk overlaps with reading the last one.
    return toEnd >= LEAST_CHUNK && toEnd < capacity >> 2 ? toEnd : capacity >> 2;
  }

  /**
   * The most bytes that a multipart message can take in the ring, at whatever position it begins.
   */
  #worstCost(size: number): number {
    const bytes = size + PREAMBLE_SIZE;
    // The number of full chunks, and one more: the end of the byte area may cut one chunk in two,
    // or cost a pad of 16 bytes.
    const chunks = Math.ceil(bytes / ((this.capacity >> 2) - HEADER_SIZE)) + 1;
    // The extent of the last chunk is rounded up; not by `extentOf`, as the sum may exceed 2^31
    // here.
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
   * Places and publishes what must come before the next message: the cancel of a message that was
   * given up, and the cancels and credit that calls owe. False: no room. [pipe.owed]
   * [call.cancel_owed]
   */
  placeCancel(): boolean {
    if ((this.bits & OWED) !== 0) {
      if (!this.#makeRoom(HEADER_SIZE)) return false;
      const flags = layout.FRAME_FLAG_LAST | layout.FRAME_FLAG_CANCEL;
      this.#frame(0, this.#owedKind | packKind(0, flags, 0), this.#owedTag);
      this.#owe(0);
      this.store(); // [pipe.owed] At once, whatever becomes of the next message.
    }
    return (this.bits & ASIDE) === 0 || this.#placeAsides();
  }

  /**
   * Notes a cancel or credit of a call, to be placed before the next message. [call.cancel_owed]
   */
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
      this.asidePlaced?.(asides[0]!);
    }
    this.bits &= ~ASIDE;
    return true;
  }

  /**
   * Claims the place of a message that the caller fills. Returns the offset of its payload, or -1.
   */
  claim(size: number): number {
    if (!this.placeCancel()) return -1;
    const pad = this.#padFor(extentOf(size));
    if (pad < 0) return -1;
    this.#pad = pad; // placed with the frame, as the claim may still be abandoned
    this.claimed = size;
    this.bits |= LENT;
    return ((this.own + pad) & (this.capacity - 1)) + HEADER_SIZE;
  }

  /** Finishes the claimed message with `size` bytes of payload. Does not publish. */
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

  /** Places and publishes the `end` frame, for which there is always room. [pipe.end_now] */
  placeEnd(): void {
    this.placeCancel(); // [pipe.owed_end] If there is no room for both, the cancel is left out.
    this.bits |= ENDED; // [pipe.end]
    this.#frame(0, END, 0);
    this.store();
    this.link.incoming?.taker?.mute();
  }

  /**
   * Whether anything was published since the last `prepareForAnswer`, so that what comes may answer
   * it.
   */
  get isAnswerDue(): boolean {
    return this.stored !== this.#asking;
  }

  /**
   * Called before the thread waits for the answer to what it wrote. Stores zeros where the next
   * frame will stand, if it is like the last whole one, and so takes those cache lines from the
   * reader, which read what stood there a lap ago. While the thread waits this costs nothing. Later
   * the store of `tail` would wait for the lines, which took a twentieth of an echo of 64 bytes.
   * Bytes beyond the tail have no meaning.
   */
  prepareForAnswer(): void {
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
