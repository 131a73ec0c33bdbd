/**
 * How the two endpoints of a private segment, both of one thread, wait for one another. See
 * `spec/wait.md`.
 *
 * @module
 */

import { WAKE_MECHANISM_AGENT } from "./layout.ts";
import type { Mechanism } from "./wait.ts";

/** Sleeps as promises alone: whoever could wake a thread that blocks is that thread. */
export class LocalMechanism implements Mechanism {
  readonly rings = WAKE_MECHANISM_AGENT;
  readonly sleeps = WAKE_MECHANISM_AGENT;
  readonly blocks = false;
  /** Who sleeps, by the index of the word. */
  readonly #sleepers: Map<number, (() => void)[]> = new Map();
  readonly #rung: (index: number) => void;

  /** Makes one that tells of every ring, by the index of the bell. */
  constructor(rung: (index: number) => void) {
    this.#rung = rung;
  }

  /** Never called: such a thread does not block. */
  sleep(): void {}

  sleepAsync(words: Int32Array, index: number, expected: number): Promise<unknown> {
    // No other thread can change the word between this look and the sleep.
    if (words[index] !== expected) return Promise.resolve();
    return new Promise<void>((resolve) => {
      const sleepers = this.#sleepers.get(index);
      if (sleepers === undefined) this.#sleepers.set(index, [resolve]);
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
