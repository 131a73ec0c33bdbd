/**
 * One end of a ring: the byte area, this endpoint's own cursor, and the peer's cursor as it was
 * checked last. See `spec/ring.md`.
 *
 * Positions are kept as signed 32-bit integers (`| 0`), which V8 holds in registers, and which wrap
 * around where the specification says that they do.
 *
 * @module
 */

import { type CorruptError, failure } from "../error.ts";
import { layout, reasonName } from "../memory/layout.ts";
import type { Channel } from "../memory/plan.ts";
import { throwGone } from "../memory/segment.ts";
import type { Endpoint } from "../wait/endpoint.ts";
import { changeState, ring, stateAt } from "../wait/state.ts";

/**
 * Why a call cannot take its usual course, as bits of `Side.bits`: one load of a word that is 0
 * tells a call that there is no reason.
 */
export const enum Bit {
  /** Neither read nor store anything in the ring: this end is closed, or found a fault. */
  STOPPED = 1,
  /** The writer has called `end`, or the reader has read the `end` frame. */
  ENDED = 2,
  /** The caller has an open claim, or a lent frame. */
  LENT = 4,
  /** A value is being encoded: the application's own code may run meanwhile. */
  ENCODING = 8,
  /** The state of the peer was found to be final or invalid. */
  GONE = 16,
  /** The message in progress is lent frame by frame, and not collected. */
  IN_PARTS = 32,
  /** The reader lends a frame, or the rest of the frame's message still has to be lent. */
  LENDING = LENT | IN_PARTS,
}

/** One end of a ring. Only the endpoint's own thread may use it. */
export class Side {
  declare readonly endpoint: Endpoint;
  /** Index of the endpoint at the other end. */
  declare readonly peer: number;
  /** Where its state word stands. */
  declare readonly peerState: number;
  declare readonly capacity: number;
  /** All of the segment, as words and as bytes, and where the byte area begins in it. */
  declare readonly words: Int32Array;
  declare readonly bytes: Uint8Array;
  declare readonly base: number;
  /** The position after the last frame that this end has finished, or has taken out. */
  declare cursor: number;
  /** The value of it that the peer sees. */
  declare published: number;
  /** The peer's cursor: the value that was loaded and checked last. */
  declare peerCursor: number;
  bits = 0;
  /** The first fault that this end found in what the peer wrote. [pipe.fault] */
  declare fault: CorruptError | undefined;
  declare readonly isOut: boolean;
  // Where the control words stand: both cursors, and what both want.
  declare readonly own: number;
  declare readonly other: number;
  declare readonly wants: number;
  declare readonly otherWants: number;

  /**
   * Starts at the position that the channel descriptor states [ring.start]; if the endpoint was
   * vacated before, at its own cursor as it stands in the ring, without the four low bits, which no
   * valid cursor has set. [ring.start_again]
   */
  constructor(endpoint: Endpoint, channel: Channel, isOut: boolean) {
    const { control, area } = endpoint.segment;
    const first = channel.controlOffset >>> 2;
    this.endpoint = endpoint;
    this.peer = isOut ? channel.reader : channel.writer;
    this.peerState = stateAt(this.peer);
    this.capacity = channel.dataSize;
    this.words = control;
    this.bytes = area;
    this.base = channel.dataOffset;
    this.isOut = isOut;
    this.own = first + (isOut ? layout.RING_TAIL_WORD : layout.RING_HEAD_WORD);
    this.other = first + (isOut ? layout.RING_HEAD_WORD : layout.RING_TAIL_WORD);
    this.wants = first + (isOut ? layout.RING_WRITER_WANTS_WORD : layout.RING_READER_WANTS_WORD);
    this.otherWants = first +
      (isOut ? layout.RING_READER_WANTS_WORD : layout.RING_WRITER_WANTS_WORD);
    this.cursor = this.published = this.peerCursor = endpoint.isAgain
      ? Atomics.load(control, this.own) & -layout.FRAME_ALIGN
      : channel.start | 0;
  }
}

/** Where the frame at the own cursor begins, in bytes of the segment. */
export const placeOf = ({ base, cursor, capacity }: Side): number =>
  base + (cursor & (capacity - 1));

/**
 * Publishes all finished frames, or gives back the room of all released ones, by one store of the
 * own cursor, which always stands between two frames. [ring.batch] Then wakes the peer, if it asked
 * to be woken at a position that the cursor has reached. [ring.tail_owner] [ring.head_owner]
 */
export function store(side: Side): void {
  const at = side.cursor;
  const { words, otherWants, endpoint } = side;
  if (at === side.published || side.bits & Bit.STOPPED || !words.length) return;
  side.published = at;
  // [ring.publish] [ring.release] This store comes after the last access to the bytes it covers.
  Atomics.store(words, side.own, at);
  // [wait.store_order] Store the cursor first, then load the peer's `wants`. The peer does the
  // reverse, so at least one side sees what the other has stored.
  const wants = Atomics.load(words, otherWants);
  const isReached = wants && ((at - (wants & ~layout.WANTS_ARMED)) | 0) >= 0;
  if (isReached && Atomics.exchange(words, otherWants, 0)) ring(endpoint, side.peer);
  else endpoint.wakesElided++;
}

/**
 * Loads the peer's cursor once, into a local, because the peer may change the word between two
 * loads. Returns whether the cursor has moved.
 *
 * @throws {CorruptError} if no correct peer could have stored the value. [ring.cursor]
 */
export function load(side: Side): boolean {
  let seen: number;
  try {
    seen = Atomics.load(side.words, side.other);
  } catch {
    throwGone(); // to ask for the length before each load is slower (measured: Deno 2.9)
  }
  const { peerCursor } = side;
  // The writer's `tail` is at most one capacity ahead of the reader's own head. The reader's `head`
  // does not go beyond what the writer has published. Neither cursor goes back.
  const most = ((side.isOut ? side.published : side.cursor + side.capacity) - peerCursor) | 0;
  const step = (seen - peerCursor) | 0;
  if (seen & (layout.FRAME_ALIGN - 1) || step < 0 || step > most) {
    throw markFaulty(side, layout.REASON_RING_CURSOR, `cursor ${seen >>> 0}`);
  }
  side.peerCursor = seen;
  return step !== 0;
}

/** Whether the peer's cursor has moved, or this end has stopped and will not look any more. */
export function hasMoved(side: Side): boolean {
  try {
    return (side.bits & Bit.STOPPED) !== 0 ||
      Atomics.load(side.words, side.other) !== side.peerCursor;
  } catch {
    return true; // the memory is gone, which `load` reports
  }
}

/**
 * Asks the peer to ring when its cursor reaches a position, which has the bit `WANTS_ARMED` here; 0
 * takes that back. [wait.disarm]
 */
export function want(side: Side, wants: number): void {
  const { words } = side;
  if (side.bits & Bit.STOPPED || !words.length) return;
  // [wait.stay_armed] Most sleeps of an event loop find the word as they left it.
  if (Atomics.load(words, side.wants) !== wants) Atomics.store(words, side.wants, wants);
}

/** Drops what is not published or not delivered, and stores nothing any more. [pipe.close] */
export function stop(side: Side): void {
  want(side, 0);
  if (side.isOut) side.cursor = side.published;
  side.bits = (side.bits | Bit.STOPPED) & ~Bit.LENT;
}

/**
 * Marks the peer's endpoint failed because of a fault in what it wrote. Returns the error that this
 * call and all later ones throw. [ring.fault] [pipe.fault]
 */
export function markFaulty(side: Side, reason: number, what: string): CorruptError {
  const { segment, mechanism } = side.endpoint;
  const failed = layout.ENDPOINT_STATE_FAILED | (reason << layout.REASON_SHIFT);
  changeState(segment, side.peer, failed, mechanism);
  if (side.isOut) side.cursor = side.published;
  side.bits |= Bit.STOPPED;
  const verb = side.isOut ? "write" : "read";
  return side.fault = failure(
    reasonName(reason)!,
    `${verb}: the peer wrote ${what}`,
  ) as CorruptError;
}
