/**
 * How an endpoint looks again and again before it sleeps, and learns whether that pays. See
 * `spec/wait.md`.
 *
 * @module
 */

import { WAIT_SPIN_US } from "./layout.ts";
import { pause, processorCount } from "./wait.ts";

/** What a spin looks at. */
export interface Sight {
  /** Whether what the caller waits for may be there. Cheap. */
  look(): boolean;
  /** Whether something else ends the wait. Called as seldom as the clock is read. */
  lookAround(): boolean;
}

/**
 * Looks between two glances at the clock, which costs as much as several looks. Also all that a
 * thread does that must not block: they take about 2 µs, below `WAIT_NO_BLOCK_US`, and a page's
 * clock may be too coarse to tell. [wait.no_block]
 */
const LOOKS = 32;
/**
 * Looks of a glance, without the pause that gives the processor to a sibling: it costs three looks
 * (29 against 9 ns, V8 14), and a peer that is awake answers within a microsecond.
 */
const GLANCES = 32;
/**
 * Spins in a row that find nothing before an endpoint stops spinning, and how many waits it then
 * sleeps at once before it tries again. [wait.spin_record]
 */
const MISSES_MAX = 8;
const SKIPS_MAX = 127;
/**
 * After a miss, budgets to spin: a peer that sleeps takes longer to answer than one budget, and
 * two that give up before the other's wake arrives would never find one another awake.
 */
const PATIENCE = 4;

/**
 * Most microseconds that an event loop spins. A worker that spins answers 118 bytes of JSON within
 * 10, where a sleep and its wake by the loop take 50 to 100 (measured: Deno 2.9, Node 24).
 */
const LOOP_SPIN_US = 20;

/** The spinning of one endpoint, and its record. */
export class Spinner {
  readonly #budget: number;
  readonly #blocks: boolean;
  readonly #patience: number;
  /** The record: misses in a row, and waits without a spin since the last one. */
  #misses = 0;
  #skips = 0;

  /** `spin` is in microseconds; `blocks` says whether this thread may block. */
  constructor(spin: number | undefined, blocks: boolean, patience: number = PATIENCE) {
    requireSpin(spin);
    this.#budget = (spin ?? defaultSpin()) / 1000;
    this.#blocks = blocks;
    this.#patience = patience;
  }

  /**
   * The spinner of an event loop, for answers that come sooner than the loop turns: less than a
   * blocking call spins, since everything else waits meanwhile. It is in no synchronous call, so
   * that a thread that must not block may do it too. [wait.no_block]
   */
  static ofLoop(spin: number | undefined): Spinner {
    return new Spinner(Math.min(spin ?? defaultSpin(), LOOP_SPIN_US), true, 1);
  }

  /** How often a call that found nothing may look before it turns to its deadline; 0 for never. */
  get glances(): number {
    return this.#budget === 0 || this.#misses >= MISSES_MAX ? 0 : GLANCES;
  }

  /** A glance has found something. */
  hit(): void {
    this.#misses = 0;
  }

  /**
   * Looks until there is something to do, and returns whether there is. Whether it looks more than
   * once, and for how long, follows from what came of it before. [wait.spin_record]
   */
  spin(sight: Sight, deadline: number): boolean {
    const budget = this.#budget;
    if (budget === 0) return sight.look() || sight.lookAround();
    if (!this.#blocks) return spinFor(0, sight, deadline) >= 0;
    if (this.#misses >= MISSES_MAX && this.#skips < SKIPS_MAX) {
      this.#skips++;
      return sight.look() || sight.lookAround();
    }
    this.#skips = 0;
    const spent = spinFor(this.#misses === 0 ? budget : this.#patience * budget, sight, deadline);
    if (spent < 0) this.#misses++;
    else this.#misses = spent < budget ? 0 : 1;
    return spent >= 0;
  }
}

function defaultSpin(): number {
  return processorCount() > 1 ? WAIT_SPIN_US : 0;
}

/** Throws for a budget that is none. */
export function requireSpin(spin: number | undefined): void {
  if (spin === undefined || spin >= 0) return;
  throw new RangeError(`spin must be microseconds, 0 or more: ${spin}`);
}

/** Milliseconds until something was found, or -1 if the time was over before. */
function spinFor(budget: number, sight: Sight, deadline: number): number {
  let start = -1;
  let spent = 0;
  for (;;) {
    for (let i = 0; i < LOOKS; i++) {
      if (sight.look()) return spent;
      pause();
    }
    if (sight.lookAround()) return spent;
    const now = performance.now();
    if (start < 0) start = now;
    spent = now - start;
    if (spent >= budget || now >= deadline) return -1;
  }
}
