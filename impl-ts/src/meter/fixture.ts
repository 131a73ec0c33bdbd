/** Shared by the tests of metering: a clock that stands still, and a port with two meters. */

import { type Meter, meter } from "./meter.ts";
import { Port } from "../port/port.ts";

/** Replaces the clocks of the platform. */
export interface Clock {
  /** Lets so many microseconds pass. */
  pass(us: number): void;
  /** How often the clock was read. */
  readonly looks: number;
  /** Sets the clock to so many microseconds before its low 32 bits wrap. */
  beforeWrap(us: number): void;
  [Symbol.dispose](): void;
}

/** Stops the clocks of this thread until the result is disposed. Timers go on. */
export function stopClock(): Clock {
  const { now, timeOrigin } = performance;
  const { now: date } = Date;
  // Whole microseconds, so that no fraction is rounded.
  let us = Math.ceil((timeOrigin + performance.now()) * 1000);
  let looks = 0;
  performance.now = () => {
    looks++;
    return us / 1000 - timeOrigin;
  };
  Date.now = () => Math.floor(us / 1000);
  return {
    get looks() {
      return looks;
    },
    pass: (more) => void (us += more),
    beforeWrap: (left) => void (us = Math.ceil(us / 2 ** 32) * 2 ** 32 - left),
    [Symbol.dispose]() {
      performance.now = now;
      Date.now = date;
    },
  };
}

/** Two ends of a port on one thread, each with a meter. */
export class Metered<T = unknown> {
  readonly here: Port<T>;
  readonly there: Port<T>;
  readonly writing: Meter;
  readonly reading: Meter;

  constructor(capacity = 4096) {
    this.here = Port.create<T>({ capacity, spin: 0 });
    this.there = Port.attach<T>(this.here.memory, { spin: 0 });
    this.writing = meter(this.here);
    this.reading = meter(this.there);
  }

  get outgoing() {
    return this.writing.snapshot().outgoing!;
  }

  get incoming() {
    return this.reading.snapshot().incoming!;
  }

  [Symbol.dispose]() {
    this.here.close();
    this.there.close();
    this.writing.close();
    this.reading.close();
  }
}
