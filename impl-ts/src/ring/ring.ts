/**
 * One direction of a ring, as one of its two endpoints sees it: the byte area, this endpoint's own
 * cursor, and the peer's cursor. See `spec/ring.md`.
 *
 * Positions are kept as signed 32-bit integers (`| 0`), which V8 holds in registers, and which wrap
 * around where the specification says that they do.
 *
 * @module
 */

import { CorruptError } from "../error.ts";
import { STOPPED } from "../memory/gate.ts";
import * as layout from "../memory/layout.ts";
import { reasonName } from "../memory/layout.ts";
import { memoryGone } from "../memory/segment.ts";
import type { Channel } from "../memory/segment_geometry.ts";
import type { Holder, Waitable } from "../wait/wait.ts";
import type { Endpoint } from "../wait/endpoint.ts";
import { markFailed } from "../wait/state.ts";

// V8 builds constants of this module into the machine code, but looks imported ones up each time.
const TAIL = layout.RING_TAIL_WORD;
const HEAD = layout.RING_HEAD_WORD;
const READER_WANTS = layout.RING_READER_WANTS_WORD;
const WRITER_WANTS = layout.RING_WRITER_WANTS_WORD;
const ARMED = layout.WANTS_ARMED;
const MISALIGNED = layout.FRAME_ALIGN - 1;

/**
 * One end of a ring: the outlet of a writer, or the inlet of a reader. Only the endpoint's own
 * thread may call its methods.
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
  /**
   * The own cursor: the position after the last frame that this end has finished, or has taken out.
   * `stored` is the value of it that the peer sees.
   */
  own: number;
  stored: number;
  /** The private copy of the peer's cursor: the value that was loaded and checked last. */
  other: number;
  /** Bits of `memory/gate.ts`: what keeps a call from its usual course; 0 where nothing does. */
  bits = 0;
  /** The first fault that this end found in what the peer wrote. [pipe.fault] */
  fault: CorruptError | undefined;
  readonly #isOut: boolean;
  /** The index, in the control words, of this endpoint's own `wants` word. */
  readonly #wants: number;
  #arms = 0;
  #isHeld = false;

  /**
   * Starts at the position that the channel descriptor states [ring.start]. If the endpoint was
   * vacated before, starts at this endpoint's own cursor as it stands in the ring; its four low
   * bits, which no valid cursor has set, are cleared. [ring.start_again]
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

  /**
   * The position that this end stores in its `wants` word: where the peer's cursor has to be before
   * the peer rings.
   */
  abstract get need(): number;

  /**
   * Publishes all finished frames, or gives back the room of all released ones, by one store of the
   * own cursor, which always stands between two frames. [ring.batch] Then wakes the peer, if it
   * asked to be woken at a position that the cursor has reached. Apart from `vacatePeer`, nothing
   * else stores the cursor. [ring.tail_owner] [ring.head_owner]
   */
  store(): void {
    const at = this.own;
    const { control } = this;
    if (at === this.stored || (this.bits & STOPPED) !== 0 || control.length === 0) return;
    this.stored = at;
    const isOut = this.#isOut;
    // [ring.publish] [ring.release] This store comes after the last access to the bytes it covers.
    Atomics.store(control, isOut ? TAIL : HEAD, at);
    // [wait.store_order] Store the cursor first, then load the peer's `wants`. The peer does the
    // reverse, so at least one side sees what the other has stored.
    const word = isOut ? READER_WANTS : WRITER_WANTS;
    const wants = Atomics.load(control, word);
    const isMet = wants !== 0 && ((at - (wants & ~ARMED)) | 0) >= 0;
    if (isMet && Atomics.exchange(control, word, 0) !== 0) this.endpoint.ring(this.peer);
    else this.endpoint.wakesElided++;
  }

  /**
   * Loads the peer's cursor once, into a local, because the peer may change the word between two
   * loads. Returns whether the cursor has moved.
   *
   * @throws {CorruptError} if no correct peer could have stored the value. [ring.cursor]
   */
  load(): boolean {
    let seen: number;
    try {
      seen = Atomics.load(this.control, this.#isOut ? HEAD : TAIL);
    } catch {
      memoryGone(); // to ask for the length before each load is slower (measured: Deno 2.9)
    }
    const { other } = this;
    // The writer's `tail` is at most one capacity ahead of the reader's own head. The reader's
    // `head` does not go beyond what the writer has published. Neither cursor goes back.
    const most = this.#isOut ? this.stored - other : this.capacity - ((other - this.own) | 0);
    const step = (seen - other) | 0;
    const isValid = (seen & MISALIGNED) === 0 && step >= 0 && step <= (most | 0);
    if (!isValid) throw this.fail(layout.REASON_RING_CURSOR, `cursor ${seen >>> 0}`);
    this.other = seen;
    return step !== 0;
  }

  /**
   * Marks the peer's endpoint failed because of a fault in what it wrote. Returns the error that
   * this call and all later ones throw. [ring.fault] [pipe.fault]
   */
  protected fail(reason: number, what: string): CorruptError {
    const code = reasonName(reason)!;
    markFailed(this.endpoint.segment, this.peer, reason, this.endpoint.mechanism);
    this.bits |= STOPPED;
    const verb = this.#isOut ? "write" : "read";
    return this.fault = new CorruptError(code, `Cannot ${verb}: the peer wrote ${what}`);
  }

  /**
   * Disarms the own `wants` word. After that this end stores nothing in the ring. [pipe.close]
   * [wait.disarm]
   */
  close(): void {
    if (this.#arms > 0) this.#storeWants(0);
    this.bits |= STOPPED;
  }

  /**
   * Registers this end, so that its cursor is stored before the endpoint waits for anything.
   * [ring.publish_all] [ring.release_all]
   */
  hold(): void {
    if (this.#isHeld) return;
    this.#isHeld = true;
    this.endpoint.hold(this);
  }

  letGo(): void {
    this.#isHeld = false;
    this.store();
  }

  /**
   * Whether the peer's cursor has moved, or this end has stopped and will not look at it any more.
   */
  get hasMoved(): boolean {
    try {
      return (this.bits & STOPPED) !== 0 ||
        Atomics.load(this.control, this.#isOut ? HEAD : TAIL) !== this.other;
    } catch {
      return true; // the memory is gone, which `load` reports
    }
  }

  abstract look(): boolean;

  lookAround(): boolean {
    return this.endpoint.hasChanged(this.peer);
  }

  arm(): void {
    this.#arms++;
    this.#storeWants(this.need | ARMED);
  }

  stayArmed(): void {
    if ((this.bits & STOPPED) !== 0) return;
    const wants = this.need | ARMED;
    if (Atomics.load(this.control, this.#wants) !== wants) this.#storeWants(wants);
  }

  disarm(): void {
    if (--this.#arms === 0) this.#storeWants(0);
  }

  #storeWants(wants: number): void {
    const { control } = this;
    if ((this.bits & STOPPED) === 0 && control.length > 0) {
      Atomics.store(control, this.#wants, wants);
    }
  }
}
