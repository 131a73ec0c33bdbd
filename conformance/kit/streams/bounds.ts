/**
 * Waits that end.
 *
 * @module
 */

import { Trouble } from "../trouble.ts";

export function sleep(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

/** What a promise gives, or nothing where that takes too long. */
export async function within<T>(promise: Promise<T>, ms: number): Promise<T | undefined> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<undefined>((resolve) => {
    timer = setTimeout(() => resolve(undefined), ms);
  });
  return await Promise.race([promise, late]).finally(() => clearTimeout(timer));
}

/** Has a testee break down in public: it was to do this. */
export async function during<T>(what: string, call: Promise<T>): Promise<T> {
  try {
    return await call;
  } catch (error) {
    if (error instanceof Trouble) error.during ??= what;
    throw error;
  }
}
