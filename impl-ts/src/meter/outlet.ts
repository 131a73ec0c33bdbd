/**
 * The outgoing direction of a metered pipe. See `spec/meter.md`.
 *
 * @module
 */

import { RING_HEAD_WORD } from "../memory/layout.ts";
import { microseconds, timeOf } from "./clock.ts";
import { type Passed, walk } from "./frames.ts";
import { Tally } from "./tally.ts";
import { Outlet } from "../pipe/outlet.ts";

/** The figures of one outgoing direction. */
export class OutletGauge implements Passed {
  messages = 0;
  bytes = 0;
  begun = 0;
  /** The number of messages that had to wait for room, and how long each of them waited. */
  stalls = 0;
  readonly stall: Tally = new Tally(1);
  readonly #outlet: Outlet;
  /** The position up to which frames are counted and have their `time`. */
  #counted: number;
  /**
   * Whether the message under way has found no room; since when it waits (-1: it does not), and
   * when it was last known to wait.
   */
  #isRefused = false;
  #since = -1;
  #last = 0;

  /** Makes the gauge of an outlet, for what it writes from now on. */
  constructor(outlet: Outlet) {
    this.#outlet = outlet;
    this.#counted = outlet.own;
  }

  /** Stores `time` in each message finished since the last call, and counts it. [meter.time] */
  count(): void {
    const outlet = this.#outlet;
    const { own } = outlet;
    const step = (own - this.#counted) | 0;
    if (step === 0) return;
    // Unpublished frames may have been taken back: those of a message that found no room.
    if (step > 0) walk(outlet, this.#counted, own, this, timeOf(microseconds()));
    else this.begun = 0;
    this.#counted = own;
  }

  /** Called when another message begins. If the one before still waited, it was given up. */
  begin(): void {
    if (this.#isRefused) this.#end(this.#last);
  }

  /** Notes whether there was room for all of the message under way. */
  noteRoom(hasRoom: boolean): void {
    if (hasRoom) {
      if (this.#isRefused) this.#end(microseconds());
    } else if (this.#since >= 0) this.#last = microseconds();
    else this.#isRefused = true;
  }

  /**
   * Called when a caller looks for room again, which means that the message waits. A call that does
   * not wait never looks again. Further looks belong to the same wait.
   */
  noteWait(): void {
    if (!this.#isRefused || this.#since >= 0) return;
    this.stalls++;
    this.#since = this.#last = microseconds();
  }

  /** Called after each sleep of a caller that waits for room. */
  noteWake(): void {
    if (this.#since >= 0) this.#last = microseconds();
  }

  #end(now: number): void {
    if (this.#since >= 0) this.stall.record(Math.max(0, now - this.#since), 1);
    this.#isRefused = false;
    this.#since = -1;
  }

  /** What is published and not given back: messages, and bytes including headers. */
  queue(): { messages: number; bytes: number } {
    const outlet = this.#outlet;
    const { stored } = outlet;
    const head = Atomics.load(outlet.control, RING_HEAD_WORD);
    const isValid = ((stored - head) >>> 0) <= ((stored - outlet.other) >>> 0);
    const from = isValid ? head : outlet.other;
    const passed: Passed = { messages: 0, bytes: 0, begun: 0 };
    walk(outlet, from, stored, passed, 0);
    return { messages: passed.messages, bytes: (stored - from) >>> 0 };
  }

  /** Begins to count again from 0. */
  clear(): void {
    this.messages = this.bytes = this.stalls = 0;
    this.stall.clear();
  }
}

/** An outlet that reports to its gauge. The meter turns an outlet into one, and back. */
export class MeteredOutlet extends Outlet {
  /** Set by the meter. */
  declare gauge: OutletGauge;

  override store(): void {
    this.gauge.count();
    super.store();
  }

  override start(kind: number, tag: number): void {
    this.gauge.begin();
    super.start(kind, tag);
  }

  override advance(): boolean {
    const hasRoom = super.advance();
    this.gauge.count();
    this.gauge.noteRoom(hasRoom);
    return hasRoom;
  }

  override claim(size: number): number {
    const offset = super.claim(size);
    this.gauge.noteRoom(offset >= 0);
    return offset;
  }

  override finish(size: number): void {
    super.finish(size);
    this.gauge.count();
  }

  override look(): boolean {
    this.gauge.noteWait();
    return super.look();
  }

  override disarm(): void {
    super.disarm();
    this.gauge.noteWake();
  }
}
