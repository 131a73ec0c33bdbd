/**
 * All that one endpoint waits for while its event loop turns: one sleep on the bell, one timer for
 * the slices, and a wake for those alone for whom something has come. See `spec/wait.md`.
 *
 * @module
 */

import { ENDPOINT_STATE_VACANT } from "./layout.ts";
import { LONGEST_TIMER_MS, type Waitable } from "./wait.ts";
import type { Endpoint } from "./wait_endpoint.ts";
import { Rung } from "./wait_rung.ts";
import { isFinal } from "./wait_state.ts";
import { Sleeper, type Wake } from "./wait_sleeper.ts";
import { repeat } from "./wait_task.ts";

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
  /** Who rang, for many that wait. */
  #rung: Rung | undefined;
  /** When all that wait were looked at last. */
  #lookedAt = -Infinity;
  /** All of them are armed. */
  readonly #waiters: Waiter[] = [];
  /** Those who wait for what rings nobody. */
  #resting: Waiter[] = [];
  /** The bell, before anything was armed, or found to be armed still. [wait.bell_first] */
  #bell = 0;
  #isListening = false;
  #isPausing = false;
  /** Whether a peer of a waiter cannot ring this endpoint, and whether one is vacant. */
  #isDeaf = false;
  #isShort = false;
  /** Attached peers that are known to be able to: they say so once. */
  readonly #ringers = new Set<number>();
  /** Who may wait, of them those who keep the process alive, and those who stay. */
  #userCount = 0;
  #keeperCount = 0;
  #dwellerCount = 0;
  #stopTimer: (() => void) | undefined;
  #timerMs = 0;
  #timerKeeps = false;
  // Made once: a stream has a sleep for each message.
  readonly #woken: Wake = (isOver) => {
    this.#isListening = false;
    this.#wake(isOver === true ? SLICE : RUNG);
  };
  readonly #paused = (): void => {
    this.#isPausing = false;
    this.#wake(ASKED);
  };

  /** Makes the watch of an endpoint, whose bell is the word with that index. */
  constructor(endpoint: Endpoint, words: Int32Array, bell: number) {
    this.#endpoint = endpoint;
    this.#sleeper = new Sleeper(endpoint.mechanism, words, bell);
  }

  /** Lets the event loop turn if it has not for a while: a flood must not starve it. */
  giveWay(): Promise<void> | undefined {
    return this.#sleeper.giveWay();
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
    this.#enter(keep);
    if (this.#endpoint.isVacant(peer)) this.#isShort = true;
    this.#setTimer();
  }

  /** Ends what `dwell` has begun with the same `keep`. */
  depart(keep: boolean): void {
    this.#dwellerCount--;
    this.#leave(keep);
    if (this.#dwellerCount > 0 || !this.#sleeper.asleep || this.#endpoint.hasEnded()) return;
    this.#endpoint.ring(this.#endpoint.index);
  }

  /** Begins a wait. False: something is there already, and it has not begun. */
  add(waiter: Waiter): boolean {
    const endpoint = this.#endpoint;
    const { what } = waiter;
    endpoint.settle();
    if (!this.#isAsleep()) this.#bell = endpoint.bell();
    if (this.#waiters.length === 0) this.#isDeaf = this.#isShort = false;
    what.arm();
    // [wait.recheck] Without this look, a cursor stored just before the arming is missed.
    const { peer } = what;
    const state = endpoint.stateOf(peer);
    if (what.look() || isFinal(state) || endpoint.hasEnded()) {
      what.disarm();
      return false;
    }
    this.#waiters.push(waiter);
    const isDeaf = this.#isDeaf;
    this.#note(peer, state);
    try {
      if (!this.#isAsleep() || this.#isDeaf !== isDeaf) this.#sleep();
      else this.#setTimer();
    } catch (error) {
      this.remove(waiter);
      throw error;
    }
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
    if (take(this.#resting, waiter)) return true;
    if (!take(this.#waiters, waiter)) return false;
    waiter.what.disarm();
    return true;
  }

  /**
   * Waits, so many milliseconds at most, or until the signal aborts, which it does not report.
   * Undefined where something is there already.
   */
  wait(what: Waitable, ms: number, signal: AbortSignal | undefined): Promise<void> | undefined {
    let resolve!: () => void;
    const over = new Promise<void>((settle) => resolve = settle);
    let timer: ReturnType<typeof setTimeout> | undefined;
    const stop = () => {
      if (this.remove(waiter)) waiter.wake();
    };
    const waiter: Waiter = {
      what,
      wake: () => {
        clearTimeout(timer);
        signal?.removeEventListener("abort", stop);
        this.#leave(true);
        resolve();
      },
    };
    this.#enter(true);
    let isWaiting = false;
    try {
      isWaiting = this.add(waiter);
    } finally {
      if (!isWaiting) this.#leave(true);
    }
    if (!isWaiting) return undefined;
    if (ms < Infinity) timer = setTimeout(stop, Math.min(ms, LONGEST_TIMER_MS));
    signal?.addEventListener("abort", stop);
    return over;
  }

  /** Another call of this thread has changed something: looks whom it wakes. */
  look(): void {
    this.#lookAll(ASKED);
  }

  #lookAll(why: Why): void {
    const resting = this.#resting;
    this.#resting = [];
    for (const waiter of resting) waiter.wake();
    this.#look(why);
  }

  /**
   * Whether a bell that rang may be answered, where many wait, by a look at those who rang it:
   * nobody waits who cannot ring, and all were looked at within a slice. [wait.rung_take]
   */
  #mayLookAtSome(): boolean {
    return !this.#isDeaf && performance.now() - this.#lookedAt < this.#timerMs;
  }

  /**
   * Looks at all that wait, or at those alone whose peers have rung, and wakes the ones for whom
   * something has come. The others stay armed: to disarm and arm them took most of the time of a
   * hub with many clients. [wait.stay_armed]
   */
  #look(why: Why): void {
    if (this.#waiters.length === 0) return;
    const endpoint = this.#endpoint;
    const isMany = this.#waiters.length > FEW;
    const isSome = isMany && why === RUNG && this.#mayLookAtSome();
    const before = this.#bell;
    this.#bell = endpoint.bell();
    const isOver = endpoint.hasEnded();
    if (!isSome) this.#isDeaf = this.#isShort = false;
    const rung = isMany ? this.#rung ??= new Rung(endpoint.segment, endpoint.index) : undefined;
    if (rung !== undefined) {
      rung.take();
      if (!isSome) this.#lookedAt = performance.now();
    }
    const waiters = this.#waiters;
    const woken: Waiter[] = [];
    let left = 0;
    for (const waiter of waiters) {
      const { what } = waiter;
      if (isSome && !isOver && !rung!.names(what)) {
        waiters[left++] = waiter;
        continue;
      }
      what.stayArmed();
      const { peer } = what;
      const state = endpoint.stateOf(peer);
      if (isOver || what.look() || isFinal(state)) woken.push(waiter);
      else {
        waiters[left++] = waiter;
        this.#note(peer, state);
      }
    }
    waiters.length = left;
    // A ring that this loop has not come to is not late.
    if (why === SLICE && woken.length > 0 && this.#bell === before) endpoint.countLateWake();
    for (const waiter of woken) {
      waiter.what.disarm();
      waiter.wake();
    }
    if (left > 0) this.#sleep();
  }

  /** Behind a sleep. [wait.liveness] */
  #wake(why: Why): void {
    this.#endpoint.mechanism.checkPeers?.();
    this.#look(why);
  }

  #enter(keep: boolean): void {
    this.#userCount++;
    if (keep) this.#keeperCount++;
  }

  #leave(keep: boolean): void {
    this.#userCount--;
    if (keep) this.#keeperCount--;
    if (this.#userCount > 0) return this.#setTimer();
    this.#stopTimer?.();
    this.#stopTimer = undefined;
    this.#sleeper.rouse(); // ends a pause
  }

  #isAsleep(): boolean {
    return this.#isListening || this.#isPausing;
  }

  /** What the peer of a waiter demands of all sleeps. */
  #note(peer: number, state: number): void {
    if (state === ENDPOINT_STATE_VACANT) {
      this.#isShort = true;
      this.#ringers.delete(peer);
    } else if (!this.#ringers.has(peer)) {
      if (this.#endpoint.wakeable(peer)) this.#ringers.add(peer);
      else this.#isDeaf = true;
    }
  }

  /** Goes to sleep, or on sleeping. */
  #sleep(): void {
    const endpoint = this.#endpoint;
    endpoint.countPark();
    this.#setTimer();
    const keep = this.#keeperCount > 0;
    if (!this.#isDeaf) {
      if (this.#isListening) return;
      const ms = this.#dwellerCount > 0 ? Infinity : this.#timerMs;
      this.#isListening = this.#sleeper.listen(this.#bell, ms, keep, this.#woken);
      if (this.#isListening) return;
    }
    if (this.#isPausing) return;
    this.#isPausing = true;
    this.#sleeper.pause(keep).then(this.#paused); // [wait.poll]
  }

  /** One timer for all. Alone, a sleep would not keep the process alive. [wait.slice] */
  #setTimer(): void {
    const ms = this.#endpoint.sliceMs(this.#isShort || this.#resting.length > 0);
    const keeps = this.#keeperCount > 0;
    if (this.#stopTimer !== undefined && ms === this.#timerMs && keeps === this.#timerKeeps) return;
    this.#stopTimer?.();
    this.#stopTimer = repeat(() => this.#tick(), ms, keeps);
    this.#timerMs = ms;
    this.#timerKeeps = keeps;
  }

  #tick(): void {
    this.#endpoint.mechanism.checkPeers?.(); // [wait.liveness]
    this.#lookAll(this.#isListening ? SLICE : ASKED);
  }
}

function take(waiters: Waiter[], waiter: Waiter): boolean {
  const index = waiters.indexOf(waiter);
  if (index >= 0) waiters.splice(index, 1);
  return index >= 0;
}
