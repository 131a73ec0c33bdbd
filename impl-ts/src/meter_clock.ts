/**
 * The clock of a meter: microseconds since the Unix epoch. See `spec/meter.md`.
 *
 * @module
 */

import { now } from "./segment.ts";

/** How far the clock may be off before it is set anew, in milliseconds: some tell only tenths. */
const APART_MS = 250;

/**
 * Milliseconds between the epoch and the zero of `now`, by `performance`, which is finer than
 * `Date.now()` by a thousand, and within 0.1 ms of it in each thread that has just started
 * (measured: Deno 2.9, Node 24).
 */
let origin = /* @__PURE__ */ originOf();

// An audio worklet has no `performance`, and milliseconds since the epoch only.
function originOf(): number {
  if (typeof performance === "undefined") return 0;
  const [before, at, behind] = [now(), performance.now(), now()];
  const isSame = before <= at && at <= behind;
  return performance.timeOrigin + (isSame ? 0 : at - (before + behind) / 2);
}

/**
 * Microseconds since the epoch, with what they have behind the point. By `now`, since in Node
 * `performance` is looked up by a function each time: a write that is metered took 40 ns more.
 */
export function microseconds(): number {
  return (origin + now()) * 1000;
}

/**
 * Follows the clock of the system, where that was set since the thread started: two threads that
 * have started before and behind it would take one another's messages for old, or for new.
 */
export function followSystem(): void {
  const off = Date.now() - (origin + now());
  if (Math.abs(off) > APART_MS) origin += off;
}

/** What stands in `time` of a frame that is finished at that moment. [meter.time] */
export function timeOf(now: number): number {
  const time = now >>> 0;
  return time === 0 ? 1 : time;
}

/** How long a message with this `time`, which is not 0, has waited up to now. [frame.time] */
export function waitedSince(time: number, now: number): number {
  const waited = (now - time) | 0;
  return waited > 0 ? waited : 0;
}
