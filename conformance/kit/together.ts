/**
 * Waits for what several testees do at the same time.
 *
 * @module
 */

import { Trouble } from "./verdict.ts";

/**
 * Returns what all of them come to, in their order. Where one fails, the others are waited for and
 * then the first failure is thrown: what a testee still does would reach into the next case. Only
 * `Trouble` is thrown at once, also in place of an earlier failure, since whoever catches it ends
 * all testees. Each wait is bounded by who began it.
 */
export async function together<T>(running: readonly Promise<T>[]): Promise<T[]> {
  try {
    return await Promise.all(running);
  } catch (error) {
    if (error instanceof Trouble) throw error;
    await Promise.all(running.map((each) => each.catch(throwTrouble)));
    throw error;
  }
}

function throwTrouble(error: unknown): void {
  if (error instanceof Trouble) throw error;
}
