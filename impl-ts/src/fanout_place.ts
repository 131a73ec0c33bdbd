/**
 * Where a reader of a fanout stands, and what it may look at there. See `spec/fanout.md`.
 *
 * Positions are signed, as in a ring. In mode `lose` they have 63 bits: the low 32 are such a
 * position, and what is above the low 31 is kept beside it; the bit between counts in both.
 *
 * @module
 */

import * as layout from "./layout.ts";
import type { Segment } from "./segment.ts";
import type { Channel } from "./segment_geometry.ts";

// Constants of this module are part of the machine code; V8 looks imported ones up each time.
const TAIL = layout.FANOUT_TAIL_WORD;
const FLOOR = layout.FANOUT_FLOOR_WORD;
const ERA = layout.FANOUT_ERA_WORD;
const ERA_SIZE = layout.FANOUT_ERA_SIZE;
const LOW = ERA_SIZE - 1;
const HEAD = layout.FANOUT_READER_HEAD_WORD;
const MISALIGNED = layout.FRAME_ALIGN - 1;
const TRIES = layout.FANOUT_TRIES;

/** What a look found: it can be relied on; the writer has spoilt it; or broken the rules. */
export const SOUND = 0;
export const SPOILT = 1;
export const BROKEN = 2;

/** The own position, and the tail. */
export class Place {
  readonly control: Int32Array;
  /** Index of the first word of the own record. */
  readonly record: number;
  readonly capacity: number;
  readonly isLossy: boolean;
  /** The own position, and what is above its low 31 bits. */
  own = 0;
  #high = 0;
  /** The tail that was accepted last. */
  tail = 0;
  /** The last word that was stored in the own `head`. */
  head = 0;
  /** Whether the writer has overwritten the own position since the last message. */
  isOverrun = false;
  /** Whether it stands at a floor, behind which it has not looked for a tail yet. */
  isStale = false;
  /** Whether it has begun where nothing had ever been written. */
  isFirst = false;
  /** What is left of the tries. [fanout.tries] */
  #tries = TRIES;
  /** The floor that was loaded last. */
  #floor = 0;
  #floorHigh = 0;
  #era = 0;

  /** The record with that number, in a sound fanout. */
  constructor(segment: Segment, channel: Channel, record: number) {
    this.control = segment.words(channel.controlOffset, channel.controlSize);
    this.record = (layout.FANOUT_CONTROL_SIZE + record * layout.FANOUT_READER_SIZE) >> 2;
    this.capacity = channel.dataSize;
    this.isLossy = (channel.start & layout.FANOUT_LOSE) !== 0;
    this.#era = Atomics.load(this.control, ERA) >>> 0;
  }

  /** Whether the writer may spoil another look. */
  get hasTries(): boolean {
    return this.#tries > 0;
  }

  /** Begins with new tries: the deadline was looked at. */
  renew(): void {
    this.#tries = TRIES;
  }

  /** Mode `hold`: begins to read at the tail. [fanout.join] */
  join(): number {
    Atomics.store(this.control, this.record + HEAD, this.head = layout.FANOUT_JOINING);
    this.own = this.tail = Atomics.load(this.control, TAIL);
    return (this.own & MISALIGNED) === 0 ? SOUND : BROKEN;
  }

  /**
   * Mode `lose`: begins at the tail, or at the oldest message, of a look at both. [fanout.begin]
   */
  begin(isOldest: boolean): number {
    const before = this.#loadFloor();
    if (before !== SOUND) return before;
    this.own = this.tail = this.#floor;
    this.#high = this.#floorHigh;
    const found = this.#loadLossy();
    this.isOverrun = false; // what was overwritten meanwhile counts as before its first message
    if (found !== SOUND) return found;
    this.isFirst = this.own === this.tail; // [fanout.expected]
    if (!isOldest) this.advance((this.tail - this.own) >>> 0);
    return SOUND;
  }

  /** Goes on by so many bytes. */
  advance(extent: number): void {
    const before = this.own;
    this.own = (before + extent) | 0;
    if ((this.own ^ before) < 0) this.#high++;
  }

  /** Looks for what was published. [fanout.tail] */
  load(): number {
    return this.isLossy ? this.#loadLossy() : this.#loadHeld();
  }

  #loadHeld(): number {
    const seen = Atomics.load(this.control, TAIL);
    return this.#accept(seen) ? SOUND : BROKEN;
  }

  #loadLossy(): number {
    for (;;) {
      const seen = Atomics.load(this.control, TAIL);
      const found = this.#loadFloor();
      if (found !== SOUND) return found;
      if (!this.#isPassed()) return this.#accept(seen) ? SOUND : BROKEN;
      if (!this.#goOn()) return SPOILT;
    }
  }

  #accept(seen: number): boolean {
    const step = (seen - this.tail) | 0;
    const most = this.capacity - ((this.tail - this.own) | 0);
    if ((seen & MISALIGNED) !== 0 || step < 0 || step > most) return false;
    this.tail = seen;
    this.isStale = false;
    return true;
  }

  /**
   * Whether a copy from the own position, made since the last look, is whole; else the position is
   * another one. [fanout.validate]
   */
  validate(): number {
    // A store that is sequentially consistent keeps the copy before the loads behind it.
    Atomics.store(this.control, this.record + HEAD, this.head);
    if (!this.isLossy) return SOUND;
    const found = this.#loadFloor();
    if (found !== SOUND || !this.#isPassed()) return found;
    this.#goOn();
    return SPOILT;
  }

  /** Goes on at the floor, which has passed the own position. False: there are no tries left. */
  #goOn(): boolean {
    this.own = this.tail = this.#floor;
    this.#high = this.#floorHigh;
    this.isOverrun = this.isStale = true;
    return --this.#tries > 0;
  }

  /** Whether the floor that was loaded is beyond the own position. */
  #isPassed(): boolean {
    const eras = (this.#floorHigh - this.#high) * ERA_SIZE;
    return eras + (this.#floor & LOW) - (this.own & LOW) > 0;
  }

  #loadFloor(): number {
    const { control } = this;
    for (;;) {
      const floor = Atomics.load(control, FLOOR);
      const era = Atomics.load(control, ERA) >>> 0;
      if (era === this.#era) {
        this.#floor = floor;
        // The writer may be between its two stores.
        this.#floorHigh = era + ((era & 1) === floor >>> 31 ? 0 : 1);
        return (floor & MISALIGNED) === 0 ? SOUND : BROKEN;
      }
      this.#era = era;
      if (--this.#tries <= 0) return SPOILT;
    }
  }

  /** Whether there may be something that was not read. */
  get hasMore(): boolean {
    return this.own !== this.tail || Atomics.load(this.control, TAIL) !== this.tail;
  }
}
