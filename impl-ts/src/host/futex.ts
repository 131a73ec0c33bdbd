/**
 * Sleeping and waking between processes, by the Linux futex on one mapping. See `spec/wait.md`.
 *
 * @module
 */

import { throwCannot } from "../error.ts";
import { now } from "../memory/clock.ts";
import { layout } from "../memory/layout.ts";
import type { Mechanism } from "../wait/mechanism.ts";
import { hostCalls } from "./calls.ts";
import type { Mapping } from "./mapping.ts";
import { ETIMEDOUT } from "./system_error.ts";

/** The mechanism for threads of any process that have mapped the same file. */
export class FutexMechanism implements Mechanism {
  readonly rings: number = layout.WAKE_MECHANISM_FUTEX;
  readonly sleeps: number = layout.WAKE_MECHANISM_FUTEX;
  /** Neither Deno nor Node has a thread that must not block. */
  readonly blocks: boolean = true;
  readonly #mapping: Mapping;
  readonly #check: () => void;
  /** Whether the owner of an endpoint is alive. */
  readonly isAlive: (endpoint: number) => boolean;
  #nextCheck = 0;

  /** `check` looks for dead peers. It is called about once a slice while any call waits. */
  constructor(mapping: Mapping, check: () => void, isAlive: (endpoint: number) => boolean) {
    this.#mapping = mapping;
    this.#check = check;
    this.isAlive = isAlive;
  }

  sleep(words: Int32Array, index: number, expected: number, ms: number): boolean {
    const span = Math.min(ms, layout.WAIT_SLICE_MS);
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
    const span = Math.min(ms, layout.WAIT_SLICE_MS);
    const offset = this.#offsetOf(words, index);
    const sleep = hostCalls().sleepAsync(this.#mapping.memory, offset, expected, span, keep);
    return sleep?.then((woken) => woken ? "ok" : "timed-out");
  }

  /** Wakes the sleepers, and returns their number. */
  notify(words: Int32Array, index: number): number {
    return hostCalls().wake(this.#mapping.memory, this.#offsetOf(words, index));
  }

  checkPeers(): void {
    // Timed by the clock, and not by the end of a sleep: other rings of the bell end sleeps early
    // without ending the slice, and an endpoint that polls has many short sleeps.
    const time = now();
    if (time < this.#nextCheck) return;
    this.#nextCheck = time + layout.WAIT_SLICE_MS / 2;
    this.#check();
  }

  /**
   * Returns the byte offset of a word. A word of another mapping is refused: a sleep on the wrong
   * word would end at once, again and again.
   */
  #offsetOf(words: Int32Array, index: number): number {
    if (words.buffer !== this.#mapping.buffer) {
      throwCannot("wait: the mechanism of a file is for the segment in that file");
    }
    return words.byteOffset + index * 4;
  }
}
