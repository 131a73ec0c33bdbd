/**
 * The clock of the round trips. That of a browser moves in steps, of 5 µs or more: a trip that is
 * shorter than ten of them is timed together with those that follow it at once.
 *
 * @module
 */

/** The step of a clock in milliseconds: the least of some. */
export function tickOf(clock) {
  let least = Infinity;
  for (let i = 0; i < 20; i++) {
    const before = clock.now();
    let now = before;
    while (now === before) now = clock.now();
    least = Math.min(least, now - before);
  }
  return least;
}

/** Trips of one channel. */
export class Laps {
  /** Trips that are timed together. */
  count = 1;
  #tick;
  #times = new Float64Array(100_000);
  #length = 0;
  #from = 0;
  #start = 0;
  #deadline = 0;
  /** Milliseconds between two, and when the next is due. */
  #step = 0;
  #due = 0;
  #cell = new Int32Array(new SharedArrayBuffer(4));

  constructor(tick) {
    this.#tick = tick;
  }

  /** Begins with so many trips a second, or with as many as go. */
  begin(rate, ms) {
    // In steps: one that is late is not made up for, so that the next is timed alone as well.
    this.#step = rate === null ? 0 : 1000 / rate;
    if (rate !== null) this.count = 1;
    this.#length = 0;
    this.#from = -1;
    this.#start = performance.now();
    this.#deadline = this.#start + ms;
    this.#due = this.#start;
    return this;
  }

  /** Takes the time of the lap before, and waits until this one is due; false at the end. */
  next() {
    let now = performance.now();
    if (this.#from >= 0) this.#times[this.#length++] = (now - this.#from) / this.count;
    if (now >= this.#deadline || this.#length === this.#times.length) return false;
    if (this.#step > 0) {
      this.#due = Math.max(this.#due + this.#step, now);
      while (now < this.#due) {
        Atomics.wait(this.#cell, 0, 0, this.#due - now);
        now = performance.now();
      }
    }
    this.#from = performance.now();
    return true;
  }

  /** In microseconds: the median, and between which values eight of ten lie. */
  figures() {
    const seconds = (performance.now() - this.#start) / 1000;
    const times = this.#times.subarray(0, this.#length).sort();
    const at = (part) => 1000 * times[Math.min(times.length - 1, Math.floor(times.length * part))];
    const median = at(0.5);
    const trips = this.#length * this.count;
    const lap = this.count;
    if (this.#step === 0) {
      const enough = 10 * this.#tick * 1000 / Math.max(median, 0.05);
      this.count = Math.max(1, Math.min(1000, Math.ceil(enough)));
    }
    return { p10: at(0.1), median, p90: at(0.9), trips, lap, perSecond: trips / seconds };
  }
}
