/**
 * The task of `pool`, which all peers handle in their workers: being busy for a while. For
 * `piscina`, this is the worker itself.
 *
 * @module
 */

/** Numbers of tasks, by which their results are known. */
export const NUMBER_COUNT = 1024;

/** A task that takes so many microseconds, and has a number. */
export function taskOf(us: number, number: number): number {
  return us * NUMBER_COUNT + number % NUMBER_COUNT;
}

/** Handles it: its result is its number. */
export function handleTask(task: number): number {
  const number = task % NUMBER_COUNT;
  const until = performance.now() + (task - number) / NUMBER_COUNT / 1000;
  while (performance.now() < until);
  return number;
}

export default handleTask;
