/**
 * Everything that one endpoint waits for while its event loop turns. All waits share one sleep on
 * the bell and one timer for the slices, and only those waits are woken for which something has
 * come. See `spec/wait.md`.
 *
 * @module
 */

import { ENDPOINT_RECORD_SIZE, ENDPOINT_RUNG_WORD, WAIT_POLL_MS } from "../memory/layout.ts";
import { now, type Segment } from "../memory/segment.ts";
import { found, type Mechanism, type Waitable } from "./wait.ts";
import { DEAF, type Endpoint, SHORT } from "./endpoint.ts";
import { giveWay, keepAlive, noteTurn, remove, repeat, until } from "./task.ts";

/**
 * How often an event loop looks at a peer that cannot ring it, or in a runtime without `waitAsync`.
 */
export const POLL_ASYNC_MS: number = WAIT_POLL_MS - 1;

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

/**
 * With more waits than this, only those whose peers rang are looked at. With so few, to find out
 * who rang costs as much as to look at all of them.
 */
const FEW = 4;

/**
 * Why the waits are looked at: the bell rang, only the slice has ended, or other code asks for it.
 */
const RUNG = 0;
const SLICE = 1;
const ASKED = 2;
type Why = typeof RUNG | typeof SLICE | typeof ASKED;

/** One wait of an endpoint. It is over when `wake` has been called. */
export interface Waiter {
  readonly what: Waitable;
  /**
   * Called when something may be there, or a state has changed. It must not run application code.
   */
  wake(): void;
}

/** The asynchronous waits of an endpoint. */
export class Watch {
  readonly #endpoint: Endpoint;
  readonly #sleeper: Sleeper;
  /** Tells which peers have rung. Set by the owner of an endpoint with many peers. */
  rung: Rung | undefined;
  /** The waits that have armed their `wants` and sleep on the bell. */
  readonly #waiters: Waiter[] = [];
  /** The waits for something that no ring announces. */
  readonly #resting: Waiter[] = [];
  /**
   * The value of the bell, loaded before any of the waits was armed, or checked that it is still
   * armed. [wait.bell_first]
   */
  #bell = 0;
  /** What the peers of the waits demand of every sleep: the bits of `Endpoint.demands`. */
  #demands = 0;
  /** How many waits and stays keep the process alive, and how many stays (`dwell`) there are. */
  #keeperCount = 0;
  #dwellerCount = 0;
  /** Stops the timer of the slices, whose period is the field below; 0 ms if there is no timer. */
  #stopTimer: (() => void) | undefined;
  #timerMs = 0;

  /** Makes the watch of an endpoint. `bell` is the index of its bell in `words`. */
  constructor(endpoint: Endpoint, words: Int32Array, bell: number) {
    this.#endpoint = endpoint;
    const woken = (isOver: boolean) => this.look(isOver ? SLICE : RUNG);
    this.#sleeper = makeSleeper(endpoint.mechanism, words, bell, woken);
  }

  /** Whether the bell has moved since all the waits were looked at. */
  get isRung(): boolean {
    return this.#waiters.length > 0 && this.#endpoint.bell() !== this.#bell;
  }

  /**
   * Begins a stay: its caller is going to wait for this peer again and again, until `depart`.
   * `keep` says whether the stay keeps the process alive. During any stay a sleep has no timeout of
   * its own, because to give it one took a noticeable part of an echo between two event loops
   * (measured: Deno 2.9, Node 24).
   */
  dwell(peer: number, keep: boolean): void {
    this.#dwellerCount++;
    this.#keep(1, keep);
    this.#demands |= this.#endpoint.demands({ peer });
    this.#setTimer();
  }

  /** Ends a stay that `dwell` began with the same `keep`. */
  depart(keep: boolean): void {
    const endpoint = this.#endpoint;
    this.#dwellerCount--;
    this.#keep(-1, keep);
    if (this.#dwellerCount > 0 || !this.#sleeper.isAsleep || endpoint.hasEnded()) return;
    endpoint.ring(endpoint.index);
  }

  /** Begins a wait during a stay. Returns false, and begins none, if something is there already. */
  add(waiter: Waiter): boolean {
    const endpoint = this.#endpoint;
    const waiters = this.#waiters;
    const { what } = waiter;
    if (endpoint.isDetached) return false;
    endpoint.settle();
    const isFirst = waiters.length === 0;
    if (isFirst) {
      this.#bell = endpoint.bell();
      this.#demands = 0;
    }
    what.arm();
    // [wait.recheck] Without this look, a cursor stored just before the arming would be missed.
    if (found(what)) {
      what.disarm();
      return false;
    }
    waiters.push(waiter);
    this.#demands |= endpoint.demands(what);
    if (isFirst) endpoint.parks++;
    this.#sleep();
    return true;
  }

  /**
   * Begins a wait for something that another call of this thread may do. It arms no `wants`, and
   * ends at the end of the slice or when other code of this thread calls `look`.
   */
  rest(waiter: Waiter): void {
    this.#resting.push(waiter);
    this.#setTimer();
  }

  /** Ends a wait before anything has come. Returns whether the waiter was waiting. */
  remove(waiter: Waiter): boolean {
    if (remove(this.#resting, waiter)) return true;
    if (!remove(this.#waiters, waiter)) return false;
    waiter.what.disarm();
    return true;
  }

  /**
   * Waits until a cursor or a state may have changed. Resolves with false at the deadline. Throws
   * the signal's reason if the signal aborts.
   */
  async wait(
    what: Waitable,
    deadline: number,
    signal: AbortSignal | undefined,
  ): Promise<boolean> {
    signal?.throwIfAborted();
    const left = deadline < Infinity ? deadline - now() : deadline;
    if (!(left > 0)) return found(what);
    const waiter = { what, wake() {} };
    this.#keep(1, true);
    try {
      if (this.add(waiter)) await until(left, signal, (end) => waiter.wake = end);
      else await giveWay();
    } finally {
      this.remove(waiter);
      this.#keep(-1, true);
    }
    signal?.throwIfAborted();
    return true;
  }

  /**
   * Looks at all the waits, or only at those whose peers have rung, and wakes those for which
   * something has come. The other waits stay armed: to disarm and arm them again took most of the
   * time of a hub with many clients. [wait.stay_armed] Other code calls it after it has changed
   * something that a wait may wait for.
   */
  look(why: Why = ASKED): void {
    const endpoint = this.#endpoint;
    const waiters = this.#waiters;
    if (why !== ASKED) endpoint.mechanism.checkPeers?.(); // [wait.liveness]
    if (why !== RUNG) { for (const waiter of this.#resting.splice(0)) waiter.wake(); }
    if (waiters.length === 0) return;
    if (endpoint.isDetached) { // whoever looks for something now finds that out
      for (const waiter of waiters.splice(0)) waiter.wake();
      return;
    }
    const before = this.#bell;
    this.#bell = endpoint.bell();
    // If the bell rang and there are many waits, it is enough to look at those whose peers rang it,
    // provided that no peer is unable to ring and that all were looked at within a slice.
    // [wait.rung_take]
    const polls = (this.#demands & DEAF) !== 0;
    const mayBeSome = why === RUNG && !polls && !endpoint.hasEnded();
    const rung = waiters.length > FEW ? this.rung : undefined;
    const isSome = rung !== undefined && rung.take(mayBeSome ? this.#timerMs : 0);
    if (!isSome) this.#demands = 0;
    const woken: Waiter[] = [];
    let left = 0;
    for (const waiter of waiters) {
      const { what } = waiter;
      let isFound = false;
      if (!isSome || rung.names(what)) {
        what.stayArmed();
        isFound = found(what);
        if (!isFound) this.#demands |= endpoint.demands(what);
      }
      if (isFound) woken.push(waiter);
      else waiters[left++] = waiter;
    }
    waiters.length = left;
    // If the bell has moved, its ring was not lost: this event loop has just not come to it yet.
    const isLate = why === SLICE && !polls && this.#bell === before;
    if (isLate && woken.length > 0) endpoint.lateWakes++;
    for (const waiter of woken) {
      waiter.what.disarm();
      waiter.wake();
    }
    if (left === 0) return;
    endpoint.parks++;
    this.#sleep();
  }

  /** Counts the waits that keep the process alive. A sleep alone would not keep it alive. */
  #keep(change: 1 | -1, keep: boolean): void {
    if (!keep) return;
    this.#keeperCount += change;
    keepAlive(change);
  }

  /**
   * Goes to sleep, or goes on sleeping. It polls instead where a peer cannot ring this endpoint, or
   * the runtime has no asynchronous sleep.
   */
  #sleep(): void {
    const ms = this.#dwellerCount > 0 ? Infinity : this.#endpoint.sliceMs(this.#demands);
    const isDeaf = (this.#demands & DEAF) !== 0 ||
      !this.#sleeper.listen(this.#bell, ms, this.#keeperCount > 0);
    if (isDeaf) this.#demands |= DEAF;
    this.#setTimer();
  }

  /** Sets the one timer that all the waits share. [wait.slice] */
  #setTimer(): void {
    const demands = this.#demands;
    const slice = this.#endpoint.sliceMs(this.#resting.length > 0 ? SHORT : demands);
    const ms = (demands & DEAF) === 0 ? slice : POLL_ASYNC_MS; // [wait.poll]
    if (ms === this.#timerMs) return;
    this.#stopTimer?.();
    this.#stopTimer = repeat(() => this.#tick(), ms);
    this.#timerMs = ms;
  }

  #tick(): void {
    if (this.#waiters.length + this.#resting.length + this.#dwellerCount > 0) this.look(SLICE);
    else {
      this.#stopTimer!();
      this.#timerMs = 0;
    }
  }
}

/**
 * Records which peers have rung an endpoint, so that an endpoint with many peers looks at those
 * alone. See `spec/wait.md`, "Which ring rang".
 */
export class Rung {
  readonly #words: Int32Array;
  readonly #first: number;
  /** The bits that the last `take` took out of the endpoint's record. */
  readonly #bits: Int32Array;
  /** The time at which all the waits were looked at last. */
  #lookedAt = -Infinity;

  /** Reads the record of one endpoint. It ignores bits above the segment's endpoint count. */
  constructor({ records, endpointCount }: Segment, index: number) {
    this.#words = records;
    this.#first = index * (ENDPOINT_RECORD_SIZE >> 2) + ENDPOINT_RUNG_WORD;
    this.#bits = new Int32Array(Math.ceil(endpointCount / 32));
  }

  /**
   * Takes the bits out of the record; the caller has loaded the bell before. Returns true if all
   * the waits were looked at within the last `ms` milliseconds; false asks the caller to look at
   * all of them now. [wait.rung_take]
   */
  take(ms: number): boolean {
    const words = this.#words;
    const bits = this.#bits;
    for (let index = 0; index < bits.length; index++) {
      const at = this.#first + index;
      // Most words are 0; a plain load of them is cheaper than an exchange.
      bits[index] = Atomics.load(words, at) === 0 ? 0 : Atomics.exchange(words, at, 0);
    }
    const time = now();
    if (time - this.#lookedAt < ms) return true;
    this.#lookedAt = time;
    return false;
  }

  /**
   * Whether a peer of this waitable has rung: what it waits for may have come, or the peer's state
   * may have changed.
   */
  names({ peer, parts }: Waitable): boolean {
    if (parts !== undefined) return parts.some((part) => this.names(part));
    return (this.#bits[peer >> 5]! & (1 << (peer & 31))) !== 0;
  }
}
