/**
 * How an event loop sleeps on a word: as promises, of which all that wait share one sleep. See
 * `spec/wait.md`.
 *
 * @module
 */

import { WAIT_POLL_MS, WAIT_SLICE_MS } from "./layout.ts";
import type { Mechanism } from "./wait.ts";
import { nextTask, unref } from "./wait_task.ts";

/** An event loop that is kept busy by what arrives at once turns after so long. */
const GIVE_WAY_MS = 8;
/** A vacant peer, or a runtime without waitAsync, is looked at this often. */
const POLL_ASYNC_MS = WAIT_POLL_MS - 1;

/** Ends a sleep; `true` says that its own time did. */
export type Wake = (isOver?: unknown) => void;

/** The asynchronous sleeps of one thread on one word. */
export class Sleeper {
  readonly #mechanism: Mechanism;
  readonly #words: Int32Array;
  readonly #index: number;
  #asleep = false;
  /** When the event loop turned last, as far as this object knows; -1 just after a sleep. */
  #turned = -1;
  #wakes: Wake[] = [];

  /** Makes the sleeper of the word `index`. */
  constructor(mechanism: Mechanism, words: Int32Array, index: number) {
    this.#mechanism = mechanism;
    this.#words = words;
    this.#index = index;
  }

  /** Whether a sleep is outstanding on the word, also one whose caller has gone. */
  get asleep(): boolean {
    return this.#asleep;
  }

  /** Ends all sleeps, so that each caller looks again. */
  rouse(isOver: boolean = false): void {
    const wakes = this.#wakes;
    this.#wakes = [];
    for (const wake of wakes) wake(isOver);
  }

  /**
   * Sleeps while the word holds `expected`, at most `ms` milliseconds, or until the signal aborts,
   * which it does not report; `wake` is called then, with `true` where only the time has ended it
   * and the peer could have. Where there are no such sleeps, it is a short pause.
   */
  sleep(expected: number, ms: number, signal: AbortSignal | undefined, wake: Wake): void {
    if (this.#listen(expected, ms, true)) this.rest(ms, signal, true).then(wake);
    else this.rest(Math.min(ms, POLL_ASYNC_MS), signal, true).then(() => wake());
  }

  /**
   * Sees to it that a sleep is outstanding on the word, whose end calls `wake`; false where there
   * are no such sleeps. It keeps no process alive: who waits holds a timer, which ends the slices.
   */
  listen(expected: number, ms: number, keep: boolean, wake: Wake): boolean {
    this.#turned = -1; // by the time that it ends
    if (!this.#listen(expected, ms, keep)) return false;
    this.#wakes.push(wake);
    return true;
  }

  /** Waits as long as an endpoint that polls may. [wait.poll] */
  pause(keep: boolean): Promise<unknown> {
    return this.rest(POLL_ASYNC_MS, undefined, keep);
  }

  /**
   * Waits for so many milliseconds, for the signal, or until it is roused. Resolves with whether
   * the time was up.
   */
  rest(ms: number, signal: AbortSignal | undefined, keep: boolean): Promise<boolean> {
    this.#turned = -1; // by the time that it ends
    return new Promise((resolve) => {
      const wake: Wake = (isOver) => {
        const index = this.#wakes.indexOf(wake);
        if (index >= 0) this.#wakes.splice(index, 1);
        clearTimeout(timer);
        signal?.removeEventListener("abort", wake);
        resolve(isOver === true);
      };
      // Alone, a pending waitAsync does not keep the event loop of Deno or Node alive
      // (measured: Deno 2.9, Node 20). A timer does.
      const timer = setTimeout(wake, ms, true);
      if (!keep) unref(timer);
      this.#wakes.push(wake);
      signal?.addEventListener("abort", wake);
    });
  }

  /** Lets the event loop turn if it has not for a while: a flood must not starve it. */
  giveWay(): Promise<void> | undefined {
    const now = performance.now();
    if (this.#turned < 0) this.#turned = now;
    if (now - this.#turned < GIVE_WAY_MS) return undefined;
    return nextTask(true).then(() => void (this.#turned = -1));
  }

  /** Sees to it that one asynchronous sleep is outstanding on the word. False: poll instead. */
  #listen(expected: number, ms: number, keep: boolean): boolean {
    // [wait.async_one] One that waits for an older value of a bell is about to be woken; on the
    // signal of a mailbox a side sleeps with one value only.
    if (this.#asleep) return true;
    const most = Math.max(ms, WAIT_SLICE_MS);
    const sleep = this.#mechanism.sleepAsync(this.#words, this.#index, expected, most, keep);
    if (sleep === undefined) return false;
    this.#asleep = true;
    const over = (how: unknown) => {
      this.#asleep = false;
      this.rouse(how === "timed-out");
    };
    sleep.then(over, over);
    return true;
  }
}
