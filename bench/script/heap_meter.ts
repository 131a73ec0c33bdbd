/**
 * Counts what a thread allocates: its heap grows by that, until garbage is collected. In a nursery
 * of 64 MiB, with which the driver for `memory` is started, that is seldom, and a look at which the
 * heap has shrunk counts nothing.
 *
 * @module
 */
import { collectGarbage, type Place } from "./place.ts";

const LOOK_EVERY = 5_000;

/** The heap of one thread. */
export class HeapMeter {
  readonly #place: Place;
  #allocated = 0;
  #turns = 0;
  #before = 0;

  readonly #counts: () => boolean;

  /** Counts nothing while `counts` returns false. */
  constructor(place: Place, counts: () => boolean) {
    this.#place = place;
    this.#counts = counts;
    this.begin();
  }

  /** Forgets what was counted. */
  begin(): void {
    collectGarbage();
    this.#allocated = 0;
    this.#before = this.#place.heapUsed() ?? 0;
  }

  /** To be called after each message. */
  turn(): void {
    if (++this.#turns % LOOK_EVERY === 0) this.#look();
  }

  /** Bytes since the beginning. */
  get allocated(): number {
    this.#look();
    return this.#allocated;
  }

  #look(): void {
    const now = this.#place.heapUsed() ?? 0;
    if (this.#counts()) this.#allocated += Math.max(0, now - this.#before);
    this.#before = now;
  }
}
