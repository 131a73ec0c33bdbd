/**
 * Whether an endpoint spins before it sleeps, and for how long: a record of what came of the waits
 * before. It is the same for calls that block and for event loops. See `spec/wait.md`, "Spinning".
 *
 * @module
 */

import { layout } from "../memory/layout.ts";
import { requireAmount } from "../memory/plan.ts";
import { now } from "../memory/clock.ts";
import type { Waiter } from "./endpoint.ts";
import { type Mechanism, processorCount } from "./mechanism.ts";
import { hasChanged } from "./state.ts";

/** Some runtimes have what tells the processor that this is a spin loop. */
type Pausing = { pause?(): void };

/** Measured: what costs the least over all. An `enum`, as bundlers put its members in place. */
const enum Tuned {
  /** Looks between two glances at the clock. */
  LOOKS = 32,
  /**
   * Spins in a row that found nothing before an endpoint stops spinning; and waits that then sleep
   * at once before a spin is tried again, as in a fresh thread, whose code is not compiled yet.
   */
  FEW = 8,
  /** The most such waits, as each spin in vain doubles them. */
  PAUSE_MAX = 127,
  /** Milliseconds of the longest spin. Two endpoints that both sleep take 0.1 to 0.3 to answer. */
  LONG_MS = 0.4,
  /** Milliseconds that an event loop spins for an answer. */
  LOOP_MS = 0.02,
}

/** The record of one endpoint. */
export interface Spinner {
  /** Whether this thread may block. */
  readonly blocks: boolean;
  readonly us: number | undefined;
  /** Milliseconds of a spin, -1 until it is known: Node takes 0.3 ms to count the processors. */
  budget: number;
  misses: number;
  skips: number;
  pause: number;
  /** Milliseconds that the last sleep took, 0 if a spin could not have lasted so long. */
  long: number;
}

/** `us` is the option `spin`: who gives it has the endpoint spin from its first wait on. */
export function makeSpinner(us: number | undefined, { blocks }: Mechanism): Spinner {
  requireAmount("spin", us ?? 0);
  const misses = us === undefined ? Tuned.FEW : 0;
  return { blocks, us, budget: -1, misses, skips: 0, pause: Tuned.FEW, long: 0 };
}

/** Milliseconds of a spin: none with one processor, as the peer then waits for this very one. */
export function budgetOf(spinner: Spinner): number {
  if (spinner.budget < 0) {
    spinner.budget = (spinner.us ?? (processorCount() > 1 ? layout.WAIT_SPIN_US : 0)) / 1000;
  }
  return spinner.budget;
}

/** Whether the last spins have found something. */
export const pays = (spinner: Spinner): boolean =>
  spinner.misses < Tuned.FEW && budgetOf(spinner) > 0;

/** A look has found what was not there at the first one. */
export function hit(spinner: Spinner): void {
  spinner.misses = 0;
  spinner.pause = Tuned.FEW;
}

/** Whether a spin is due; counts a wait that sleeps at once. [wait.spin_record] */
export function isDue(spinner: Spinner): boolean {
  const { misses, skips, pause, long } = spinner;
  const isDue = misses < Tuned.FEW || skips >= Tuned.PAUSE_MAX || skips >= pause && long > 0;
  if (isDue) return budgetOf(spinner) > 0;
  spinner.skips++;
  return false;
}

/** Whether it is of use to know how long the next sleep takes. */
export const learns = ({ misses, budget, skips, pause }: Spinner): boolean =>
  misses > 0 && budget !== 0 && (budget > 0 || skips >= pause - 1);

/** A sleep took so many milliseconds: the spin after it has to last as long. */
export function slept(spinner: Spinner, ms: number): void {
  spinner.long = ms <= 2 * Tuned.LONG_MS ? Math.min(ms, Tuned.LONG_MS) : 0;
}

/** `spin` of an event loop, for an answer, if one is due. */
export function spinForAnswer(waiter: Waiter, asks: number): boolean {
  const { spinner } = waiter.endpoint;
  return isDue(spinner) &&
    spin(waiter, asks, Math.min(budgetOf(spinner), Tuned.LOOP_MS), Infinity);
}

/** Looks until something is there, for at most `ms`, or longer after a miss. Whether it is. */
export function spin(waiter: Waiter, asks: number, ms: number, deadline: number): boolean {
  if (waiter.sees(asks) || hasChanged(waiter)) return true; // no spin has found it
  const { spinner } = waiter.endpoint;
  spinner.skips = 0;
  const most = spinner.misses ? Math.max(ms, spinner.long) : ms;
  let start = -1;
  let spent = 0;
  let isFound: boolean;
  for (;;) {
    for (let i = 0; !(isFound = waiter.sees(asks)) && i < Tuned.LOOKS; i++) {
      (Atomics as Pausing).pause?.();
    }
    if ((isFound ||= hasChanged(waiter))) break;
    const time = now();
    if (start < 0) start = time;
    spent = time - start;
    if (spent >= most || time >= deadline) break;
  }
  if (isFound && spent < ms) hit(spinner);
  else {
    // One that comes late is worth a few more tries.
    spinner.misses = isFound ? Math.min(spinner.misses, Tuned.FEW - 2) : spinner.misses + 1;
    spinner.pause = Math.min(2 * spinner.pause, Tuned.PAUSE_MAX);
  }
  return isFound;
}
