/**
 * How many workers a pool should have, and how many tasks each of them.
 *
 * @module
 */

/** Milliseconds of work that a worker may have waiting behind what it runs. */
const AHEAD_MS = 4;
/** Most tasks that it may, by default. */
const AHEAD_COUNT_MAX = 255;

/** How things stand where it is decided whether another worker comes. */
export interface Pressure {
  /** Tasks that wait, and for how many milliseconds the first of them has. */
  readonly waiting: number;
  readonly oldest: number;
  /** Milliseconds that a task has taken lately; 0 if that is not known. */
  readonly service: number;
  /** Workers that are there, and those that come. */
  readonly workers: number;
  readonly starting: number;
}

/**
 * Whether another worker is worth it: the last that waits will have waited for longer than
 * `patience` if nobody helps. One comes at a time, so that what it brings is seen.
 */
export function wantsMore(pressure: Pressure, patience: number): boolean {
  const { waiting, oldest, service, workers, starting } = pressure;
  if (waiting === 0 || starting > 0) return false;
  if (workers === 0) return true;
  return Math.max(oldest, waiting * service / workers) > patience;
}

/** How many tasks a worker may have behind those that it runs, where the caller has not said. */
export function aheadOf(service: number): number {
  if (service === 0) return 1; // not measured yet
  return Math.min(AHEAD_COUNT_MAX, Math.floor(AHEAD_MS / service));
}
