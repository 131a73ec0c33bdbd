/**
 * The naps of an event loop: sleeps in which it does not turn, for answers that come soon. See the
 * option `nap`, and the model `nap` in `spec/models`.
 *
 * @module
 */

import { processorCount } from "./wait.ts";

/**
 * Milliseconds of a nap on one processor, where no option says how long. There, the answerer cannot
 * run before this thread sleeps, and a nap costs less than a turn of the loop with its wake: of two
 * event loops that answer one another, 12 µs a round trip in place of 19 in Deno and 35 in Node.
 * With less than a tick of the system's clock, a timer is set for each nap, which made 15 µs 26
 * (measured without any library: Deno 2.9, Node 24).
 */
const ALONE_MS = 4;
/** There, answers within so long let it nap for the next ones: nothing else happens meanwhile. */
const ALONE_SOON_MS = 1;
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

/** The naps of an endpoint, and their record. */
export class Naps {
  /** Milliseconds of a nap, at most; 0 for none. */
  readonly ms: number;
  readonly #soon: number;
  /** Answers in a row that came soon, as far as that matters. */
  #run: number;
  /** Answers that still have to come soon to make up for the naps in vain. */
  #debt = 0;
  /** How many more the next one in vain takes. */
  #worth = WORTH;

  /**
   * `nap` is in milliseconds, and `blocks` says whether this thread may block. With an option, naps
   * begin at once; without, there are none with two processors or more.
   */
  constructor(nap: number | undefined, blocks: boolean) {
    this.ms = blocks ? nap ?? (processorCount() > 1 ? 0 : ALONE_MS) : 0;
    this.#soon = nap ?? ALONE_SOON_MS;
    this.#run = nap === undefined ? 0 : RUN;
  }

  /** Whether the next answer is to be expected so soon that a nap is worth its while. */
  get isDue(): boolean {
    return this.#run >= RUN && this.#debt <= (FREE - 1) * WORTH && this.ms > 0;
  }

  /** An answer has come in a nap, behind so many milliseconds. */
  found(ms: number): void {
    this.#worth = WORTH;
    this.answered(ms);
  }

  /** An answer has come behind a sleep or a nap of so many milliseconds. */
  answered(ms: number): void {
    if (ms > this.#soon) this.#run = 0;
    else {
      if (this.#run < RUN) this.#run++;
      if (this.#debt > 0) this.#debt--;
    }
  }

  /** None came in a nap. */
  missed(): void {
    this.#run = 0;
    this.#debt += this.#worth;
    if (this.#worth < WORTH_MAX) this.#worth *= 2;
  }
}

/** Throws for a nap that is none. */
export function requireNap(nap: number | undefined): void {
  if (nap === undefined || nap >= 0) return;
  throw new RangeError(`nap must be milliseconds, 0 or more: ${nap}`);
}
