/**
 * How the kit's second thread waits.
 *
 * @module
 */

/** An order that nobody stops ends by itself. */
export const BOUND_MS = 20_000;

/** Below this nothing can be slept: the shortest sleep takes about as long. */
const SLEEP_MIN_US = 60;

const still = new Int32Array(new SharedArrayBuffer(4));

/** Says when an order is over. */
export class Clock {
  readonly #stop: Int32Array;
  readonly #deadline: number;

  constructor(stop: Int32Array, ms: number) {
    this.#stop = stop;
    this.#deadline = performance.now() + ms;
  }

  over(): boolean {
    return Atomics.load(this.#stop, 0) !== 0 || performance.now() >= this.#deadline;
  }
}

/**
 * Takes a while, asleep where that can be: whoever wakes is given a processor at once, and the one
 * who has it is held up wherever it stands.
 */
export function pause(us: number): void {
  if (us >= SLEEP_MIN_US) {
    Atomics.wait(still, 0, 0, (us - SLEEP_MIN_US) / 1000);
    return;
  }
  const deadline = performance.now() + us / 1000;
  while (performance.now() < deadline);
}

/** Takes a few nanoseconds, so many times. */
export function pass(turns: number): void {
  for (let turn = 0; turn < turns; turn++) Atomics.load(still, 0);
}
