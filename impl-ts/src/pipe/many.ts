/**
 * Many messages in one call. Short ones are packed into JSON batches. See `spec/codec.md`.
 *
 * @module
 */

import { encodeBatch, isBatchable } from "../codec/codec.ts";
import { requireJson } from "../codec/loss.ts";
import { MessageError, MillraceError } from "../error.ts";
import { ENCODING } from "../memory/gate.ts";
import { FRAME_KIND_DATA } from "../memory/layout.ts";
import { deadlineOfCall, type WaitOptions } from "./pipe.ts";
import { type Inlet, VALUE } from "./inlet.ts";
import type { Outlet } from "./outlet.ts";
import { begin, waitRoom } from "./room.ts";
import { requireInteger } from "../memory/segment_geometry.ts";

/**
 * The most values in a batch, and the size in bytes above which the next batch gets fewer values.
 * More of either gains nothing.
 */
export const RUN_COUNT = 16;
export const RUN_SIZE = 4096;

/** Writes many values through one outlet, several of them in one message where that is possible. */
export class Pack {
  /** How many values the last call has written. */
  written = 0;
  readonly #outlet: Outlet;
  /** The most values that go into the next batch. */
  #most = RUN_COUNT;

  /** Makes the pack of an outlet. */
  constructor(outlet: Outlet) {
    this.#outlet = outlet;
  }

  /**
   * Writes all values, and waits while there is no room. Only the owner of the outlet calls this.
   */
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
          this.written = index; // the wait publishes those before
          waitRoom(outlet, deadline, waits++);
        }
        index += count;
      }
    } finally {
      // Also if a value cannot be encoded: the values before it are written.
      if (!outlet.link.closed) {
        outlet.store();
        this.written = index;
      }
    }
  }

  /** Encodes the next values as one payload. Returns how many it took. */
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
   * Encodes the next values as one batch, if two or more may go into one; returns how many may.
   * Returns 0 if one of them throws: then the values before it are written one by one, before its
   * error comes.
   */
  #encodeBatch(values: readonly unknown[], index: number): number {
    const outlet = this.#outlet;
    const end = Math.min(values.length, index + this.#most);
    const run: unknown[] = [];
    outlet.bits |= ENCODING; // a value may have a `toJSON`
    try {
      for (; index < end && isBatchable(values[index]); run.push(values[index++])) {
        outlet.vet?.(values[index] as never);
        requireJson(values[index]);
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

/** After a first value, takes further values that are there, up to `max` in all. */
export function takeMany<T>(inlet: Inlet, first: T | undefined, max: number): T[] | undefined {
  if (first === undefined) return undefined;
  const values: T[] = [first];
  try {
    // One more load at most: a peer that goes on writing must not keep this call here.
    // [ring.one_load]
    for (let loads = 1; values.length < max;) {
      let value = inlet.take(VALUE, undefined, false);
      if (value === undefined && loads-- > 0) value = inlet.take(VALUE, undefined, true);
      if (value === undefined) break;
      values.push(value as T);
    }
  } catch (error) {
    // The inlet keeps a fault. The report of a lost message goes back into the queue: thrown now,
    // it would cost the values that were read before it.
    if (!(error instanceof MillraceError)) throw error;
    if (error instanceof MessageError) inlet.queue.unshift(error);
  }
  return values;
}

/** Throws if `max` is not a count, before anything is taken. */
export function requireMax(max: number): void {
  requireInteger("max", max, 1);
}
