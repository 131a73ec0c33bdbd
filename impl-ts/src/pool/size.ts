/**
 * How many workers a pool should have, and how many tasks each of them.
 *
 * @module
 */

/** Milliseconds of work that a worker may have besides the tasks that it runs. */
const AHEAD_MS = 4;
/** By default, the most tasks that a worker may have waiting. */
const AHEAD_COUNT_MAX = 255;

/** What the decision about another worker depends on. */
export interface Pressure {
  /** The number of waiting tasks, and for how many milliseconds the oldest has waited. */
  readonly waiting: number;
  readonly oldest: number;
  /** Recent mean time of a task in milliseconds; 0 if it is not known. */
  readonly service: number;
  /** The number of workers, those that are starting included, and the number that are starting. */
  readonly workers: number;
  readonly starting: number;
}

/**
 * Whether another worker is worth it: without one, the last waiting task will have waited for
 * longer than `patience` milliseconds. Only one worker starts at a time, so that its effect can be
 * seen.
 */
export function wantsMore(pressure: Pressure, patience: number): boolean {
  const { waiting, oldest, service, workers, starting } = pressure;
  if (waiting === 0 || starting > 0) return false;
  if (workers === 0) return true;
  return Math.max(oldest, waiting * service / workers) > patience;
}

/** How many tasks a worker may have waiting if the caller has not set it. */
export function aheadOf(service: number): number {
  if (service === 0) return 1; // not measured yet
  return Math.min(AHEAD_COUNT_MAX, Math.floor(AHEAD_MS / service));
}
