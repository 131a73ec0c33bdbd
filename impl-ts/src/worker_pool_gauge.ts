/**
 * What a worker of a pool says of its work beside its answers, in a few words of shared memory: how
 * far it has come, and how long it has taken. All that a pool measures is here.
 *
 * @module
 */

/** The number of the last task that has begun. */
const BEGUN_WORD = 0;
/** How many have ended, and the microseconds that they have taken, both modulo 2^32. */
const ENDED_WORD = 1;
const TAKEN_WORD = 2;
/** How much a new mean counts, against all before. */
const NEWEST = 0.25;

/** Bytes of a gauge. */
export const GAUGE_SIZE = 64;

/** The gauge of one worker, on its side. */
export class WorkGauge {
  readonly #words: Int32Array;
  /** What was not told, below a microsecond. */
  #rest = 0;

  /** Takes the gauge in this memory. */
  constructor(memory: SharedArrayBuffer) {
    this.#words = new Int32Array(memory);
  }

  /** A task begins: from here on, a death is its death. */
  begin(number: number): void {
    Atomics.store(this.#words, BEGUN_WORD, number);
  }

  /** A task has ended, which has taken so many milliseconds. */
  end(ms: number): void {
    const us = ms * 1000 + this.#rest;
    const whole = Math.floor(us);
    this.#rest = us - whole;
    Atomics.add(this.#words, TAKEN_WORD, whole);
    Atomics.add(this.#words, ENDED_WORD, 1);
  }
}

/** The same on the side of the pool. */
export class GaugeReader {
  /** Milliseconds that a task has taken lately; 0 before the first. */
  service = 0;
  readonly #words: Int32Array;
  #ended = 0;
  #taken = 0;

  /** Takes the gauge in this memory. */
  constructor(memory: SharedArrayBuffer) {
    this.#words = new Int32Array(memory);
  }

  /** Whether a task has begun, by its number. */
  hasBegun(number: number): boolean {
    return ((Atomics.load(this.#words, BEGUN_WORD) - number) | 0) >= 0;
  }

  /** Takes in what has ended since. */
  look(): void {
    const ended = Atomics.load(this.#words, ENDED_WORD);
    const count = (ended - this.#ended) >>> 0;
    if (count === 0) return;
    // What another task adds between the two loads is counted with the next.
    const taken = Atomics.load(this.#words, TAKEN_WORD);
    const mean = ((taken - this.#taken) >>> 0) / 1000 / count;
    this.#ended = ended;
    this.#taken = taken;
    this.service = latest(this.service, mean);
  }
}

/** A mean in which what is new counts most; the first counts alone. */
export function latest(before: number, value: number): number {
  return before === 0 ? value : before + (value - before) * NEWEST;
}
