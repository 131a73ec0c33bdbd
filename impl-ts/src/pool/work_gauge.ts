/**
 * What a worker tells its pool besides its answers, in a few words of shared memory: which task it
 * has begun, how many have ended, and how long they took. All measurements of a pool are here.
 *
 * @module
 */

/** The number of the last task that has begun; SEALED means that no further task can begin. */
const BEGUN_WORD = 0;
const SEALED = -1;
/** Task numbers run from 0 up to this one, and then from 0 again. */
const NUMBER_MAX = 0x7fffffff;
/** The number of ended tasks, and the microseconds that they took, both modulo 2^32. */
const ENDED_WORD = 1;
const TAKEN_WORD = 2;
/** The weight of a new value in a mean, against all earlier ones. */
const NEWEST = 0.25;

/** The size of a gauge in bytes. */
export const GAUGE_SIZE = 64;

/** The worker's side of the gauge. */
export class WorkGauge {
  readonly #words: Int32Array;
  #begun: number;
  /** The part of the last time, below a microsecond, that was not added to the word yet. */
  #rest = 0;

  /** Opens the worker's side of the gauge in this memory. */
  constructor(memory: SharedArrayBuffer) {
    this.#words = new Int32Array(memory);
    this.#begun = Atomics.load(this.#words, BEGUN_WORD);
  }

  /**
   * Notes that a task begins. If the worker dies from here on, the task dies with it. Returns false
   * if the task must not begin, because the pool has given up this worker and given the task to
   * another one.
   */
  begin(number: number): boolean {
    const before = this.#begun;
    this.#begun = number;
    return Atomics.compareExchange(this.#words, BEGUN_WORD, before, number) === before;
  }

  /** Notes that `count` tasks have ended, which took `ms` milliseconds in total. */
  end(ms: number, count: number = 1): void {
    const us = ms * 1000 + this.#rest;
    const whole = Math.floor(us);
    this.#rest = us - whole;
    Atomics.add(this.#words, TAKEN_WORD, whole);
    Atomics.add(this.#words, ENDED_WORD, count);
  }
}

/** The pool's side of the gauge. */
export class GaugeReader {
  /** Recent mean time of a task in milliseconds; 0 before the first task has ended. */
  service = 0;
  readonly #words: Int32Array;
  #ended = 0;
  #taken = 0;

  /** Opens the pool's side of the gauge in this memory. */
  constructor(memory: SharedArrayBuffer) {
    this.#words = new Int32Array(memory);
  }

  /**
   * Stops further tasks from beginning, even if the worker lives on. Returns the number of the last
   * task that has begun.
   */
  seal(): number {
    return Atomics.exchange(this.#words, BEGUN_WORD, SEALED);
  }

  /** Lets the next worker begin tasks, from the one after this number on. */
  open(number: number): void {
    Atomics.store(this.#words, BEGUN_WORD, number);
  }

  /** Reads the words, and updates the mean with the tasks that have ended since the last call. */
  update(): void {
    const ended = Atomics.load(this.#words, ENDED_WORD);
    const count = (ended - this.#ended) >>> 0;
    if (count === 0) return;
    // If a task ends between the two loads, its time is counted with the next tasks.
    const taken = Atomics.load(this.#words, TAKEN_WORD);
    const mean = ((taken - this.#taken) >>> 0) / 1000 / count;
    this.#ended = ended;
    this.#taken = taken;
    this.service = recentMean(this.service, mean);
  }
}

/** The task number that follows another one. */
export function numberAfter(number: number): number {
  return (number + 1) & NUMBER_MAX;
}

/** Whether a task had begun, given the number of the last one that had. */
export function hasBegun(number: number, last: number): boolean {
  return (last - number) << 1 >= 0;
}

/** A mean that follows recent values; the first value is the mean by itself. */
export function recentMean(before: number, value: number): number {
  return before === 0 ? value : before + (value - before) * NEWEST;
}
