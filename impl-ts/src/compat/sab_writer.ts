/**
 * The writing end of a pipe: it keeps the bursts that are not yet written, and their promises.
 *
 * @module
 */

import { type Delivery, For } from "../pipe/link.ts";
import { type Bounds, enforceLimit } from "./sab_queue.ts";
import { disposedError, type Fault, type WriterWire } from "./sab_wire.ts";

/** Messages that are written as one burst, and the promise for all of them. */
interface Batch<T> {
  /** Oldest first. */
  readonly values: T[];
  readonly promise: Promise<void>;
  resolve(): void;
  reject(error: unknown): void;
}

/** What the pipe that owns an end does for it. */
export interface Owner {
  /** Turns an error of the wire into the one that the caller gets. */
  _report(error: unknown): unknown;
}

/** The bursts of one writer. */
export class SabWriter<T> implements Delivery {
  readonly wire: WriterWire;
  readonly #bounds: Bounds<T>;
  readonly #owner: Owner;
  /** The burst that is being written, and the one that gathers what is posted meanwhile. */
  #leaving: Batch<T> | undefined;
  #posted: Batch<T> | undefined;
  #isWriting = false;

  constructor(wire: WriterWire, bounds: Bounds<T>, owner: Owner) {
    this.wire = wire;
    this.#bounds = bounds;
    this.#owner = owner;
    wire.owner = this;
  }

  /** Whether there is a burst that the next message will join. */
  get isGathering(): boolean {
    return this.#posted !== undefined;
  }

  get keeps(): boolean {
    return this.#leaving !== undefined || this.isGathering;
  }

  tend(): number {
    return this.write() ? 0 : For.ROOM;
  }

  finish(): void {}

  /** Queues a message. Returns the promise of its burst. */
  post(message: T): Promise<void> {
    const batch = this.#posted ??= makeBatch<T>();
    batch.values.push(message);
    this.wire.tendSoon(); // messages posted until the end of this job join the burst
    if (this.#bounds.limit !== null) this.enforce();
    return batch.promise;
  }

  /** Cuts the queue to its limit. */
  enforce(): void {
    if (this.#posted !== undefined) {
      enforceLimit(this.#posted.values, "oldest first", this.#bounds);
    }
  }

  /** Writes without waiting. Returns true when nothing is left to be written. */
  write(): boolean {
    if (this.#isWriting) return false; // a `toJSON` of a value being written has read the port
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

  /** Gives up everything, because the pipe is disposed. */
  drop(): void {
    const lost = [this.#leaving, this.#posted];
    this.#leaving = this.#posted = undefined;
    for (const batch of lost) settle(batch, { reason: disposedError() });
  }

  /** Writes one burst, or as much as there is room for. Returns false if it cannot go on now. */
  #writeOne(): boolean {
    const { wire } = this;
    let fault: Fault | undefined;
    // If the wire is broken, the posted messages are lost too.
    let batch = this.#leaving ?? this.#posted;
    try {
      if (this.#leaving === undefined) {
        if (!wire.mayBegin) return false;
        this.#leaving = this.#posted;
        this.#posted = undefined;
        wire.begin(this.#leaving!.values);
      }
      if (!wire.carryOn()) return false;
      batch = this.#leaving; // undefined if a `toJSON` has destroyed the pipe
      fault = wire.fault;
    } catch (error) {
      fault = { reason: this.#owner._report(error) };
    }
    if (this.#leaving === undefined) this.#posted = undefined;
    this.#leaving = undefined;
    settle(batch, fault);
    return true;
  }
}

function makeBatch<T>(): Batch<T> {
  // Node 20 lacks `Promise.withResolvers`.
  let resolve!: () => void;
  let reject!: (error: unknown) => void;
  const promise = new Promise<void>((yes, no) => {
    resolve = yes;
    reject = no;
  });
  return { values: [], promise, resolve, reject };
}

/** Fulfils the promise of a batch, or rejects it with the reason of a fault. */
function settle<T>(batch: Batch<T> | undefined, fault: Fault | undefined): void {
  if (fault === undefined) return batch?.resolve();
  // Most callers ignore the promise: its rejection must not end their program.
  batch?.promise.catch(() => {});
  batch?.reject(fault.reason);
}
