/**
 * The outgoing direction of a stream: takes the frames that the port has written out of its private
 * ring, as far as the peer's credit allows. See `spec/stream.md`.
 *
 * @module
 */

import { extentOf, packKind } from "../ring/frame.ts";
import { layout } from "../memory/layout.ts";
import type { Channel } from "../memory/plan.ts";
import { hasMoved, load, placeOf, Side, store } from "../ring/side.ts";
import type { Endpoint } from "../wait/endpoint.ts";
import { usesCredit } from "./inlet.ts";
import type { Preface } from "./preface.ts";

const START = layout.STREAM_START | 0;
const HEADER_SIZE = layout.FRAME_HEADER_SIZE;
const KIND_SHIFT = 8 * (layout.FRAME_KIND_OFFSET - 4);
/** After this many bytes, a piece takes no further frame. */
const PIECE_SIZE = 64 * 1024;

/** Makes a frame that consists of its header, with all fields written. [stream.control] */
export function controlFrame(kind: number, tag: number): Uint8Array {
  return new Uint8Array(Int32Array.of(0, packKind(kind, 0, 0), tag, 0).buffer);
}

/** The capacity of a ring whose frames are never larger than the peer accepts. [stream.largest] */
export function outgoingCapacity({ largest }: Preface, most: number): number {
  return Math.min(most, 2 ** Math.floor(Math.log2(2 * largest)));
}

/** Reads the ring into which the port writes. */
export class StreamOutlet extends Side {
  readonly #window: number;
  /** Positions as the peer counts: of what was taken, and of what the peer has given back. */
  #position = START;
  #head = START;
  /** Whether the next frame waits for a credit. */
  #waits = false;

  /** Makes the outlet for a peer that has stated `peer` in its preface. */
  constructor(endpoint: Endpoint, channel: Channel, peer: Preface) {
    super(endpoint, channel, false);
    this.#window = peer.window;
  }

  /** The position that the port must reach before there is something to take. */
  get need(): number {
    return (this.cursor + (this.#waits ? this.capacity : layout.FRAME_ALIGN)) | 0;
  }

  /** Whether all that was written has been taken. */
  get isEmpty(): boolean {
    return !hasMoved(this) && this.cursor === this.peerCursor;
  }

  /**
   * Notes a position that the peer has told. Returns false if it is invalid. [stream.credit_check]
   */
  credit(position: number): boolean {
    const isAligned = position % layout.FRAME_ALIGN === 0;
    const left = (this.#position - position) >>> 0;
    if (!isAligned || left > (this.#position - this.#head) >>> 0) return false;
    this.#head = position;
    return true;
  }

  /** Takes as many whole frames as make a piece and as the credit allows. */
  take(pieces: Uint8Array[]): void {
    load(this);
    this.#waits = false;
    for (let size = 0; this.cursor !== this.peerCursor && size < PIECE_SIZE;) {
      const at = placeOf(this);
      const kind = (this.words[(at + layout.FRAME_KIND_OFFSET) >> 2]! >>> KIND_SHIFT) & 0xff;
      const payload = this.words[(at + layout.FRAME_SIZE_OFFSET) >> 2]!;
      const extent = extentOf(payload);
      if (kind !== layout.FRAME_KIND_PAD) {
        const after = usesCredit(kind) ? (this.#position + extent) | 0 : this.#position;
        // [stream.credit_kept]
        this.#waits = (after - this.#head) >>> 0 > this.#window;
        if (this.#waits) break;
        this.#position = after;
        // The fill bytes of a new array are 0. [stream.frames]
        const frame = new Uint8Array(extent);
        frame.set(this.bytes.subarray(at, at + HEADER_SIZE + payload));
        pieces.push(frame);
        size += extent;
      }
      this.cursor = (this.cursor + extent) | 0;
    }
    store(this);
  }
}
