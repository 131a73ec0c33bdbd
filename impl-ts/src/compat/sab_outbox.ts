/**
 * What the writing end of a pipe holds: bursts, and the promises for them.
 *
 * @module
 */

import type { InboxOwner } from "./sab_inbox.ts";
import { type Bounds, enforceLimit } from "./sab_queue.ts";
import { disposedError, type Fault, type WriterWire } from "./sab_wire.ts";

/** Messages that are written as one burst, and the promise for all of them. */
interface Batch<T> {
  /** Oldest first. */
  readonly values: T[];
  readonly promise: Promise<void>;
  /** Fulfils the promise, or rejects it for a reason. */
  settle(fault?: Fault): void;
}

/** The bursts of one writer. */
export class Outbox<T> {
  readonly wire: WriterWire;
  readonly #bounds: Bounds<T>;
  readonly #owner: Pick<InboxOwner, "_report">;
  /** The burst that is being written, and what was posted since. */
  #leaving: Batch<T> | undefined;
  #posted: Batch<T> | undefined;
  /** Whether a flush is to come, or waits for room. */
  #isFlushing = false;
  #isWriting = false;

  constructor(wire: WriterWire, bounds: Bounds<T>, owner: Pick<InboxOwner, "_report">) {
    this.wire = wire;
    this.#bounds = bounds;
    this.#owner = owner;
  }

  /** Whether a burst was begun that the next message joins. */
  get isGathering(): boolean {
    return this.#posted !== undefined;
  }

  /** Queues a message; the promise is that of its burst. */
  post(message: T): Promise<void> {
    const batch = this.#posted ??= makeBatch<T>();
    batch.values.push(message);
    if (!this.#isFlushing) this.#flush();
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
    if (this.#isWriting) return false; // a `toJSON` of what is being written reads
    this.#isWriting = true;
    try {
      while ((this.#leaving ?? this.#posted) !== undefined) {
        if (!this.#writeOne()) return false;
      }
    } finally {
      this.#isWriting = false;
    }
    return true;
  }

  /** Gives up everything: the pipe is disposed. */
  drop(): void {
    const lost = [this.#leaving, this.#posted];
    this.#leaving = this.#posted = undefined;
    for (const batch of lost) batch?.settle({ reason: disposedError() });
  }

  /** Writes one burst, or what there is room for; false if there is nothing to go on with. */
  #writeOne(): boolean {
    const { wire } = this;
    let fault: Fault | undefined;
    // If the wire is broken, what was posted is lost, too.
    let batch = this.#leaving ?? this.#posted;
    try {
      if (this.#leaving === undefined) {
        if (!wire.free) return false;
        this.#leaving = this.#posted;
        this.#posted = undefined;
        wire.begin(this.#leaving!.values);
      }
      if (!wire.carryOn()) return false;
      batch = this.#leaving; // none, where a `toJSON` has destroyed the pipe
      fault = wire.fault;
    } catch (error) {
      fault = { reason: this.#owner._report(error) };
    }
    if (this.#leaving === undefined) this.#posted = undefined;
    this.#leaving = undefined;
    batch?.settle(fault);
    return true;
  }

  /** Writes what is posted before the end of this job, and its microtasks so far, and then. */
  async #flush(): Promise<void> {
    const { wire } = this;
    this.#isFlushing = true;
    await undefined;
    if (!this.write()) {
      wire.stay(true);
      // A wire that is closed or broken, which the next write reports, has room.
      do await wire.sleep(Infinity).catch(() => {}); while (!this.write());
      wire.stay(false);
    }
    this.#isFlushing = false;
  }
}

function makeBatch<T>(): Batch<T> {
  let settle!: Batch<T>["settle"];
  const promise = new Promise<void>((resolve, reject) => {
    settle = (fault) => {
      if (fault === undefined) return resolve();
      // Most callers do not look at the promise: its rejection must not end their program.
      promise.catch(() => {});
      reject(fault.reason);
    };
  });
  return { values: [], promise, settle };
}
