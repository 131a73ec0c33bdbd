/**
 * When the messages of a reader came, and how long each was served, by few looks at the clock. See
 * `spec/meter.md`.
 *
 * A look takes 45 to 90 ns (measured: Node 24, Deno 2.9), up to a tenth of what it takes to read
 * 500 bytes of JSON. So those that follow one another at once, and are served within microseconds,
 * have one look for several: a *lap*. Of a lap of one message all is exact.
 *
 * @module
 */

import { microseconds, waitedSince } from "./meter_clock.ts";
import type { Tally } from "./meter_tally.ts";

/** Most messages in a lap, and microseconds that they are to take together. */
const LAP_COUNT = 16;
const LAP_US = 20;
/** A lap that took so many times as long as those before it had one message that did. */
const SLOW = 4;

/** Times what is handed out. */
export class Laps {
  readonly #waiting: Tally;
  readonly #service: Tally;
  /** `time` of the values of this lap; 0 of those whose waiting is not, or no more, to be told. */
  readonly #times = new Uint32Array(LAP_COUNT);
  #count = 0;
  #most = 1;
  #begin = 0;
  /** Microseconds that one took in the last lap. */
  #usual = 0;

  /** Makes what times into these tallies. */
  constructor(waiting: Tally, service: Tally) {
    this.#waiting = waiting;
    this.#service = service;
  }

  /** Somebody asks for the next value, and so is done with the one before. */
  come(): void {
    if (this.#count === 0) this.#begin = microseconds();
    else if (this.#count === this.#most) this.end();
  }

  /** Gets it. */
  get(time: number): void {
    this.#times[this.#count++] = time;
  }

  /** The application is done with all that it has got, and may wait now. */
  end(): void {
    const count = this.#count;
    if (count === 0) return;
    const now = microseconds();
    const taken = now - this.#begin;
    const each = this.#spread(now);
    this.#service.record(Math.max(0, now - this.#begin), 1);
    // Behind a slow one, as behind a wait, exact at first.
    const most = taken > SLOW * LAP_US ? 1 : Math.min(LAP_COUNT, 2 * count);
    this.#most = each * most > LAP_US ? Math.max(1, Math.floor(LAP_US / each)) : most;
    this.#usual = each;
    this.#begin = now; // of the next lap, if one follows at once
    this.#count = 0;
  }

  /** Tells what is known up to now, in the middle of a lap. */
  settle(): void {
    if (this.#count > 0) this.#spread(microseconds());
  }

  /** Tells of all values of the lap that they came, and of all but the last that they are done. */
  #spread(now: number): number {
    const count = this.#count;
    const taken = Math.max(0, now - this.#begin);
    // Which of them was slow nobody knows, and a distribution does not ask.
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
