/**
 * What a worker of a pool says of its work beside its answers, in a few words of shared memory: how
 * far it has come, and how long it has taken. All that a pool measures is here.
 *
 * @module
 */

/** The number of the last task that has begun; or SEALED, behind which none can begin. */
const BEGUN_WORD = 0;
const SEALED = -1;
/** Numbers of tasks are from 0 up to this, and again from 0. */
const NUMBER_MAX = 0x7fffffff;
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
  #begun: number;
  /** What was not told, below a microsecond. */
  #rest = 0;

  /** Takes the gauge in this memory. */
  constructor(memory: SharedArrayBuffer) {
    this.#words = new Int32Array(memory);
    this.#begun = Atomics.load(this.#words, BEGUN_WORD);
  }

  /**
   * A task begins: from here on, a death is its death. False: it must not begin, since the pool has
   * given this worker up, and the task to another one.
   */
  begin(number: number): boolean {
    const before = this.#begun;
    this.#begun = number;
    return Atomics.compareExchange(this.#words, BEGUN_WORD, before, number) === before;
  }

  /** A task has ended, or several, which have taken so many milliseconds in all. */
  end(ms: number, count: number = 1): void {
    const us = ms * 1000 + this.#rest;
    const whole = Math.floor(us);
    this.#rest = us - whole;
    Atomics.add(this.#words, TAKEN_WORD, whole);
    Atomics.add(this.#words, ENDED_WORD, count);
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

  /** Has no further task begin, also where the worker lives on. Returns which was the last. */
  seal(): number {
    return Atomics.exchange(this.#words, BEGUN_WORD, SEALED);
  }

  /** Lets the tasks of the next worker begin, behind that with this number. */
  open(number: number): void {
    Atomics.store(this.#words, BEGUN_WORD, number);
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

/** The number behind another one. */
export function numberBehind(number: number): number {
  return (number + 1) & NUMBER_MAX;
}

/** Whether a task had begun when one was the last that had. */
export function hasBegun(number: number, last: number): boolean {
  return (last - number) << 1 >= 0;
}

/** A mean in which what is new counts most; the first counts alone. */
export function latest(before: number, value: number): number {
  return before === 0 ? value : before + (value - before) * NEWEST;
}
