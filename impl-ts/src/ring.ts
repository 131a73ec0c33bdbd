/**
 * One direction seen from one end: a byte area, the own cursor, and the peer's. See `spec/ring.md`.
 *
 * Positions are kept as signed 32-bit integers (`| 0`), which V8 holds in registers, and which
 * wrap around where the specification wraps.
 *
 * @module
 */

import { CorruptError } from "./error.ts";
import { STOPPED } from "./gate.ts";
import * as layout from "./layout.ts";
import { reasonName } from "./layout.ts";
import type { Channel } from "./segment_geometry.ts";
import type { Holder, Waitable } from "./wait.ts";
import type { Endpoint } from "./wait_endpoint.ts";
import { markFailed } from "./wait_state.ts";

// Constants of this module are part of the machine code; V8 looks imported ones up each time.
const TAIL = layout.RING_TAIL_WORD;
const HEAD = layout.RING_HEAD_WORD;
const READER_WANTS = layout.RING_READER_WANTS_WORD;
const WRITER_WANTS = layout.RING_WRITER_WANTS_WORD;
const ARMED = layout.WANTS_ARMED;
const MISALIGNED = layout.FRAME_ALIGN - 1;

/**
 * One end of a ring: the outlet of a writer, or the inlet of a reader. Its methods belong to the
 * endpoint's thread.
 */
export abstract class Lane implements Waitable, Holder {
  readonly endpoint: Endpoint;
  /** Index of the endpoint at the other end. */
  readonly peer: number;
  readonly capacity: number;
  /** The byte area, as bytes and as words. */
  readonly bytes: Uint8Array;
  readonly words: Int32Array;
  readonly control: Int32Array;
  /** The own cursor: behind what is finished, or taken; `stored` is what the peer sees of it. */
  own: number;
  stored: number;
  /** The peer's cursor, as it was loaded and checked last. */
  other: number;
  /** What stands in the way: see `gate.ts`; 0 where nothing does. */
  bits = 0;
  /** The first fault that was found in what the peer wrote. [pipe.fault] */
  fault: CorruptError | undefined;
  readonly #isOut: boolean;
  /** The index of the own `wants`. */
  readonly #wants: number;
  #arms = 0;
  #isHeld = false;

  /**
   * Begins at the start of its channel [ring.start]; or, if somebody has had the endpoint before,
   * where its own cursor stands, of which no bits count that it cannot have. [ring.start_again]
   */
  constructor(endpoint: Endpoint, channel: Channel, isOut: boolean) {
    const { segment } = endpoint;
    const { dataOffset, dataSize } = channel;
    this.endpoint = endpoint;
    this.peer = isOut ? channel.reader : channel.writer;
    this.capacity = dataSize;
    this.bytes = segment.bytes(dataOffset, dataSize);
    this.words = segment.words(dataOffset, dataSize);
    this.control = segment.words(channel.controlOffset, layout.RING_CONTROL_SIZE);
    this.#isOut = isOut;
    this.#wants = isOut ? WRITER_WANTS : READER_WANTS;
    this.own = this.stored = this.other = endpoint.isAgain
      ? Atomics.load(this.control, isOut ? TAIL : HEAD) & ~MISALIGNED
      : channel.start | 0;
  }

  /** What the own `wants` asks for: the peer's cursor at which to be rung. */
  abstract get need(): number;

  /**
   * Publishes what is finished, or gives back what was taken, by one store of the own cursor, which
   * stands between frames; and wakes the peer if it sleeps until then. [ring.batch] But for this
   * and `vacatePeer`, nothing stores the cursor. [ring.tail_owner] [ring.head_owner]
   */
  store(): void {
    const at = this.own;
    if (at === this.stored || (this.bits & STOPPED) !== 0) return;
    this.stored = at;
    const { control } = this;
    const isOut = this.#isOut;
    // [ring.publish] [ring.release] Behind the last access to the bytes that it covers.
    Atomics.store(control, isOut ? TAIL : HEAD, at);
    // [wait.store_order] The cursor first, then the wish: one side sees the other.
    const word = isOut ? READER_WANTS : WRITER_WANTS;
    const wants = Atomics.load(control, word);
    const isMet = wants !== 0 && ((at - (wants & ~ARMED)) | 0) >= 0;
    if (isMet && Atomics.exchange(control, word, 0) !== 0) this.endpoint.ring(this.peer);
    else this.endpoint.wakesElided++;
  }

  /**
   * Loads the peer's cursor, once, into a local: the peer may change the word between two loads.
   * Returns whether it has moved.
   *
   * @throws {CorruptError} if it is none that the peer may have stored. [ring.cursor]
   */
  load(): boolean {
    const seen = Atomics.load(this.control, this.#isOut ? HEAD : TAIL);
    const { other } = this;
    // The writer's `tail` is at most a capacity ahead of the own head; the reader's `head` does not
    // overtake what is published; and neither goes back.
    const most = this.#isOut ? this.stored - other : this.capacity - ((other - this.own) | 0);
    const step = (seen - other) | 0;
    const isValid = (seen & MISALIGNED) === 0 && step >= 0 && step <= (most | 0);
    if (!isValid) throw this.fail(layout.REASON_RING_CURSOR, `cursor ${seen >>> 0}`);
    this.other = seen;
    return step !== 0;
  }

  /**
   * Marks the peer for a fault in what it wrote, and returns the error of this call and all later
   * ones. [ring.fault] [pipe.fault]
   */
  protected fail(reason: number, what: string): CorruptError {
    const code = reasonName(reason)!;
    markFailed(this.endpoint.segment, this.peer, reason, this.endpoint.mechanism);
    this.bits |= STOPPED;
    const verb = this.#isOut ? "write" : "read";
    return this.fault = new CorruptError(code, `Cannot ${verb}: the peer wrote ${what}`);
  }

  /** Takes its wish back, and stores nothing in this ring any more. [pipe.close] [wait.disarm] */
  close(): void {
    if (this.#arms > 0) this.#wish(0);
    this.bits |= STOPPED;
  }

  /** Has the cursor stored before the endpoint waits. [ring.publish_all] [ring.release_all] */
  hold(): void {
    if (this.#isHeld) return;
    this.#isHeld = true;
    this.endpoint.hold(this);
  }

  letGo(): void {
    this.#isHeld = false;
    this.store();
  }

  /** Whether the peer's cursor has moved, or will not be looked at any more. */
  get hasMoved(): boolean {
    return (this.bits & STOPPED) !== 0 ||
      Atomics.load(this.control, this.#isOut ? HEAD : TAIL) !== this.other;
  }

  abstract look(): boolean;

  lookAround(): boolean {
    return this.endpoint.hasChanged(this.peer);
  }

  arm(): void {
    this.#arms++;
    this.#wish(this.need | ARMED);
  }

  stayArmed(): void {
    if ((this.bits & STOPPED) !== 0) return;
    const wants = this.need | ARMED;
    if (Atomics.load(this.control, this.#wants) !== wants) this.#wish(wants);
  }

  disarm(): void {
    if (--this.#arms === 0) this.#wish(0);
  }

  #wish(wants: number): void {
    if ((this.bits & STOPPED) === 0) Atomics.store(this.control, this.#wants, wants);
  }
}
