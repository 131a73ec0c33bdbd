/**
 * How an endpoint looks again and again before it sleeps, and learns whether that pays. See
 * `spec/wait.md`.
 *
 * @module
 */

import { WAIT_NO_BLOCK_LOOKS, WAIT_SPIN_US } from "../memory/layout.ts";
import { now } from "../memory/segment.ts";
import { found, pause, processorCount } from "./wait.ts";

/** What a spin looks at. */
export interface Sight {
  /** Whether what the caller waits for may be there. Cheap. */
  look(): boolean;
  /** Whether a state ends the wait. Called as seldom as the clock is read. */
  lookAround(): boolean;
}

/** Looks before the first glance at the clock, which costs as much as several looks. */
const LOOKS = 32;
/**
 * Looks of a call that must not block: in its glance, and in the first of its waits. Each further
 * wait, of so many, looks once, and all of them stand between two looks of the call itself. A
 * page's clock may be too coarse to tell. [wait.no_block]
 */
const NO_BLOCK_LOOKS = WAIT_NO_BLOCK_LOOKS / 4;
const NO_BLOCK_WAITS = WAIT_NO_BLOCK_LOOKS / 8;
/**
 * Looks between two glances, some 5 µs: each makes a number. Code that is not compiled yet takes
 * thirty times as long, and goes on with the few that it has begun with.
 */
const LOOKS_LATER = 128;
/** Milliseconds that the first looks take no longer than where they are compiled. */
const LOOKS_MS = 0.01;
/**
 * Looks of a glance, some 5 µs, and how many of them take a millisecond of the budget. They do
 * without the pause that gives the processor to a sibling: it costs three looks (29 against 9 ns,
 * V8 14). A peer that is awake answers bytes within a microsecond or two, and JSON of 118 bytes
 * within four; what comes behind the glance is seen late, through looks at the states and the
 * clock. With 32 looks, an echo of bytes between processors that are far from one another took
 * 2.5 µs in place of 1.6 (measured: Node 24); with 128, one of JSON took 1.03 to 1.07 times as long
 * (Deno 2.9, Node 24).
 */
const GLANCES = 512;
const GLANCES_A_MS = 100_000;
/**
 * Spins in a row that find nothing before an endpoint stops spinning, and how many waits it then
 * sleeps at once before it tries again. [wait.spin_record] Sleeps bring the spinning back sooner
 * where it pays. With 8, rounds 11 to 100 of fresh threads took 1.2 times as long, beside other
 * programs (66 pairs: Deno 2.9, Node 24).
 */
const MISSES_MAX = 4;
const SKIPS_MAX = 127;
/**
 * Budgets that a sleep lasts at least which is mostly two wakes across processors: of two threads
 * on one processor, each waits for the other's work alone. A fresh end tries a spin behind such.
 */
const ACROSS = 2;
/**
 * Misses that are left behind a spin that found something later than in one budget. Where both
 * threads share one processor, it did so because the kernel has taken that from it: the next spins
 * are in vain, and each costs the peer its processor for as long as it lasts.
 */
const MISSES_LATE = MISSES_MAX - 2;
/**
 * Waits that an endpoint sleeps at once before its first spin; four times as many before the next,
 * and so on, until a spin has found something. Of two threads that have just started, both run code
 * that is not compiled yet, beside the compiler. Where other programs keep the second processor
 * busy, a spin in vain delays the peer by a turn of the kernel, 1 to 3 ms.
 */
const SKIPS_FRESH = 8;
const SKIPS_GROWTH = 4;
/**
 * After a miss, budgets to spin: a peer that sleeps takes longer to answer than one budget, and
 * two that give up before the other's wake arrives would never find one another awake.
 */
const PATIENCE = 2;
/**
 * Budgets that a sleep lasts at most for it to count as short: an echo between two that sleep, each
 * of which has to be woken, here took 3 to 10 of them.
 */
const SHORT = 20;
/**
 * Short sleeps, in spins, before a spin is tried again: those who sleep only because both sleep
 * find back soon, and the tries take a sixteenth of the time. [wait.spin_record]
 */
const SLEPT_MIN = 16;

/** The spinning of the blocking calls of one endpoint, and its record. */
export class Spinner {
  /** Whether this thread may block. */
  readonly blocks: boolean;
  readonly #us: number | undefined;
  /**
   * Milliseconds to spin, found out when a spin is due first: Node takes 0.3 to 1 ms to tell how
   * many processors there are.
   */
  #known: number | undefined;
  /** The record: misses in a row, and waits without a spin since the last one. */
  #misses: number;
  #skips = 0;
  /** Waits that it sleeps at once before it tries a spin, once it has stopped spinning. */
  #skipsMost = SKIPS_FRESH;
  /** Milliseconds to spin after a miss, and those of short sleeps since the last spin. */
  #long = Infinity;
  #slept = 0;
  /** Milliseconds of the last sleep. */
  #last = 0;

  /**
   * `spin` is in microseconds, and `blocks` says whether this thread may block. Who says how long
   * to spin has it so from the first wait on.
   */
  constructor(spin: number | undefined, blocks: boolean, isFresh: boolean = spin === undefined) {
    this.#us = spin;
    this.blocks = blocks;
    this.#misses = blocks && isFresh ? MISSES_MAX : 0;
  }

  get #budget(): number {
    if (this.#known === undefined) {
      this.#known = budgetOf(this.#us);
      this.#long = PATIENCE * this.#known;
    }
    return this.#known;
  }

  /** How often a call that found nothing may look before it turns to its deadline; 0 for never. */
  get glances(): number {
    if (this.#misses >= MISSES_MAX) return 0;
    const most = this.blocks ? GLANCES : NO_BLOCK_LOOKS;
    return Math.min(most, Math.ceil(this.#budget * GLANCES_A_MS));
  }

  /** A glance has found something that was not there at its first look. */
  hit(): void {
    this.#misses = 0;
  }

  /** Whether a wait begins with a dip. */
  get dips(): boolean {
    return this.#misses < MISSES_MAX && this.blocks && this.#budget > 0;
  }

  /**
   * Looks a few times, before a first glance at the clock, where a spin would look at all. Each
   * such glance makes a number or two, and most waits within a stream do not last so long.
   */
  dip(sight: Sight): boolean {
    // [wait.spin_record] No spin has found what was there before.
    if (sight.look()) return true;
    const isThere = looks(sight, LOOKS);
    if (isThere) this.#misses = 0;
    return isThere;
  }

  /**
   * Has a wait sleep at once, and counts it, where by what came of spins before none is due: then
   * it returns true. Who must not block never does. [wait.spin_record]
   */
  skip(): boolean {
    if (!this.blocks) return false;
    // In one function, as what every wait of a fresh thread runs: see `wait` of the endpoint.
    const skips = this.#skips;
    const isDue = this.#misses < MISSES_MAX ||
      skips >= SKIPS_MAX || this.#slept >= SLEPT_MIN * this.#long ||
      (skips >= this.#skipsMost && this.#last >= ACROSS * this.#budget);
    if (isDue) return this.#budget === 0;
    this.#skips++;
    return true;
  }

  /**
   * Looks until there is something to do, and returns whether there is. For how long follows from
   * what came of it before. `waits` are those of the same call before this one.
   */
  spin(sight: Sight, deadline: number, waits = 0): boolean {
    const budget = this.#budget;
    if (!this.blocks || budget === 0) {
      if (waits >= NO_BLOCK_WAITS) return false;
      const count = budget === 0 || waits > 0 ? 1 : NO_BLOCK_LOOKS;
      return looks(sight, count) || sight.lookAround();
    }
    if (found(sight)) return true; // [wait.spin_record] No spin has found it.
    this.#skips = this.#slept = 0;
    const spent = spinFor(this.#misses === 0 ? budget : this.#long, sight, deadline);
    const isFound = spent >= 0;
    if (!isFound) this.#misses++;
    else this.#misses = spent < budget ? 0 : Math.min(this.#misses, MISSES_LATE);
    this.#skipsMost = isFound ? SKIPS_MAX : Math.min(SKIPS_GROWTH * this.#skipsMost, SKIPS_MAX);
    return isFound;
  }

  /** Whether it is of use to tell how long a sleep has lasted. */
  get learns(): boolean {
    if (this.#misses === 0 || this.#known === 0) return false; // it never spins
    return this.#known !== undefined || this.#skips >= this.#skipsMost;
  }

  /**
   * Behind a spin in vain, or none: how long the sleep lasted, and whether the peer had been rung.
   * Then it had to be woken first, as we now, and a spin has to last as long as its wake. Where
   * sleeps are shorter than the budget, the peer waits for this very processor.
   */
  slept(ms: number, rang: boolean): void {
    this.#last = ms;
    const budget = this.#known;
    if (budget === undefined) return; // before the first spin, which is due soon
    const patience = PATIENCE * budget;
    const isShort = ms <= (rang ? SHORT * budget : patience);
    this.#long = rang && isShort && ms > patience ? ms : patience;
    if (isShort && ms >= budget) this.#slept += ms;
  }
}

/** Milliseconds of a spin, of which an option may have said how many microseconds. */
export function budgetOf(us: number | undefined): number {
  return (us ?? (processorCount() > 1 ? WAIT_SPIN_US : 0)) / 1000;
}

/** Throws for a time to spin or to nap that is none. */
export function requireTime(name: string, time: number | undefined): void {
  if (time === undefined || time >= 0) return;
  throw new RangeError(`${name} must be 0 or more: ${time}`);
}

/** Looks so many times, until there is something. */
function looks(sight: Sight, count: number): boolean {
  for (let i = 0; i < count; i++) {
    if (sight.look()) return true;
    pause();
  }
  return false;
}

/** Milliseconds until something was found, or -1 if the time was over before. */
export function spinFor(budget: number, sight: Sight, deadline: number): number {
  let start = -1;
  let spent = 0;
  for (let count = LOOKS;;) {
    if (looks(sight, count) || sight.lookAround()) return spent;
    const time = now();
    if (start < 0) start = time;
    else if (spent === 0 && time - start < LOOKS_MS) count = LOOKS_LATER;
    spent = time - start;
    if (spent >= budget || time >= deadline) return -1;
  }
}
