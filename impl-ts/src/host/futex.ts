/**
 * Sleeping and waking between processes: the futex of Linux on one mapping. See `spec/wait.md`.
 *
 * @module
 */

import { WAIT_SLICE_MS, WAKE_MECHANISM_FUTEX } from "../layout.ts";
import type { Mechanism } from "../wait.ts";
import { hostCalls } from "./calls.ts";
import type { Mapping } from "./mapping.ts";
import { ETIMEDOUT } from "./system_error.ts";

/** Threads, of any process, that have mapped the same file. */
export class FutexMechanism implements Mechanism {
  readonly rings: number = WAKE_MECHANISM_FUTEX;
  readonly sleeps: number = WAKE_MECHANISM_FUTEX;
  /** Deno and Node have no thread that must not. */
  readonly blocks: boolean = true;
  readonly #mapping: Mapping;
  readonly #check: () => void;
  /** Whether the owner of an endpoint lives. */
  readonly isAlive: (endpoint: number) => boolean;
  #nextCheck = 0;

  /** `check` looks whether the peers live; it is called about once a slice while anybody waits. */
  constructor(mapping: Mapping, check: () => void, isAlive: (endpoint: number) => boolean) {
    this.#mapping = mapping;
    this.#check = check;
    this.isAlive = isAlive;
  }

  sleep(words: Int32Array, index: number, expected: number, ms: number): boolean {
    const span = Math.min(ms, WAIT_SLICE_MS);
    const offset = this.#offsetOf(words, index);
    return hostCalls().sleep(this.#mapping.memory, offset, expected, span) !== -ETIMEDOUT;
  }

  sleepAsync(
    words: Int32Array,
    index: number,
    expected: number,
    ms: number,
    keep: boolean = true,
  ): Promise<unknown> | undefined {
    const span = Math.min(ms, WAIT_SLICE_MS);
    const offset = this.#offsetOf(words, index);
    const sleep = hostCalls().sleepAsync(this.#mapping.memory, offset, expected, span, keep);
    return sleep?.then((woken) => woken ? "ok" : "timed-out");
  }

  /** Returns how many it has woken. */
  notify(words: Int32Array, index: number): number {
    return hostCalls().wake(this.#mapping.memory, this.#offsetOf(words, index));
  }

  checkPeers(): void {
    // By the clock and not by what ended the sleep: a bell that others ring ends no slice, and an
    // endpoint that polls has many.
    const now = performance.now();
    if (now < this.#nextCheck) return;
    this.#nextCheck = now + WAIT_SLICE_MS / 2;
    this.#check();
  }

  /** The futex of another mapping would be elsewhere: a sleep there would end at once, for ever. */
  #offsetOf(words: Int32Array, index: number): number {
    if (words.buffer !== this.#mapping.buffer) {
      throw new TypeError("Cannot wait: the mechanism of a file is for the segment in that file");
    }
    return words.byteOffset + index * 4;
  }
}
