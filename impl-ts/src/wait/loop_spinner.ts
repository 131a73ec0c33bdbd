/**
 * How an event loop looks again and again for an answer before it sleeps, or naps in place of a
 * turn, and learns whether that pays. See `spec/wait.md`, and the model `nap` in `spec/models`.
 *
 * @module
 */

import { now } from "../memory/segment.ts";
import { found, type Mechanism, processorCount, type Waitable } from "./wait.ts";
import { budgetOf, type Sight, spinFor } from "./spinner.ts";

/**
 * Milliseconds that an event loop spins, at most. A worker that spins answers 118 bytes of JSON
 * within 10 µs, where a sleep and its wake by the loop take 50 to 100 (measured: Deno 2.9, Node
 * 24).
 */
const LOOP_SPIN_MS = 0.02;
/**
 * Milliseconds of a long spin of an event loop, at most: until a peer answers that has to be woken
 * first. It is tried behind sleeps up to twice as long, in which both had to be woken.
 */
const LOOP_LONG_MS = 0.4;
/** Spins in a row that find nothing before a loop stops spinning. [wait.spin_record] */
const MISSES_MAX = 8;
/**
 * Once spins have found nothing, one wait of so many may be another try, and of twice as many
 * behind each try in vain, until an answer comes within the usual time. Where other programs keep
 * the second processor busy, the peer waits for this one, and every try is in vain: with one in
 * eight, they took a third of a call between two loops (measured: Node 24, Deno 2.9).
 */
const TRY_WAITS = 8;
const TRY_WAITS_MAX = 128;

/**
 * Milliseconds of a nap where no option says how long. Where the answerer waits for this processor,
 * it cannot run before this thread sleeps, and a nap costs less than a turn of the loop with its
 * wake: of two event loops that answer one another, 12 µs a round trip in place of 19 in Deno and
 * 35 in Node. With less than a tick of the system's clock, a timer is set for each nap, which made
 * 15 µs 26 (measured without any library: Deno 2.9, Node 24).
 */
const NAP_MS = 4;
/**
 * Answers within so long let it nap for the next ones: nothing else happens meanwhile. On one
 * processor, nothing else could before the answerer has had it. With more, an answer that comes so
 * soon, and not within a spin, is mostly that of one who waits for this processor all the same, as
 * other programs keep the second one busy.
 */
const SOON_ALONE_MS = 1;
const SOON_MS = 0.1;
/** So many of them in a row. */
const RUN = 2;
/**
 * Naps in vain that nothing has to make up for, and how many answers that came soon make up for one
 * more: each has spared some 30 µs, where that nap took 4 ms from whatever else the loop has to do.
 * Twice as many for each further one, until a nap finds something: an answerer that needs this very
 * loop, as an end on the same thread does, never answers in a nap, and soon behind it.
 */
const FREE = 2;
const WORTH = 128;
const WORTH_MAX = 1 << 20;

/** What an event loop spins and naps for: an endpoint. */
export interface Loop {
  /** Microseconds and milliseconds, of the options. */
  readonly spin: number | undefined;
  readonly nap: number | undefined;
  readonly mechanism: Pick<Mechanism, "blocks">;
  readonly watch: { readonly isRung: boolean };
  loopSpinner: LoopSpinner | undefined;
  noteRings(): boolean;
  prepare(what: Waitable): Waitable;
  doze(what: Waitable, ms: number): boolean;
}

/** That of an endpoint, made when its loop waits for an answer first. */
export function loopSpinnerOf(endpoint: Loop): LoopSpinner {
  return endpoint.loopSpinner ??= new LoopSpinner(endpoint);
}

/**
 * How an event loop waits for answers that come sooner than it turns: it spins, for less than a
 * blocking call does, since everything else waits meanwhile. It is in no synchronous call, so that
 * a thread that must not block may do it too. [wait.no_block] Or it naps: see the option `nap`.
 *
 * Two loops that sleep would never find one another awake, since each gives up before the other,
 * which has to be woken, has answered. So one wait of several lasts as long as that may take; the
 * peer, which then has nobody to ring, spins as well, and from then on answers come soon: within
 * 10 to 25 µs, where two sleeps and wakes took 200 to 500 (measured: Deno 2.9, Node 24).
 */
export class LoopSpinner {
  readonly #endpoint: Loop;
  /** Milliseconds of a spin, found out when one is due: see `Spinner`. */
  #known: number | undefined;
  /** Those of a nap at most. */
  readonly #nap: number;
  /**
   * Misses in a row, long spins included. A fresh loop sees how long its sleeps last before it
   * spins, unless its peer is awake.
   */
  #misses = MISSES_MAX;
  /** Whether the peer had to be rung before the last wait. */
  #rang = true;
  /** Milliseconds of a long spin, 0 for none. */
  #long = 0;
  /** Spins in spite of misses: long ones, and those for a peer that is awake once more. */
  readonly #longTries = new Tries(TRY_WAITS);
  readonly #awakeTries = new Tries(0);
  /** Milliseconds within which an answer comes soon, without an option found out like `#known`. */
  #soon: number | undefined;
  /** Answers in a row that came soon, as far as that matters. */
  #run: number;
  /** Answers that still have to come soon to make up for the naps in vain. */
  #debt = 0;
  /** How many more the next one in vain takes. */
  #worth = WORTH;

  /** Makes that of an endpoint. With an option, naps begin at once, if this thread may block. */
  constructor(endpoint: Loop) {
    const { nap } = endpoint;
    this.#endpoint = endpoint;
    this.#nap = nap ?? NAP_MS;
    this.#soon = nap;
    this.#run = nap === undefined ? 0 : RUN;
  }

  get #budget(): number {
    return this.#known ??= Math.min(budgetOf(this.#endpoint.spin), LOOP_SPIN_MS);
  }

  /** Whether it is of use to tell how long the event loop slept for an answer. */
  get learns(): boolean {
    return this.#known !== 0 || this.#nap !== 0;
  }

  /**
   * Looks for answers for a short while, as far as that has paid before. `sight` may show more than
   * the endpoint has.
   */
  spin(sight: Sight): boolean {
    const rang = this.#endpoint.noteRings(); // whether the peer has to be woken first
    const mayBeLong = this.#longTries.count() && this.#long > 0;
    const isAwake = this.#awakeTries.count() && this.#rang && !rang; // the peer, once more
    this.#rang = rang;
    // [wait.spin_record] Without a count of skips: a short sleep leads to a long spin.
    const isDue = isAwake || this.#misses < MISSES_MAX;
    const budget = mayBeLong || isDue ? this.#budget : 0;
    const isLong = mayBeLong && this.#long > budget;
    if (found(sight)) return true; // no spin has found it
    if (budget === 0 || !(isLong || isDue)) return false;
    const spent = spinFor(isLong ? this.#long : budget, sight, Infinity);
    if (spent >= 0 && spent < budget) {
      this.#misses = 0;
      this.#longTries.reset();
      this.#awakeTries.reset();
    } else {
      this.#misses++;
      if (isLong) this.#longTries.fail();
      else if (isAwake) this.#awakeTries.fail();
      // It came late, from a peer that had to be woken, and is awake now.
      if (spent >= 0) this.#awakeTries.reset();
    }
    return spent >= 0;
  }

  /** Whether the next answer is to be expected so soon that a nap is worth its while. */
  get #isNapDue(): boolean {
    if (this.#run < RUN || this.#debt > (FREE - 1) * WORTH) return false;
    if (this.#nap === 0 || !this.#endpoint.mechanism.blocks) return false;
    if (this.#soon === undefined) {
      const isAlone = processorCount() === 1;
      this.#soon = isAlone ? SOON_ALONE_MS : SOON_MS;
      if (!isAlone) this.#run = 0; // those so far were told by the other
    }
    return this.#run >= RUN;
  }

  /** Sleeps once as a blocking call does, if it may. Returns whether something is there. */
  nap(what: Waitable): boolean {
    const endpoint = this.#endpoint;
    if (!this.#isNapDue) return false;
    const start = now();
    if (!endpoint.doze(endpoint.prepare(what), this.#nap)) return true;
    if (found(what)) {
      this.#worth = WORTH;
      // As behind a sleep: two that only nap would not find one another awake either.
      this.slept(now() - start);
      return true;
    }
    // A ring for another port of this endpoint, which sleeps on the loop, ended it too early to say
    // anything.
    if (endpoint.watch.isRung) return false;
    this.#run = 0;
    this.#debt += this.#worth;
    if (this.#worth < WORTH_MAX) this.#worth *= 2;
    return false;
  }

  /** An answer has come behind a sleep of so many milliseconds. */
  slept(ms: number): void {
    this.#long = ms <= 2 * LOOP_LONG_MS ? Math.min(ms, LOOP_LONG_MS) : 0;
    if (ms > (this.#soon ?? SOON_ALONE_MS)) this.#run = 0;
    else {
      if (this.#run < RUN) this.#run++;
      if (this.#debt > 0) this.#debt--;
    }
  }
}

/** When to try once more what was in vain: each time twice as many waits later. */
class Tries {
  readonly #first: number;
  /** Waits since the last try, and how many there are to be before the next. */
  #waits = 0;
  #pause: number;

  /** Makes those of which the first one is due behind so many waits. */
  constructor(first: number) {
    this.#first = this.#pause = first;
  }

  /** Counts a wait, and returns whether a try is due. */
  count(): boolean {
    return ++this.#waits >= this.#pause;
  }

  /** One was in vain. */
  fail(): void {
    this.#waits = 0;
    this.#pause = Math.min(Math.max(2 * this.#pause, TRY_WAITS), TRY_WAITS_MAX);
  }

  /** There is no need of more: spins find something again. */
  reset(): void {
    this.#waits = 0;
    this.#pause = this.#first;
  }
}
