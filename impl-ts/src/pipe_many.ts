/**
 * Many messages in one call: short ones are packed into JSON batches. See `spec/codec.md`.
 *
 * @module
 */

import { encodeBatch, isBatchable } from "./codec.ts";
import { MessageError, MillraceError } from "./error.ts";
import { ENCODING } from "./gate.ts";
import { FRAME_KIND_DATA } from "./layout.ts";
import { deadlineOfCall, type WaitOptions } from "./pipe.ts";
import { type Inlet, VALUE } from "./pipe_inlet.ts";
import type { Outlet } from "./pipe_outlet.ts";
import { begin, waitRoom } from "./pipe_room.ts";
import { requireInteger } from "./segment_geometry.ts";

/** Most values in a batch, and the size from which on fewer are packed: more gains nothing. */
export const RUN_COUNT = 16;
export const RUN_SIZE = 4096;

/** Writes many values through one outlet. */
export class Pack {
  /** How many values of the last call are written. */
  written = 0;
  readonly #outlet: Outlet;
  /** How many values to try to pack next. */
  #most = RUN_COUNT;

  /** Makes what packs for an outlet. */
  constructor(outlet: Outlet) {
    this.#outlet = outlet;
  }

  /** Writes all of them, and waits while there is no room; the caller has the outlet. */
  write(values: readonly unknown[], options: WaitOptions | undefined): void {
    const outlet = this.#outlet;
    const deadline = begin(outlet, options) ?? deadlineOfCall(options);
    let index = 0;
    let waits = 0;
    try {
      while (index < values.length) {
        const count = this.#encodeRun(values, index);
        outlet.start(FRAME_KIND_DATA, 0);
        while (!outlet.advance()) {
          this.written = index; // the wait publishes them
          waitRoom(outlet, deadline, waits++);
        }
        index += count;
      }
    } finally {
      // Also when a value cannot be encoded: what stands before it is written.
      if (!outlet.link.closed) {
        outlet.store();
        this.written = index;
      }
    }
  }

  /** Encodes the next values as one payload and returns how many it took. */
  #encodeRun(values: readonly unknown[], index: number): number {
    const outlet = this.#outlet;
    const count = outlet.mayBatch ? this.#encodeBatch(values, index) : 0;
    if (count > 1) {
      const { size } = outlet;
      this.#most = size > RUN_SIZE ? (this.#most >> 1) || 1 : RUN_COUNT;
      // [frame.batch_whole]
      if (size <= outlet.largest) return count;
    }
    outlet.encode(values[index], outlet);
    if (outlet.size < RUN_SIZE / RUN_COUNT) this.#most = RUN_COUNT;
    return 1;
  }

  /**
   * Encodes the next values that may go into one batch, if they are several; returns how many. None
   * where one of them throws: one by one, those before it can be written, and then it throws.
   */
  #encodeBatch(values: readonly unknown[], index: number): number {
    const outlet = this.#outlet;
    const end = Math.min(values.length, index + this.#most);
    const run: unknown[] = [];
    outlet.bits |= ENCODING; // a value may have a `toJSON`
    try {
      for (; index < end && isBatchable(values[index]); run.push(values[index++])) {
        outlet.vet?.(values[index] as never);
      }
      if (run.length > 1) encodeBatch(run, outlet);
      return run.length;
    } catch {
      return 0;
    } finally {
      outlet.bits &= ~ENCODING;
    }
  }
}

/** Behind a first value, takes what is there up to `max`. */
export function takeMany<T>(inlet: Inlet, first: T | undefined, max: number): T[] | undefined {
  if (first === undefined) return undefined;
  const values: T[] = [first];
  try {
    // One load more: a peer that goes on writing must not keep us here. [ring.one_load]
    for (let loads = 1; values.length < max;) {
      let value = inlet.take(VALUE, undefined, false);
      if (value === undefined && loads-- > 0) value = inlet.take(VALUE, undefined, true);
      if (value === undefined) break;
      values.push(value as T);
    }
  } catch (error) {
    // A fault keeps itself; the report of a lost message would go lost with what was read.
    if (!(error instanceof MillraceError)) throw error;
    if (error instanceof MessageError) inlet.queue.unshift(error);
  }
  return values;
}

/** Throws for a count that is none, before anything is taken. */
export function requireMax(max: number): void {
  requireInteger("max", max, 1);
}
