/**
 * Tells when the messages of a reader were taken and how long each was served, with few readings of
 * the clock. See `spec/meter.md`.
 *
 * One reading takes 45 to 90 ns (measured: Node 24, Deno 2.9), up to a tenth of the time to read
 * 500 bytes of JSON. So messages that are taken one directly after another, and served within
 * microseconds, share one reading: they form a *lap*. The times of a lap of one message are exact.
 *
 * @module
 */

import { microseconds, waitedSince } from "./clock.ts";
import type { Tally } from "./tally.ts";

/** The most messages of a lap, and the microseconds that they should take together. */
const LAP_COUNT = 16;
const LAP_US = 20;
/** If a lap took so many times as long as the laps before, one of its messages was slow. */
const SLOW = 4;

/** Records the times of the values that are handed out. */
export class Laps {
  readonly #waiting: Tally;
  readonly #service: Tally;
  /** The `time` of each value of this lap; 0 if its waiting time is unknown or already recorded. */
  readonly #times = new Uint32Array(LAP_COUNT);
  #count = 0;
  #most = 1;
  #begin = 0;
  /** Microseconds per value in the last lap. */
  #usual = 0;

  /** Records into these two tallies. */
  constructor(waiting: Tally, service: Tally) {
    this.#waiting = waiting;
    this.#service = service;
  }

  /**
   * Called when the application asks for the next value, and so has finished with the one before.
   */
  noteAsked(): void {
    if (this.#count === 0) this.#begin = microseconds();
    else if (this.#count === this.#most) this.endLap();
  }

  /** Called when the application gets a value with this `time`. */
  noteHandedOut(time: number): void {
    this.#times[this.#count++] = time;
  }

  /** Called when the application has finished with all values that it got, and may wait now. */
  endLap(): void {
    const count = this.#count;
    if (count === 0) return;
    const now = microseconds();
    const taken = now - this.#begin;
    const each = this.#spread(now);
    this.#service.record(Math.max(0, now - this.#begin), 1);
    // After a slow value, as after a wait, the next laps have one message, and are exact.
    const most = taken > SLOW * LAP_US ? 1 : Math.min(LAP_COUNT, 2 * count);
    this.#most = each * most > LAP_US ? Math.max(1, Math.floor(LAP_US / each)) : most;
    this.#usual = each;
    this.#begin = now; // the begin of the next lap, if one follows at once
    this.#count = 0;
  }

  /** Records what is known up to now, in the middle of a lap. */
  settle(): void {
    if (this.#count > 0) this.#spread(microseconds());
  }

  /**
   * Records the waiting times of all values of the lap, and the service times of all but the last.
   */
  #spread(now: number): number {
    const count = this.#count;
    const taken = Math.max(0, now - this.#begin);
    // Which value was slow is unknown, but makes no difference to a distribution.
    const isUneven = count > 1 && this.#usual > 0 && taken > SLOW * count * this.#usual;
    const each = isUneven ? this.#usual : taken / count;
    if (count > 1) this.#service.record(each, count - 1);
    for (let index = 0; index < count; index++) {
      const time = this.#times[index]!;
      const at = this.#begin + index * each;
      if (time !== 0) this.#waiting.record(waitedSince(time, at), 1); // [meter.waiting]
    }
    this.#begin += (count - 1) * each;
    this.#times[0] = 0;
    this.#count = 1;
    return each;
  }
}
