/**
 * What the writing end of a pipe holds: bursts, and the promises for them.
 *
 * @module
 */

import { MillraceError } from "../error.ts";
import { beforeEnd } from "../wait_task.ts";
import { type Bounds, Queue } from "./sab_queue.ts";
import { disposedError, isSound, type WriterWire } from "./sab_wire.ts";

/** Messages that are written as one burst, and the promise for all of them. */
interface Batch<T> {
  readonly queue: Queue<T>;
  readonly promise: Promise<void>;
  readonly resolve: () => void;
  readonly reject: (error: unknown) => void;
  /** Why not all of them are written. */
  fault?: unknown;
}

/** The bursts of one writer. */
export class Outbox<T> {
  readonly #wire: WriterWire;
  readonly #bounds: Bounds<T>;
  /** Makes an error of the wire one for the caller. */
  readonly #report: (error: unknown) => unknown;
  /** The burst that is being written, and what was posted since. */
  #leaving: Batch<T> | undefined;
  #posted: Batch<T> | undefined;
  #flushing = false;
  #writing = false;

  constructor(wire: WriterWire, bounds: Bounds<T>, report: (error: unknown) => unknown) {
    this.#wire = wire;
    this.#bounds = bounds;
    this.#report = report;
  }

  /** Queues a message; the promise is that of its burst. */
  post(message: T): Promise<void> {
    const batch = this.#posted ??= makeBatch<T>();
    batch.queue.values.push(message);
    if (!this.#flushing) this.#flush();
    this.enforce();
    return batch.promise;
  }

  /** Cuts the queue to its limit. */
  enforce(): void {
    this.#posted?.queue.enforce(this.#bounds);
  }

  /** Writes without waiting; true when nothing is left to be written. */
  write(): boolean {
    if (this.#writing) return false; // a `toJSON` of what is being written reads
    this.#writing = true;
    try {
      return this.#write();
    } finally {
      this.#writing = false;
    }
  }

  #write(): boolean {
    try {
      while (this.#leaving !== undefined || this.#leave()) {
        if (!this.#wire.carryOn()) return false;
        const { fault, resolve, reject } = this.#leaving!;
        this.#leaving = undefined;
        if (fault === undefined) resolve();
        else reject(fault);
      }
      return this.#posted === undefined;
    } catch (error) {
      const lost = this.#leaving ?? this.#posted;
      if (this.#leaving === undefined) this.#posted = undefined;
      this.#leaving = undefined;
      lost?.reject(this.#report(error));
      return this.#write(); // There is one burst less.
    }
  }

  /** Gives up everything: the pipe is disposed. */
  drop(): void {
    const lost = [this.#leaving, this.#posted];
    this.#leaving = this.#posted = undefined;
    for (const batch of lost) batch?.reject(disposedError());
  }

  async #flush(): Promise<void> {
    this.#flushing = true;
    beforeEnd(() => this.write());
    // What is posted before this is over goes along.
    await undefined;
    while (!this.write()) {
      try {
        await this.#wire.waitForRoom();
      } catch {
        // Closed or broken: found again, and reported, by the write.
      }
    }
    this.#flushing = false;
  }

  /** Begins with the queue as the next burst; false if there is none, or it is not the moment. */
  #leave(): boolean {
    const batch = this.#posted;
    if (batch === undefined || !this.#wire.free) return false;
    this.#posted = undefined;
    this.#leaving = batch;
    const { values } = batch.queue;
    try {
      if (values.length > 0) this.#wire.begin(values);
    } catch (error) {
      const sound = values.filter(isSound);
      if (error instanceof MillraceError || sound.length === values.length) throw error;
      batch.fault = error;
      if (sound.length > 0) this.#wire.begin(sound);
    }
    return true;
  }
}

function makeBatch<T>(): Batch<T> {
  // `Promise.withResolvers`, which Node 20 lacks.
  let resolve!: () => void;
  let reject!: (error: unknown) => void;
  const promise = new Promise<void>((yes, no) => [resolve, reject] = [yes, no]);
  // Most callers do not look at the promise: a rejection of it must not end their program.
  promise.catch(() => {});
  return { queue: new Queue<T>("oldest first"), promise, resolve, reject };
}
