/**
 * How the two endpoints of a private segment wait for each other on one thread. See `spec/wait.md`.
 *
 * @module
 */

import { layout } from "../memory/layout.ts";
import type { Mechanism } from "../wait/mechanism.ts";

/**
 * Sleeps without blocking only: a blocked thread could not wake itself, and no other thread could.
 */
export class LocalMechanism implements Mechanism {
  readonly rings: number = layout.WAKE_MECHANISM_AGENT;
  readonly sleeps: number = layout.WAKE_MECHANISM_AGENT;
  readonly blocks = false;
  /** The functions that wake the sleepers, by the index of the word. */
  readonly #sleepers: Map<number, (() => void)[]> = new Map();
  readonly #rung: (index: number) => void;

  /** Makes a mechanism that calls `rung` after each ring, with the index of the bell. */
  constructor(rung: (index: number) => void) {
    this.#rung = rung;
  }

  /** Never called, because `blocks` is false. */
  sleep(): void {}

  sleepAsync(words: Int32Array, index: number, expected: number): Promise<unknown> {
    // No other thread can change the word between this look and the sleep.
    if (words[index] !== expected) return Promise.resolve();
    return new Promise<void>((resolve) => {
      const sleepers = this.#sleepers.get(index);
      if (!sleepers) this.#sleepers.set(index, [resolve]);
      else sleepers.push(resolve);
    });
  }

  notify(_words: Int32Array, index: number): void {
    const sleepers = this.#sleepers.get(index) ?? [];
    this.#sleepers.delete(index);
    for (const wake of sleepers) wake();
    this.#rung(index);
  }
}
