/**
 * Whether an endpoint spins before it sleeps, and for how long: a record of what came of the waits
 * before. It is the same for calls that block and for event loops. See `spec/wait.md`, "Spinning".
 *
 * @module
 */

import { layout } from "../memory/layout.ts";
import { requireAmount } from "../memory/plan.ts";
import { now } from "../memory/clock.ts";
import { type Mechanism, processorCount } from "./mechanism.ts";

/** Some runtimes have what tells the processor that this is a spin loop. */
type Pausing = { pause?(): void };

/** What a spin looks at. */
export interface Sight {
  /** Whether something that is asked for may be there. Cheap. */
  sees(asks: number): boolean;
  /** Whether a state ends the wait. Called as seldom as the clock is read. */
  hasChanged(): boolean;
}

/** Measured: what costs the least over all. An `enum`, as bundlers put its members in place. */
const enum Tuned {
  /**
   * Looks before the first glance at the clock, and between two later ones, once it is compiled.
   */
  LOOKS = 32,
  LOOKS_LATER = 128,
  /** Spins in a row that found nothing before an endpoint stops spinning. */
  MISSES_MAX = 8,
  /**
   * Waits that then sleep at once before a spin is tried again, as in a fresh thread, whose code is
   * not compiled yet; and at most, as each spin in vain doubles them.
   */
  PAUSE = 8,
  PAUSE_MAX = 127,
  /** Milliseconds of the longest spin. Two endpoints that both sleep take 0.1 to 0.3 to answer. */
  LONG_MS = 0.4,
  /** Milliseconds that an event loop spins for an answer. */
  LOOP_MS = 0.02,
}

/** The record of one endpoint. */
export class Spinner {
  /** Whether this thread may block. */
  declare readonly blocks: boolean;
  readonly #us: number | undefined;
  /** Milliseconds of a spin, -1 until it is known: Node takes 0.3 ms to count the processors. */
  #budget = -1;
  #misses: number;
  #skips = 0;
  #pause = Tuned.PAUSE as number;
  /** Milliseconds that the last sleep took, 0 if a spin could not have lasted so long. */
  #long = 0;

  /** `us` is the option `spin`: who gives it has the endpoint spin from its first wait on. */
  constructor(us: number | undefined, { blocks }: Mechanism) {
    requireAmount("spin", us ?? 0);
    this.#us = us;
    this.blocks = blocks;
    this.#misses = us === undefined ? Tuned.MISSES_MAX : 0;
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
    return this.#misses < Tuned.MISSES_MAX && this.budget > 0;
  }

  /** A look has found what was not there at the first one. */
  hit(): void {
    this.#misses = 0;
    this.#pause = Tuned.PAUSE;
  }

  /** Whether a spin is due; counts a wait that sleeps at once. [wait.spin_record] */
  isDue(): boolean {
    const isDue = this.#misses < Tuned.MISSES_MAX || this.#skips >= Tuned.PAUSE_MAX ||
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
    this.#long = ms <= 2 * Tuned.LONG_MS ? Math.min(ms, Tuned.LONG_MS) : 0;
  }

  /** `spin` of an event loop, for an answer, if one is due. */
  spinForAnswer(sight: Sight, asks: number): boolean {
    return this.isDue() && this.spin(sight, asks, Math.min(this.budget, Tuned.LOOP_MS), Infinity);
  }

  /** Looks until something is there, for at most `ms`, or longer after a miss. Whether it is. */
  spin(sight: Sight, asks: number, ms: number, deadline: number): boolean {
    if (sight.sees(asks) || sight.hasChanged()) return true; // no spin has found it
    this.#skips = 0;
    const most = this.#misses ? Math.max(ms, this.#long) : ms;
    let count: number = Tuned.LOOKS;
    let start = -1;
    let spent = 0;
    let isFound: boolean;
    for (;;) {
      for (let i = 0; !(isFound = sight.sees(asks)) && i < count; i++) {
        (Atomics as Pausing).pause?.();
      }
      if ((isFound ||= sight.hasChanged())) break;
      const time = now();
      if (start < 0) start = time;
      else if (time - start < 0.01) count = Tuned.LOOKS_LATER; // it is compiled
      spent = time - start;
      if (spent >= most || time >= deadline) break;
    }
    if (isFound && spent < ms) this.hit();
    else {
      // One that comes late is worth a few more tries.
      this.#misses = isFound ? Math.min(this.#misses, Tuned.MISSES_MAX - 2) : this.#misses + 1;
      this.#pause = Math.min(2 * this.#pause, Tuned.PAUSE_MAX);
    }
    return isFound;
  }
}
