/**
 * Sleeping and waking between processes: the futex of Linux on one mapping. See `spec/wait.md`.
 *
 * @module
 */

import { WAIT_SLICE_MS, WAKE_MECHANISM_FUTEX } from "../layout.ts";
import type { Mechanism } from "../wait.ts";
import { futexWait, futexWaitAsync, futexWake } from "./libc.ts";
import type { Mapping } from "./mapping.ts";

/**
 * Most asynchronous sleeps of a thread at once; the endpoints that come on top poll. Each takes one
 * of the 32 threads that Deno has for the whole process, and on which asynchronous file access
 * waits as well: with 32 asleep, a `Deno.stat` took as long as they slept (measured, Deno 2.9).
 */
const ASLEEP_MAX = 8;

let asleep = 0;

/** Threads, of any process, that have mapped the same file. */
export class FutexMechanism implements Mechanism {
  readonly rings: number = WAKE_MECHANISM_FUTEX;
  readonly sleeps: number = WAKE_MECHANISM_FUTEX;
  /** Deno has no thread that must not. */
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
    return futexWait(this.#addressOf(words, index), expected, Math.min(ms, WAIT_SLICE_MS));
  }

  sleepAsync(
    words: Int32Array,
    index: number,
    expected: number,
    ms: number,
    keep: boolean = true,
  ): Promise<unknown> | undefined {
    // The thread would keep the process alive: whoever must not do that polls.
    if (!keep || asleep >= ASLEEP_MAX) return undefined;
    const address = this.#addressOf(words, index);
    const span = Math.min(ms, WAIT_SLICE_MS);
    const end = performance.now() + span;
    asleep++;
    return futexWaitAsync(address, expected, span).then(() => {
      asleep--;
      return performance.now() < end ? "ok" : "timed-out";
    });
  }

  /** Returns how many it has woken. */
  notify(words: Int32Array, index: number): number {
    return futexWake(this.#addressOf(words, index));
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
  #addressOf(words: Int32Array, index: number): bigint {
    if (words.buffer !== this.#mapping.buffer) {
      throw new TypeError("Cannot wait: the mechanism of a file is for the segment in that file");
    }
    return this.#mapping.address + BigInt(words.byteOffset + index * 4);
  }
}
