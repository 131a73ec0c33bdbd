/**
 * One thread's place in a segment: its bell, its state, and how it waits, blocking or on its event
 * loop. See `spec/segment.md` and `spec/wait.md`.
 *
 * @module
 */

import { forbidden, throwCannot, throwSegmentError } from "../error.ts";
import { layout } from "../memory/layout.ts";
import { isIndex, recordAt } from "../memory/plan.ts";
import { now } from "../memory/clock.ts";
import { type Segment, throwGone } from "../memory/segment.ts";
import { noteTurn, repeat } from "./loop.ts";
import { defaultMechanism, type Mechanism } from "./mechanism.ts";
import { Spinner } from "./spin.ts";
import { changeState, generationAt, ring, ringAround, stateOf } from "./state.ts";

/**
 * What an endpoint has counted since it attached.
 *
 * @example
 * ```ts
 * import { Port, type Stats } from "@millrace/millrace";
 *
 * using here = Port.create<number>();
 * using there = Port.attach<number>(here.memory);
 * for (let n = 0; n < 100; n++) here.write(n);
 * const { wakes, wakesElided }: Stats = here.stats;
 * console.log(wakes, wakesElided >= 100); // 0 true
 * ```
 */
export interface Stats {
  /** Bells rung: a system call each. */
  readonly wakes: number;
  /** Publishes and releases that rang no bell, because nobody slept. */
  readonly wakesElided: number;
  /** Times that this endpoint went to sleep. */
  readonly parks: number;
  /**
   * Sleeps that nothing ended but their slice, although there was something to be done. A peer that
   * rings as it should makes none, except for one that comes at the very end of a slice: more than
   * a few are wakes that were lost.
   */
  readonly lateWakes: number;
}

/**
 * How an endpoint waits.
 *
 * @example
 * ```ts
 * import { pollingMechanism, Port } from "@millrace/millrace";
 *
 * // Leaves the processor to others, and needs nobody who wakes it.
 * using port = Port.create({ spin: 0, mechanism: pollingMechanism() });
 * console.log(port.read({ timeout: 10 })); // undefined
 * ```
 */
export interface EndpointOptions {
  /**
   * Microseconds to spin before sleeping in a blocking call. Default 50 with two or more
   * processors, where a fresh end sleeps at once in its first eight waits; otherwise 0. An event
   * loop that waits for an answer spins for 20 of them at most. After spins that found nothing,
   * either sleeps at once, and now and then spins for up to 400.
   */
  readonly spin?: number | undefined;
  /** How to sleep and to wake; by default what suits the memory. */
  readonly mechanism?: Mechanism | undefined;
}

/** Who waits on an endpoint, for things that are bits of its own, `asks`. */
export interface Waiter {
  /** What it waits for while the event loop turns; 0 for nothing. */
  asks: number;
  /**
   * The chores before any wait: publishes what is finished, gives back what is released, and places
   * what was accepted. Returns `asks`, with what there is to wait for to place the rest.
   */
  prepare(asks: number): number;
  /** Whether something that is asked for may be there. Looks at no state. */
  sees(asks: number): boolean;
  /** Whether a state ends the wait. */
  hasChanged(): boolean;
  /** Asks the peers to ring for it, or takes that back. */
  arm(asks: number): void;
  disarm(asks: number): void;
  /** What its peers demand of a sleep: those of `Endpoint.demandsOf`, and `KEPT`. */
  demands(): number;
  /** Called on the event loop when something may be there. Must not run the application's code. */
  tend(): void;
}

/** What is demanded of a sleep. */
export const enum Demand {
  /** By a peer: short slices, as it is vacant. */
  SHORT = 1,
  /** By a peer: to poll. */
  DEAF = 2,
  /** By a waiter: that the process may live for the sleep. */
  KEPT = 4,
}

/** One endpoint, owned by the thread that made this object. */
export class Endpoint {
  declare readonly segment: Segment;
  declare readonly index: number;
  declare readonly mechanism: Mechanism;
  declare readonly spinner: Spinner;
  /** Whether the endpoint was vacated before: its rings begin where they stand. [segment.again] */
  declare readonly isAgain: boolean;
  /** All who wait on it: one port, or those of a hub. */
  readonly waiters: Waiter[] = [];
  // What `stats` tells.
  wakes = 0;
  wakesElided = 0;
  parks = 0;
  lateWakes = 0;
  readonly #words: Int32Array;
  readonly #bell: number;
  readonly #state: number;
  /** The own state word while this object has the endpoint. [segment.own_state] */
  readonly #attached: number;
  // The one sleep of the event loop, and the timer of its slices. [wait.async_one]
  #isAsleep = false;
  #asleepFor = 0;
  #timerMs = 0;
  #stopTimer: (() => void) | undefined;
  // Made once, as a stream sleeps once for each message.
  readonly #woken = (): void => {
    this.#isAsleep = false;
    noteTurn();
    this.wake();
  };

  /**
   * Takes a vacant endpoint for this thread. [segment.attach]
   *
   * @throws {SegmentError} `segment.endpoint` if it does not exist or is not vacant.
   */
  constructor(segment: Segment, index: number, { spin, mechanism }: EndpointOptions = {}) {
    const vacant = requireVacant(segment, index);
    const words = segment.control;
    const record = recordAt(index);
    this.segment = segment;
    this.index = index;
    this.mechanism = mechanism ??= defaultMechanism(segment);
    this.spinner = new Spinner(spin, mechanism);
    this.#words = words;
    this.#bell = record + layout.ENDPOINT_BELL_WORD;
    this.#state = record + layout.ENDPOINT_STATE_WORD;
    this.#attached = vacant | layout.ENDPOINT_STATE_ATTACHED; // [segment.again] Upper bits stay.
    const isTaken = Atomics.compareExchange(words, this.#state, vacant, this.#attached) !== vacant;
    if (!isTaken) {
      // After the state: until then the record is not ours. Peers that look in between poll, and
      // the ring sends them to look again.
      Atomics.store(words, record + layout.ENDPOINT_WAKES_WORD, mechanism.rings);
      // This version understands nothing beyond itself. [segment.features]
      Atomics.store(words, record + layout.ENDPOINT_FEATURES_WORD, 0);
    }
    this.isAgain = generationAt(segment, index) > 0;
    // Also if somebody else came first, who may have died before its ring.
    ringAround(segment, index, mechanism);
    if (isTaken) throwTaken(index);
  }

  /** A copy of the counters. */
  get stats(): Stats {
    const { wakes, wakesElided, parks, lateWakes } = this;
    return { wakes, wakesElided, parks, lateWakes };
  }

  /** Whether the memory is gone, as that of a `WebAssembly.Memory` that has grown. */
  get isDetached(): boolean {
    return !this.#words.length;
  }

  /** The state word of an endpoint, own or peer's, loaded once. */
  state(index: number): number {
    if (this.isDetached) throwGone();
    return Atomics.load(this.#words, recordAt(index) + layout.ENDPOINT_STATE_WORD);
  }

  /** Whether an own state word is that of this owner. [segment.own_state] */
  isOwn(word: number): boolean {
    return word === this.#attached;
  }

  /** Whether this endpoint and a peer are both attached. */
  isLinked(peer: number): boolean {
    // [segment.state_relaxed] Two calls of `Atomics.load` took a tenth of a short write.
    const words = this.#words;
    return words[this.#state] === this.#attached &&
      stateOf(words[recordAt(peer) + layout.ENDPOINT_STATE_WORD]!) ===
        layout.ENDPOINT_STATE_ATTACHED;
  }

  /** Whether a state ends a wait for this peer: the own one has changed, or the peer's is final. */
  hasChanged(peer: number): boolean {
    const words = this.#words;
    try {
      return Atomics.load(words, this.#state) !== this.#attached ||
        stateOf(Atomics.load(words, recordAt(peer) + layout.ENDPOINT_STATE_WORD)) >
          layout.ENDPOINT_STATE_ATTACHED;
    } catch {
      return true; // the memory is gone
    }
  }

  /** What a peer demands of a sleep. */
  demandsOf(peer: number): number {
    const words = this.#words;
    const record = recordAt(peer);
    if (this.isDetached) return Demand.SHORT;
    // [wait.vacant] Its attach will ring, or a slice will end.
    const state = stateOf(Atomics.load(words, record + layout.ENDPOINT_STATE_WORD));
    if (state === layout.ENDPOINT_STATE_VACANT) return Demand.SHORT;
    // [wait.mechanism] It has to ring the mechanism by which this endpoint sleeps.
    const wakes = Atomics.load(words, record + layout.ENDPOINT_WAKES_WORD);
    return wakes & this.mechanism.sleeps ? 0 : Demand.DEAF;
  }

  /** Wakes an endpoint. */
  ring(index: number): void {
    this.wakes++;
    ring(this.#words, index, this.index, this.mechanism);
  }

  /** Ends this endpoint, and every wait of it. [pipe.close] */
  close(): void {
    const generation = this.#attached >>> layout.REASON_SHIFT;
    if (!this.isDetached) changeState(this.segment, this.index, 0, this.mechanism, generation);
    this.look();
  }

  /**
   * Blocks until something that the waiter asks for may be there, or a state has changed. False at
   * the deadline, in milliseconds of `now`. The caller has looked before, in vain. `waits` are
   * those of its call before this one.
   *
   * @throws {ForbiddenError} on a thread that must not block, after a few looks. [wait.no_block]
   */
  wait(waiter: Waiter, asks: number, deadline: number, waits: number = 0): boolean {
    let all = waiter.prepare(asks);
    const { spinner, mechanism } = this;
    if (!spinner.blocks) {
      const most = layout.WAIT_NO_BLOCK_LOOKS;
      for (let looks = waits ? 1 : most / 4; looks-- > 0 && waits < most / 8;) {
        if (finds(waiter, all)) return true;
      }
      throw forbidden();
    }
    // A peer that has not attached takes longer than a spin, and says nothing of those to come.
    const mayHit = spinner.isDue() && !(waiter.demands() & Demand.SHORT);
    if (mayHit && spinner.spin(waiter, all, spinner.budget, deadline)) return true;
    // A first look at the clock takes a worker of Node 0.7 ms.
    const { learns } = spinner;
    const isTimed = deadline < Infinity || learns;
    const start = isTimed ? now() : 0;
    for (let time = start;; all = waiter.prepare(asks)) {
      // [wait.bell_first] What rings after this load keeps us from sleeping.
      const bell = Atomics.load(this.#words, this.#bell);
      waiter.arm(all);
      try {
        // [wait.recheck] Without this look, a cursor stored just before the arming is missed.
        if (finds(waiter, all)) return true;
        if (time < deadline) {
          this.parks++;
          const demands = waiter.demands();
          const slice = this.#sliceMs(demands);
          const left = deadline - time;
          const isOver = mechanism.sleep(this.#words, this.#bell, bell, Math.min(left, slice));
          const isLate = isOver === false && !(demands & Demand.DEAF) && slice <= left;
          if (isLate && finds(waiter, all)) this.lateWakes++;
          mechanism.checkPeers?.();
        }
      } finally {
        waiter.disarm(all);
      }
      if (finds(waiter, all)) {
        if (learns) spinner.slept(now() - start);
        return true;
      }
      if (isTimed) time = now();
      if (deadline <= time) return false;
    }
  }

  /** The longest sleep, in milliseconds. [wait.slice] [wait.poll] */
  #sliceMs(demands: number): number {
    if (demands & Demand.DEAF) return layout.WAIT_POLL_MS;
    const isShort = demands & Demand.SHORT || this.mechanism.checkPeers;
    return isShort ? layout.WAIT_SLICE_MS : layout.WAIT_SLICE_ATTACHED_MS;
  }

  /** The bell, loaded before anything is armed; 0 if the memory is gone. [wait.bell_first] */
  bell(): number {
    return this.isDetached ? 0 : Atomics.load(this.#words, this.#bell);
  }

  /**
   * Has the event loop sleep for what the waiters ask for. The caller has loaded this value of the
   * bell, armed, and looked in vain; `_more` is the waiter that asks since then.
   */
  listen(bell: number, _more?: Waiter): void {
    let demands = this.demands();
    if (!this.#isAsleep && !(demands & Demand.DEAF)) {
      // No timeout of its own, which took a noticeable part of an echo between two event loops.
      const isKept = (demands & Demand.KEPT) > 0;
      const sleep = this.mechanism.sleepAsync(this.#words, this.#bell, bell, Infinity, isKept);
      if (sleep) {
        this.#isAsleep = true;
        this.parks++;
        sleep.then(this.#woken, this.#woken);
      } else demands |= Demand.DEAF;
    }
    this.#asleepFor = bell;
    // A timer fires up to 1 ms late, so one that polls has a period that is shorter by that.
    const ms = this.#sliceMs(demands) - (demands & Demand.DEAF ? 1 : 0);
    if (ms === this.#timerMs) return;
    this.#stopTimer?.();
    this.#timerMs = ms;
    this.#stopTimer = repeat(ms, () => this.#tick());
  }

  /** What the peers of all who wait demand of the sleep of the event loop. */
  demands(): number {
    let demands = 0;
    for (const waiter of this.waiters) if (waiter.asks) demands |= waiter.demands();
    return demands;
  }

  /** The bell rang: looks at everything. */
  wake(): void {
    this.look();
  }

  /** A slice has ended: looks at everything, liveness included. [wait.liveness] */
  #tick(): void {
    if (!this.#isAsked) {
      this.#stopTimer!();
      this.#timerMs = 0;
      return;
    }
    this.mechanism.checkPeers?.();
    // If the bell has moved, its ring was not lost: this event loop has just not come to it yet.
    const isQuiet = this.#isAsleep && this.bell() === this.#asleepFor;
    if (this.look() && isQuiet) this.lateWakes++;
  }

  /**
   * Looks for what the waiters ask for, or some of them, and has those go on for whom something has
   * come. The others stay armed. [wait.stay_armed] Returns whether anything has come.
   */
  look(isMeant: (waiter: Waiter) => boolean = () => true): boolean {
    const bell = this.bell();
    const { waiters } = this;
    let found = false;
    for (let i = 0; i < waiters.length; i++) {
      const waiter = waiters[i]!;
      if (!waiter.asks || !isMeant(waiter)) continue;
      if (!this.isDetached) { // if the memory is gone, each finds that out
        waiter.arm(waiter.asks);
        if (!finds(waiter, waiter.asks)) continue;
      }
      found = true;
      waiter.tend();
    }
    if (this.#isAsked) this.listen(bell);
    return found;
  }

  /** Whether anybody waits. */
  get #isAsked(): boolean {
    return this.waiters.some(({ asks }) => asks);
  }
}

/** Whether something that is asked for may be there, or a state ends the wait. */
const finds = (waiter: Waiter, asks: number): boolean => waiter.sees(asks) || waiter.hasChanged();

/**
 * Returns the state word of a vacant endpoint; changes nothing.
 *
 * @throws {SegmentError} `segment.endpoint` if it does not exist or is not vacant.
 */
export function requireVacant(segment: Segment, index: number): number {
  const word = isIndex(index, segment.endpointCount)
    ? Atomics.load(segment.control, recordAt(index) + layout.ENDPOINT_STATE_WORD)
    : layout.ENDPOINT_STATE_CLOSED;
  const isVacant = stateOf(word) === layout.ENDPOINT_STATE_VACANT || segment.lent?.index === index;
  return isVacant ? word : throwTaken(index);
}

function throwTaken(index: number): never {
  const why = "it is taken, or none: a port has two ends, a Hub has more";
  throwSegmentError("endpoint", `attach endpoint ${index}: ${why}`);
}

/** Whether an endpoint is no longer this owner's. */
export const hasLeft = (endpoint: Endpoint): boolean =>
  !endpoint.isOwn(endpoint.state(endpoint.index));

/** Takes a vacant endpoint for this thread, or the one that is lent. */
export function attachEndpoint(
  segment: Segment,
  index: number,
  options?: EndpointOptions,
): Endpoint {
  const { lent } = segment;
  if (lent?.index !== index) return new Endpoint(segment, index, options);
  segment.lent = undefined;
  return lent as Endpoint;
}

/**
 * Calls what attaches to an endpoint that was taken already, and has it find it vacant.
 *
 * @throws {TypeError} if it attaches to nothing, or elsewhere.
 */
export function lendEndpoint<T>(endpoint: Endpoint, attach: () => T): T {
  const { segment } = endpoint;
  segment.lent = endpoint;
  try {
    const user = attach();
    if (!segment.lent) return user;
  } finally {
    segment.lent = undefined;
  }
  throwCannot(`lend endpoint ${endpoint.index}: nothing has attached to it`);
}
