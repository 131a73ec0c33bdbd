/**
 * Whether an endpoint spins before it sleeps, and for how long: a record of what came of the waits
 * before. It is the same for calls that block and for event loops. See `spec/wait.md`, "Spinning".
 *
 * @module
 */

import { layout } from "../memory/layout.ts";
import { requireAmount } from "../memory/plan.ts";
import { now } from "../memory/clock.ts";
import { type Mechanism, pause, processorCount } from "./mechanism.ts";

/** What a spin looks at. */
export interface Sight {
  /** Whether something that is asked for may be there. Cheap. */
  sees(asks: number): boolean;
  /** Whether a state ends the wait. Called as seldom as the clock is read. */
  hasChanged(): boolean;
}

/** Looks before the first glance at the clock, and between two later ones once that is compiled. */
const LOOKS = 32;
const LOOKS_LATER = 128;
/** Spins in a row that found nothing before an endpoint stops spinning. */
const MISSES_MAX = 4;
/**
 * Waits that then sleep at once before a spin is tried again: of a fresh thread, whose code is not
 * compiled yet; at first; and at most, as each spin in vain doubles them.
 */
const PAUSE_FRESH = 24;
const PAUSE = 8;
const PAUSE_MAX = 127;
/** Milliseconds of the longest spin. Two endpoints that both sleep take 0.1 to 0.3 to answer. */
const LONG_MS = 0.4;

/** The record of one endpoint. */
export class Spinner {
  /** Whether this thread may block. */
  readonly blocks: boolean;
  readonly #us: number | undefined;
  /** Milliseconds of a spin, -1 until it is known: Node takes 0.3 ms to count the processors. */
  #budget = -1;
  #misses: number;
  #skips = 0;
  #pause = PAUSE_FRESH;
  /** Milliseconds that the last sleep took, 0 if a spin could not have lasted so long. */
  #long = 0;

  /** `us` is the option `spin`: who gives it has the endpoint spin from its first wait on. */
  constructor(us: number | undefined, { blocks }: Mechanism) {
    requireAmount("spin", us ?? 0);
    this.#us = us;
    this.blocks = blocks;
    this.#misses = us === undefined ? MISSES_MAX : 0;
  }

  /** Milliseconds of a spin: none with one processor, as the peer then waits for this very one. */
  get budget(): number {
    if (this.#budget < 0) {
      this.#budget = (this.#us ?? (processorCount() > 1 ? layout.WAIT_SPIN_US : 0)) / 1000;
    }
    return this.#budget;
  }

  /** Whether the last spins have found something. */
  get pays(): boolean {
    return this.#misses < MISSES_MAX && this.budget > 0;
  }

  /** A look has found what was not there at the first one. */
  hit(): void {
    this.#misses = 0;
    this.#pause = PAUSE;
  }

  /** Whether a spin is due; counts a wait that sleeps at once. [wait.spin_record] */
  isDue(): boolean {
    const isDue = this.#misses < MISSES_MAX || this.#skips >= PAUSE_MAX ||
      this.#skips >= this.#pause && this.#long > 0;
    if (isDue) return this.budget > 0;
    this.#skips++;
    return false;
  }

  /** Whether it is of use to know how long the next sleep takes. */
  get learns(): boolean {
    return this.#misses > 0 && this.#budget !== 0 &&
      (this.#budget > 0 || this.#skips >= this.#pause - 1);
  }

  /** A sleep took so many milliseconds: the spin after it has to last as long. */
  slept(ms: number): void {
    this.#long = ms <= 2 * LONG_MS ? Math.min(ms, LONG_MS) : 0;
  }

  /** Looks until something is there, for at most `ms`, or longer after a miss. Whether it is. */
  spin(sight: Sight, asks: number, ms: number, deadline: number): boolean {
    if (sight.sees(asks) || sight.hasChanged()) return true; // no spin has found it
    this.#skips = 0;
    const spent = look(sight, asks, this.#misses === 0 ? ms : Math.max(ms, this.#long), deadline);
    if (spent >= 0 && spent < ms) this.hit();
    else {
      // One that comes late is worth a few more tries.
      this.#misses = spent >= 0 ? Math.min(this.#misses, MISSES_MAX / 2) : this.#misses + 1;
      this.#pause = Math.min(2 * this.#pause, PAUSE_MAX);
    }
    return spent >= 0;
  }
}

/** Looks for a while. Milliseconds until something was there, or -1. */
function look(sight: Sight, asks: number, most: number, deadline: number): number {
  let start = -1;
  let spent = 0;
  for (let count = LOOKS;;) {
    for (let i = 0; i < count; i++) {
      if (sight.sees(asks)) return spent;
      pause();
    }
    if (sight.hasChanged()) return spent;
    const time = now();
    if (start < 0) start = time;
    else if (time - start < 0.01) count = LOOKS_LATER; // it is compiled
    spent = time - start;
    if (spent >= most || time >= deadline) return -1;
  }
}
