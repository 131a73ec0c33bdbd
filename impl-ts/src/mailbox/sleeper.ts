/**
 * The sleep of an event loop on one word. See `spec/mailbox.md`.
 *
 * @module
 */

import { layout } from "../memory/layout.ts";
import { noteTurn } from "../wait/loop.ts";
import type { Mechanism } from "../wait/mechanism.ts";

/** How often an event loop looks if nothing can ring it. A timer fires up to 1 ms late. */
export const POLL_ASYNC_MS: number = layout.WAIT_POLL_MS - 1;

/** The asynchronous sleeps of one thread on one word, at most one at a time. [wait.async_one] */
export interface Sleeper {
  /** Whether a sleep is outstanding, including one whose caller no longer waits. */
  readonly isAsleep: boolean;
  /**
   * Makes sure that a sleep is outstanding while the word holds `expected`. Returns false where
   * asynchronous sleeps are missing. A sleep that waits for an older value of a bell may stay: it
   * is about to be woken. On the signal word of a mailbox, a side always sleeps with the same
   * value.
   */
  listen(expected: number, ms: number, keep: boolean): boolean;
}

/** Makes a sleeper. `woken` is called after each sleep, with true if only its timeout ended it. */
export function makeSleeper(
  mechanism: Mechanism,
  words: Int32Array,
  index: number,
  woken: (isOver: boolean) => void,
): Sleeper {
  // Created once and not for each sleep, because a stream sleeps once for each message.
  const over = (how: unknown) => {
    sleeper.isAsleep = false;
    noteTurn();
    woken(how === "timed-out");
  };
  const sleeper = {
    isAsleep: false,
    listen(expected: number, ms: number, keep: boolean) {
      if (sleeper.isAsleep) return true;
      const sleep = mechanism.sleepAsync(words, index, expected, ms, keep);
      sleep?.then(over, over);
      return sleeper.isAsleep = sleep !== undefined;
    },
  };
  return sleeper;
}
