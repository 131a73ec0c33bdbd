/**
 * What the writing end of a pipe holds: bursts, and the promises for them.
 *
 * @module
 */

import { type Bounds, enforceLimit } from "./sab_queue.ts";
import { disposedError, type WriterWire } from "./sab_wire.ts";

/** Messages that are written as one burst, and the promise for all of them. */
interface Batch<T> {
  /** Oldest first. */
  readonly values: T[];
  readonly promise: Promise<void>;
  resolve(): void;
  reject(error: unknown): void;
}

/** What is done behind it is a microtask. */
const settled = /* @__PURE__ */ Promise.resolve();

/** The bursts of one writer. */
export class Outbox<T> {
  readonly #wire: WriterWire;
  readonly #bounds: Bounds<T>;
  /** Makes an error of the wire one for the caller. */
  readonly #report: (error: unknown) => unknown;
  /** The burst that is being written, and what was posted since. */
  #leaving: Batch<T> | undefined;
  #posted: Batch<T> | undefined;
  /** Whether a flush is to come, or waits for room. */
  #flushing = false;
  #writing = false;
  readonly #flush = (): void => {
    if (this.write()) this.#flushing = false;
    else this.#flushLater();
  };

  constructor(wire: WriterWire, bounds: Bounds<T>, report: (error: unknown) => unknown) {
    this.#wire = wire;
    this.#bounds = bounds;
    this.#report = report;
  }

  /** Whether a burst was begun that the next message joins. */
  get isGathering(): boolean {
    return this.#posted !== undefined;
  }

  /** Queues a message; the promise is that of its burst. */
  post(message: T): Promise<void> {
    const batch = this.#posted ??= this.#begin();
    batch.values.push(message);
    if (this.#bounds.limit !== null) this.enforce();
    return batch.promise;
  }

  /** Cuts the queue to its limit. */
  enforce(): void {
    if (this.#posted !== undefined) {
      enforceLimit(this.#posted.values, "oldest first", this.#bounds);
    }
  }

  /** Writes without waiting; true when nothing is left to be written. */
  write(): boolean {
    if (this.#leaving === undefined && this.#posted === undefined) return true;
    if (this.#writing) return false; // a `toJSON` of what is being written reads
    this.#writing = true;
    try {
      while (this.#writeOne());
    } finally {
      this.#writing = false;
    }
    return this.#leaving === undefined && this.#posted === undefined;
  }

  /** Gives up everything: the pipe is disposed. */
  drop(): void {
    const lost = [this.#leaving, this.#posted];
    this.#leaving = this.#posted = undefined;
    for (const batch of lost) if (batch !== undefined) refuse(batch, disposedError());
  }

  /** Writes one burst, or what there is room for; false if there is nothing to go on with. */
  #writeOne(): boolean {
    const wire = this.#wire;
    try {
      if (this.#leaving === undefined) {
        // Throws where it is broken: then what was posted is lost, too.
        if (this.#posted === undefined || !wire.free) return false;
        this.#leaving = this.#posted;
        this.#posted = undefined;
        wire.begin(this.#leaving.values);
      }
      if (!wire.carryOn()) return false;
      const written = this.#leaving;
      this.#leaving = undefined;
      if (written === undefined) return true; // dropped, by a `toJSON` that has destroyed the pipe
      if (wire.fault === undefined) written.resolve();
      else refuse(written, wire.fault.reason);
    } catch (error) {
      const lost = this.#leaving ?? this.#posted;
      if (this.#leaving === undefined) this.#posted = undefined;
      this.#leaving = undefined;
      if (lost !== undefined) refuse(lost, this.#report(error));
    }
    return true;
  }

  /** What is posted before the end of this job, and its microtasks so far, goes along. */
  #begin(): Batch<T> {
    if (!this.#flushing) {
      this.#flushing = true;
      settled.then(this.#flush);
    }
    // `Promise.withResolvers`, which Node 20 lacks.
    let resolve!: () => void;
    let reject!: (error: unknown) => void;
    const promise = new Promise<void>((yes, no) => {
      resolve = yes;
      reject = no;
    });
    return { values: [], promise, resolve, reject };
  }

  /** Writes what is left when there is room. */
  async #flushLater(): Promise<void> {
    const wire = this.#wire;
    wire.stay(true);
    do {
      await new Promise<void>((resolve) => {
        if (!listens(wire, resolve)) resolve(wire.giveWay());
      });
    } while (!this.write());
    wire.stay(false);
    this.#flushing = false;
  }
}

/** Listens for room; a wire that is closed or broken, which the next write reports, has some. */
function listens(wire: WriterWire, wake: () => void): boolean {
  try {
    return wire.listen(wake);
  } catch {
    return false;
  }
}

/** Most callers do not look at the promise: its rejection must not end their program. */
function refuse<T>({ promise, reject }: Batch<T>, error: unknown): void {
  promise.catch(() => {});
  reject(error);
}
