/**
 * All that one endpoint waits for while its event loop turns: one sleep on the bell, one timer for
 * the slices, and a wake for those alone for whom something has come. See `spec/wait.md`.
 *
 * @module
 */

import { ENDPOINT_RECORD_SIZE, ENDPOINT_RUNG_WORD, WAIT_POLL_MS } from "./layout.ts";
import { now, type Segment } from "./segment.ts";
import { found, type Mechanism, type Waitable } from "./wait.ts";
import { DEAF, type Endpoint, SHORT } from "./wait_endpoint.ts";
import { giveWay, keepAlive, noteTurn, remove, repeat, until } from "./wait_task.ts";

/** A peer that cannot ring, or a runtime without `waitAsync`, is looked at this often. */
export const POLL_ASYNC_MS: number = WAIT_POLL_MS - 1;

/** The asynchronous sleeps of one thread on one word: one at a time. [wait.async_one] */
export interface Sleeper {
  /** Whether a sleep is outstanding, also one whose caller has gone. */
  readonly isAsleep: boolean;
  /**
   * Sees to it that a sleep is outstanding while the word holds `expected`; false where there are
   * no such sleeps. One that waits for an older value of a bell is about to be woken; on the signal
   * of a mailbox a side sleeps with one value only.
   */
  listen(expected: number, ms: number, keep: boolean): boolean;
}

/** Makes one; `woken` is called behind each sleep, and told whether its own time has ended it. */
export function makeSleeper(
  mechanism: Mechanism,
  words: Int32Array,
  index: number,
  woken: (isOver: boolean) => void,
): Sleeper {
  // Made once: a stream has a sleep for each message.
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

/** Up to so many waits are looked at each time: to find out which of them rang costs as much. */
const FEW = 4;

/** Why those that wait are looked at: the bell rang, nothing but a slice is over, or anything. */
const RUNG = 0;
const SLICE = 1;
const ASKED = 2;
type Why = typeof RUNG | typeof SLICE | typeof ASKED;

/** One wait. It is over when it is woken. */
export interface Waiter {
  readonly what: Waitable;
  /** Something may be there, or a state has changed. No code of the application's may run here. */
  wake(): void;
}

/** The asynchronous waits of an endpoint. */
export class Watch {
  readonly #endpoint: Endpoint;
  readonly #sleeper: Sleeper;
  /** Who rang; for an endpoint with many peers, whose owner sets it. */
  rung: Rung | undefined;
  /** All of them are armed. */
  readonly #waiters: Waiter[] = [];
  /** Those who wait for what rings nobody. */
  readonly #resting: Waiter[] = [];
  /** The bell, before anything was armed, or found to be armed still. [wait.bell_first] */
  #bell = 0;
  /** What the peers of those that wait demand of all sleeps. */
  #demands = 0;
  /** Those who keep the process alive, and those who stay. */
  #keeperCount = 0;
  #dwellerCount = 0;
  /** The timer of the slices: 0 ms where there is none. */
  #stopTimer: (() => void) | undefined;
  #timerMs = 0;

  /** Makes the watch of an endpoint, whose bell is the word with that index. */
  constructor(endpoint: Endpoint, words: Int32Array, bell: number) {
    this.#endpoint = endpoint;
    const woken = (isOver: boolean) => this.look(isOver ? SLICE : RUNG);
    this.#sleeper = makeSleeper(endpoint.mechanism, words, bell, woken);
  }

  /** Whether the bell has moved since all that wait were looked at. */
  get isRung(): boolean {
    return this.#waiters.length > 0 && this.#endpoint.bell() !== this.#bell;
  }

  /**
   * Begins a stay, of who waits for this peer again and again; `keep` says whether the process
   * lives so long. While there are any, a sleep has no end of its own: to give it one took a part
   * of an echo between two event loops (measured: Deno 2.9, Node 24).
   */
  dwell(peer: number, keep: boolean): void {
    this.#dwellerCount++;
    this.#keep(1, keep);
    this.#demands |= this.#endpoint.demands({ peer });
    this.#setTimer();
  }

  /** Ends what `dwell` has begun with the same `keep`. */
  depart(keep: boolean): void {
    const endpoint = this.#endpoint;
    this.#dwellerCount--;
    this.#keep(-1, keep);
    if (this.#dwellerCount > 0 || !this.#sleeper.isAsleep || endpoint.hasEnded()) return;
    endpoint.ring(endpoint.index);
  }

  /** Begins a wait, of who dwells here. False: something is there already, and it has not begun. */
  add(waiter: Waiter): boolean {
    const endpoint = this.#endpoint;
    const waiters = this.#waiters;
    const { what } = waiter;
    endpoint.settle();
    const isFirst = waiters.length === 0;
    if (isFirst) {
      this.#bell = endpoint.bell();
      this.#demands = 0;
    }
    what.arm();
    // [wait.recheck] Without this look, a cursor stored just before the arming is missed.
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
   * Begins a wait for what another call of this thread may do. It arms nothing, and ends with the
   * slice, or where somebody has this watch look.
   */
  rest(waiter: Waiter): void {
    this.#resting.push(waiter);
    this.#setTimer();
  }

  /** Gives a wait up. Returns whether it was one. */
  remove(waiter: Waiter): boolean {
    if (remove(this.#resting, waiter)) return true;
    if (!remove(this.#waiters, waiter)) return false;
    waiter.what.disarm();
    return true;
  }

  /**
   * Waits until a cursor or a state may have changed; false at the deadline. Throws the reason of
   * an aborted signal.
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
   * Looks at all that wait, or at those alone whose peers have rung, and wakes the ones for whom
   * something has come. The others stay armed: to disarm and arm them took most of the time of a
   * hub with many clients. [wait.stay_armed] Others ask for it that have changed something.
   */
  look(why: Why = ASKED): void {
    const endpoint = this.#endpoint;
    const waiters = this.#waiters;
    if (why !== ASKED) endpoint.mechanism.checkPeers?.(); // [wait.liveness]
    if (why !== RUNG) { for (const waiter of this.#resting.splice(0)) waiter.wake(); }
    if (waiters.length === 0) return;
    const before = this.#bell;
    this.#bell = endpoint.bell();
    // A bell that rang may be answered, where many wait, by a look at those who rang it: nobody
    // waits who cannot ring, and all were looked at within a slice. [wait.rung_take]
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
    // A ring that this loop has not come to is not late.
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

  /** Notes who keeps the process alive; alone, a sleep would not. */
  #keep(change: 1 | -1, keep: boolean): void {
    if (!keep) return;
    this.#keeperCount += change;
    keepAlive(change);
  }

  /** Goes to sleep, or on sleeping; or polls, where a peer or this runtime wakes nobody so. */
  #sleep(): void {
    const ms = this.#dwellerCount > 0 ? Infinity : this.#endpoint.sliceMs(this.#demands);
    const isDeaf = (this.#demands & DEAF) !== 0 ||
      !this.#sleeper.listen(this.#bell, ms, this.#keeperCount > 0);
    if (isDeaf) this.#demands |= DEAF;
    this.#setTimer();
  }

  /** One timer for all. [wait.slice] */
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
 * Who has rung an endpoint, so that one with many peers looks at those alone. See `spec/wait.md`,
 * "Which ring rang".
 */
export class Rung {
  readonly #words: Int32Array;
  readonly #first: number;
  /** The bits that were taken out of the record. */
  readonly #bits: Int32Array;
  /** When all that wait were looked at last. */
  #lookedAt = -Infinity;

  /** For the record of one endpoint; bits of such as the segment does not have mean nobody. */
  constructor({ records, endpointCount }: Segment, index: number) {
    this.#words = records;
    this.#first = index * (ENDPOINT_RECORD_SIZE >> 2) + ENDPOINT_RUNG_WORD;
    this.#bits = new Int32Array(Math.ceil(endpointCount / 32));
  }

  /**
   * Takes the bits, behind a load of the bell. Returns whether all were looked at within so many
   * milliseconds; else they are to be looked at now. [wait.rung_take]
   */
  take(ms: number): boolean {
    const words = this.#words;
    const bits = this.#bits;
    for (let index = 0; index < bits.length; index++) {
      const at = this.#first + index;
      // Most are 0, which a load finds out for less.
      bits[index] = Atomics.load(words, at) === 0 ? 0 : Atomics.exchange(words, at, 0);
    }
    const time = now();
    if (time - this.#lookedAt < ms) return true;
    this.#lookedAt = time;
    return false;
  }

  /** Whether what is waited for may have come, or its peer's state have changed. */
  names({ peer, parts }: Waitable): boolean {
    if (parts !== undefined) return parts.some((part) => this.names(part));
    return (this.#bits[peer >> 5]! & (1 << (peer & 31))) !== 0;
  }
}
