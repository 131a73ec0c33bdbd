/**
 * The incoming direction of a stream: checks the bytes that arrive, and puts them as frames into
 * the private ring from which the port reads. See `spec/stream.md`.
 *
 * @module
 */

import { assert } from "../error.ts";
import { areMessageFlags, extentOf, packKind, writeHeader } from "../ring/frame.ts";
import { layout } from "../memory/layout.ts";
import type { Channel } from "../memory/plan.ts";
import { load, placeOf, Side, store } from "../ring/side.ts";
import type { Endpoint } from "../wait/endpoint.ts";
import type { Preface } from "./preface.ts";

const START = layout.STREAM_START | 0;
const HEADER_SIZE = layout.FRAME_HEADER_SIZE;
const KIND_SHIFT = 8 * (layout.FRAME_KIND_OFFSET - 4);
const FLAGS_SHIFT = 8 * (layout.FRAME_FLAGS_OFFSET - 4);
const CODEC_SHIFT = 8 * (layout.FRAME_CODEC_OFFSET - 4);
const RESERVED_SHIFT = 8 * (layout.FRAME_RESERVED_OFFSET - 4);
const PAD = /* @__PURE__ */ packKind(layout.FRAME_KIND_PAD, 0, 0);

/** Receives the frames that are not for the port, and the faults. */
export interface StreamControl {
  /** The peer has given back everything up to this position. Returns whether that is possible. */
  credit(position: number): boolean;
  /** The peer has closed. */
  close(): void;
  /** The peer has marked this side failed, with the reason of this number. */
  fail(reason: number): void;
  /** The inlet has found a fault in the bytes that arrived. */
  fault(reason: number): void;
}

/** The ring capacity for a window, with room for a pad before the longest frame, and for `end`. */
export function capacityOf({ largest, window }: Preface): number {
  const least = Math.max(2 * largest, window + largest + layout.RING_RESERVE);
  return Math.max(layout.RING_CAPACITY_MIN, 2 ** Math.ceil(Math.log2(least)));
}

/** Whether a frame of this kind takes up credit. */
export function usesCredit(kind: number): boolean {
  return kind !== layout.FRAME_KIND_END && !isControl(kind);
}

function isControl(kind: number): boolean {
  return kind >= layout.STREAM_KIND_CREDIT && kind <= layout.STREAM_KIND_FAIL;
}

/** The position after a frame: in the ring, and as the peer counts it. */
interface End {
  readonly ring: number;
  readonly position: number;
}

/** The most frames that stay in the list after the reader has given them back. */
const MOST_GIVEN = 1024;

/** Whether the reader has given back the frame that ends there. */
function isGivenBack(head: number, { ring }: End): boolean {
  return ((head - ring) | 0) >= 0;
}

/** Writes into the ring from which the port reads. */
export class StreamInlet extends Side {
  readonly #own: Preface;
  readonly #control: StreamControl;
  readonly #header: Int32Array = new Int32Array(HEADER_SIZE >> 2);
  readonly #headerBytes: Uint8Array = new Uint8Array(this.#header.buffer);
  /** How many bytes of a header have arrived, while it is incomplete. */
  #headerCount = 0;
  /** The arriving frame: its kind, its payload's size, its extent, and the bytes still missing. */
  #kind = 0;
  #size = 0;
  #extent = 0;
  #left = 0;
  /**
   * Positions as the peer counts: of what has arrived, was given back, and was told by a credit.
   */
  #position = START;
  #given = START;
  #told = START;
  /** The ends of frames in the ring, in order. The first `#givenCount` of them were given back. */
  readonly #ends: End[] = [];
  /** How many of them were given back. */
  #givenCount = 0;
  #hasEnded = false;
  #isOver = false;
  /** Whether all frames are dropped, because the port no longer reads. */
  #drops = false;
  /** Whether the frame that is arriving is dropped, because it comes after `end`. */
  #isAfterEnd = false;

  /** Makes the inlet of a side that has stated `own` in its preface. */
  constructor(endpoint: Endpoint, channel: Channel, own: Preface, control: StreamControl) {
    super(endpoint, channel, true);
    this.#own = own;
    this.#control = control;
  }

  /** The position that the reader must reach before a credit is due. [stream.credit_told] */
  get need(): number {
    const ends = this.#ends;
    // Binary search for the first end that makes a credit due: the ends are in order.
    let [from, to] = [this.#givenCount, ends.length];
    while (from < to) {
      const middle = (from + to) >> 1;
      if (this.#isDue(ends[middle]!.position)) to = middle;
      else from = middle + 1;
    }
    return (ends[from]?.ring ?? this.cursor + this.capacity) | 0;
  }

  /** Takes in bytes that have arrived, and puts whole frames into the ring. [stream.pieces] */
  receive(bytes: Uint8Array): void {
    for (let at = 0; at < bytes.length && !this.#isOver;) {
      const isHeader = this.#left === 0;
      const missing = isHeader ? HEADER_SIZE - this.#headerCount : this.#left;
      const piece = bytes.subarray(at, at + missing);
      at += piece.length;
      if (isHeader) this.#takeHeader(piece);
      else this.#takeRest(piece);
    }
  }

  /** Ignores all bytes from now on. */
  stop(): void {
    this.#isOver = true;
  }

  /** Goes on without a reader: checks the frames and drops them. [stream.linger] */
  drop(): void {
    this.#drops = true;
  }

  /**
   * Returns the position of the credit that is due, and notes it as told; undefined if none is.
   * [stream.credit_told]
   */
  takeCredit(): number | undefined {
    load(this);
    const ends = this.#ends;
    let end: End | undefined;
    while ((end = ends[this.#givenCount]) && isGivenBack(this.peerCursor, end)) {
      this.#given = end.position;
      this.#givenCount++;
    }
    if (this.#givenCount === ends.length) ends.length = this.#givenCount = 0;
    if (this.#givenCount > MOST_GIVEN) {
      ends.splice(0, this.#givenCount);
      this.#givenCount = 0;
    }
    return this.#isDue(this.#given) ? this.#told = this.#given : undefined;
  }

  #isDue(position: number): boolean {
    return ((position - this.#told) >>> 0) > this.#own.window - this.#own.largest;
  }

  #takeHeader(piece: Uint8Array): void {
    this.#headerBytes.set(piece, this.#headerCount);
    this.#headerCount += piece.length;
    if (this.#headerCount < HEADER_SIZE) return;
    this.#headerCount = 0;
    const reason = this.#check();
    if (reason !== 0) return this.#fault(reason);
    const kind = this.#kind;
    const tag = this.#header[layout.FRAME_TAG_OFFSET >> 2]!;
    if (!isControl(kind)) return this.#begin();
    if (kind === layout.STREAM_KIND_CREDIT) {
      if (!this.#control.credit(tag)) this.#fault(layout.REASON_STREAM_CREDIT);
      return;
    }
    this.#isOver = true; // [stream.behind]
    if (kind === layout.STREAM_KIND_CLOSE) this.#control.close();
    else this.#control.fail(tag >>> 0);
  }

  /**
   * Makes the checks that need only the header. Returns the reason of a fault, or 0. [stream.check]
   */
  #check(): number {
    const size = this.#header[layout.FRAME_SIZE_OFFSET >> 2]! >>> 0;
    const word = this.#header[layout.FRAME_KIND_OFFSET >> 2]!;
    const kind = (word >>> KIND_SHIFT) & 0xff;
    const flags = (word >>> FLAGS_SHIFT) & 0xff;
    this.#kind = kind;
    this.#size = size;
    const isEmpty = kind === layout.FRAME_KIND_END || isControl(kind);
    const isMessage = !isEmpty && kind >= layout.FRAME_KIND_DATA &&
      kind <= layout.FRAME_KIND_THROW;
    const isSkipped = kind >= layout.FRAME_KIND_EXTENSION_MIN;
    if (!isEmpty && !isMessage && !isSkipped) return layout.REASON_FRAME_KIND;
    if (!isSkipped && word >>> RESERVED_SHIFT !== 0) return layout.REASON_FRAME_RESERVED;
    if (isEmpty && flags !== 0) return layout.REASON_FRAME_FLAGS;
    if (isMessage && !areMessageFlags(flags, (word >>> CODEC_SHIFT) & 0xff)) {
      return layout.REASON_FRAME_FLAGS;
    }
    if (isEmpty && size !== 0) return layout.REASON_FRAME_SIZE;
    if (size > this.#own.largest - HEADER_SIZE) return layout.REASON_FRAME_SIZE;
    if (this.#hasEnded && (isMessage || kind === layout.FRAME_KIND_END)) {
      return layout.REASON_FRAME_SEQUENCE;
    }
    this.#extent = extentOf(size);
    const used = (this.#position - this.#told) >>> 0;
    const isTooMuch = usesCredit(kind) && this.#extent > this.#own.window - used;
    return isTooMuch ? layout.REASON_STREAM_CREDIT : 0;
  }

  /** Finds the place of the frame whose header has arrived, and writes the header there. */
  #begin(): void {
    this.#isAfterEnd = this.#hasEnded;
    this.#hasEnded ||= this.#kind === layout.FRAME_KIND_END;
    if (!this.#drops && !this.#isAfterEnd) {
      const extent = this.#extent;
      const toEnd = this.capacity - (this.cursor & (this.capacity - 1));
      if (extent > toEnd) {
        writeHeader(this.words, placeOf(this) >> 2, toEnd - HEADER_SIZE, PAD, 0);
        this.cursor = (this.cursor + toEnd) | 0;
      }
      load(this);
      const used = (this.cursor - this.peerCursor) >>> 0;
      // The window bounds the bytes in the ring, and the capacity was chosen to fit the window.
      assert(used + extent <= this.capacity, "a frame within its credit finds no room");
      this.words.set(this.#header, placeOf(this) >> 2);
    }
    this.#left = this.#extent - HEADER_SIZE;
    if (this.#left === 0) this.#finish();
  }

  #takeRest(piece: Uint8Array): void {
    const done = this.#extent - this.#left;
    const isKept = !this.#drops && !this.#isAfterEnd;
    if (isKept) this.bytes.set(piece, placeOf(this) + done);
    this.#left -= piece.length;
    if (this.#left === 0) this.#finish();
  }

  /** The frame is complete. Only now does the reader get to see it. [stream.whole] */
  #finish(): void {
    if (usesCredit(this.#kind)) this.#position = (this.#position + this.#extent) | 0;
    if (this.#drops) return;
    // A frame after `end` takes no room in the ring: it counts as given back with the `end`.
    if (this.#isAfterEnd) {
      return void this.#ends.push({ ring: this.cursor, position: this.#position });
    }
    const at = placeOf(this);
    const isMessage = this.#kind < layout.FRAME_KIND_EXTENSION_MIN;
    const fill = this.bytes.subarray(at + HEADER_SIZE + this.#size, at + this.#extent);
    if (isMessage && fill.some((byte) => byte !== 0)) {
      return this.#fault(layout.REASON_FRAME_RESERVED);
    }
    this.cursor = (this.cursor + this.#extent) | 0;
    this.#ends.push({ ring: this.cursor, position: this.#position });
    store(this);
  }

  #fault(reason: number): void {
    this.#isOver = true;
    this.#control.fault(reason);
  }
}
