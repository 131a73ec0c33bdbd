/**
 * The clock of a meter: microseconds since the Unix epoch. See `spec/meter.md`.
 *
 * @module
 */

import { fineClock, now, systemTime } from "../memory/clock.ts";

/** Milliseconds off from which the clock is set anew. Some clocks tick in tenths of a second. */
const APART_MS = 250;

/**
 * Milliseconds from the epoch to the zero of `now`, as `performance` tells them: a thousand times
 * finer than `Date.now()`, and within 0.1 ms of it in a thread that has just started (measured:
 * Deno 2.9, Node 24).
 */
let origin = /* @__PURE__ */ originOf();

// An audio worklet has no `performance`, but only milliseconds since the epoch.
function originOf(): number {
  const performance = fineClock();
  if (performance === undefined) return 0;
  const [before, at, behind] = [now(), performance.now(), now()];
  const isSame = before <= at && at <= behind;
  return performance.timeOrigin + (isSame ? 0 : at - (before + behind) / 2);
}

/**
 * Microseconds since the epoch, with their fraction. It uses `now`, because Node looks
 * `performance` up by a function at each use, and a metered write took 40 ns more.
 */
export function microseconds(): number {
  return (origin + now()) * 1000;
}

/**
 * Adjusts the clock if the system's clock was set since this thread started. Otherwise two threads
 * that started before and after that would see wrong ages in one another's messages.
 */
export function followSystem(): void {
  const off = systemTime() - (origin + now());
  if (Math.abs(off) > APART_MS) origin += off;
}

/** The value of `time` for a frame that is finished at that moment. [meter.time] */
export function timeOf(now: number): number {
  const time = now >>> 0;
  return time === 0 ? 1 : time;
}

/** The microseconds that a message with this `time`, which is not 0, has waited. [frame.time] */
export function waitedSince(time: number, now: number): number {
  const waited = (now - time) | 0;
  return waited > 0 ? waited : 0;
}
