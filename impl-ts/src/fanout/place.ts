/**
 * The position of a fanout's reader, and which bytes it may read there. See `spec/fanout.md`.
 *
 * Positions are signed, as in a ring. In mode `lose` a position has 63 bits: one number holds the
 * low 32 bits as such a signed position, a second number holds all bits above the low 31. So bit 31
 * is part of both.
 *
 * @module
 */

import { layout } from "../memory/layout.ts";
import type { Segment } from "../memory/segment.ts";
import type { Channel } from "../memory/plan.ts";

// V8 compiles constants of this module into the machine code, but looks up imported ones each time.
const TAIL = layout.FANOUT_TAIL_WORD;
const FLOOR = layout.FANOUT_FLOOR_WORD;
const ERA = layout.FANOUT_ERA_WORD;
const ENDED = layout.FANOUT_ENDED_WORD;
const ERA_SIZE = layout.FANOUT_ERA_SIZE;
const LOW = ERA_SIZE - 1;
const HEAD = layout.FANOUT_READER_HEAD_WORD;
const MISALIGNED = layout.FRAME_ALIGN - 1;
const TRIES = layout.FANOUT_TRIES;

/**
 * The result of a look: it can be relied on, the writer has spoilt it, or it has broken the rules.
 */
export const SOUND = 0;
export const SPOILT = 1;
export const BROKEN = 2;

/** The position of one reader, and the tail of the writer as the reader knows it. */
export class Place {
  readonly control: Int32Array;
  /** Index of the first word of this reader's record. */
  readonly record: number;
  readonly capacity: number;
  readonly isLossy: boolean;
  /** The reader's position, and its bits above the low 31. */
  own = 0;
  #high = 0;
  /** The last tail that passed the check. */
  tail = 0;
  /** The last value that was stored in the reader's `head`. */
  head = 0;
  /** Whether the writer has overwritten the reader's position since the last message. */
  isOverrun = false;
  /** Whether the reader was moved to a floor and has not loaded a tail since. */
  isStale = false;
  /** Whether the reader began before anything was written. */
  isFirst = false;
  /** How many more looks the writer may spoil. [fanout.tries] */
  #tries = TRIES;
  /**
   * The floor as it was loaded last, its bits above the low 31, and the era as it was loaded last.
   */
  #floor = 0;
  #floorHigh = 0;
  #era = 0;

  /** The place of the reader with this record, in a fanout that has passed the checks. */
  constructor(segment: Segment, channel: Channel, record: number) {
    this.control = segment.words(channel.controlOffset, channel.controlSize);
    this.record = (layout.FANOUT_CONTROL_SIZE + record * layout.FANOUT_READER_SIZE) >> 2;
    this.capacity = channel.dataSize;
    this.isLossy = (channel.start & layout.FANOUT_LOSE) !== 0;
    this.#era = Atomics.load(this.control, ERA) >>> 0;
  }

  /** Whether the reader may look again after another spoilt look. */
  get hasTries(): boolean {
    return this.#tries > 0;
  }

  /** Restores all tries, after a look at the deadline. */
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
   * Mode `lose`: looks at the tail and the floor, and begins to read at the tail, or, if
   * `isOldest`, at the floor, which is the oldest message. [fanout.begin]
   */
  begin(isOldest: boolean): number {
    const before = this.#loadFloor();
    if (before !== SOUND) return before;
    this.own = this.tail = this.#floor;
    this.#high = this.#floorHigh;
    const found = this.#loadLossy();
    this.isOverrun = false; // messages overwritten before the reader has begun are not lost to it
    if (found !== SOUND) return found;
    this.isFirst = this.own === this.tail; // [fanout.expected]
    if (!isOldest) this.advance((this.tail - this.own) >>> 0);
    return SOUND;
  }

  /**
   * Whether the writer's `end` stands before the position, at which the reader has begun: no other
   * one will come. [fanout.late]
   */
  get isAfterEnd(): boolean {
    return Atomics.load(this.control, ENDED) === (this.own | layout.FANOUT_JOINED);
  }

  /** Moves the position forward by `extent` bytes. */
  advance(extent: number): void {
    const before = this.own;
    this.own = (before + extent) | 0;
    if ((this.own ^ before) < 0) this.#high++;
  }

  /** Looks for newly published frames. [fanout.tail] */
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
      if (!this.#moveToFloor()) return SPOILT;
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
   * Returns whether a copy that was made from the reader's position since the last look is whole.
   * If it is not, moves the position to the floor. [fanout.validate]
   */
  settleCopy(): number {
    // This sequentially consistent store keeps the copy before the loads that follow.
    Atomics.store(this.control, this.record + HEAD, this.head);
    if (!this.isLossy) return SOUND;
    const found = this.#loadFloor();
    if (found !== SOUND || !this.#isPassed()) return found;
    this.#moveToFloor();
    return SPOILT;
  }

  /** Moves the position to the floor, which has passed it. Returns false if no tries are left. */
  #moveToFloor(): boolean {
    this.own = this.tail = this.#floor;
    this.#high = this.#floorHigh;
    this.isOverrun = this.isStale = true;
    return --this.#tries > 0;
  }

  /** Whether the floor that was loaded last is beyond the position. */
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
        // The writer stores the floor first, so that the era may be too low by 1.
        this.#floorHigh = era + ((era & 1) === floor >>> 31 ? 0 : 1);
        return (floor & MISALIGNED) === 0 ? SOUND : BROKEN;
      }
      this.#era = era;
      if (--this.#tries <= 0) return SPOILT;
    }
  }

  /** Whether there may be frames that are not read yet. */
  get hasMore(): boolean {
    return this.own !== this.tail || Atomics.load(this.control, TAIL) !== this.tail;
  }
}
