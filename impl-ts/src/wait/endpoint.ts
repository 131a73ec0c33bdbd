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
import type { Segment } from "../memory/segment.ts";
import { noteTurn, repeat } from "./loop.ts";
import { defaultMechanism, type Mechanism, pollingMechanism } from "./mechanism.ts";
import { budgetOf, isDue, learns, makeSpinner, slept, spin, type Spinner } from "./spin.ts";
import { changeState, generationAt, hasChanged, ringAround, stateOf } from "./state.ts";

/**
 * What an endpoint has counted since it attached.
 *
 * @example
 * ```ts
 * import { Port, type Stats, statsOf } from "@millrace/millrace";
 *
 * using here = Port.create<number>();
 * using there = Port.attach<number>(here.memory);
 * for (let n = 0; n < 100; n++) here.write(n);
 * const { wakes, wakesElided }: Stats = statsOf(here);
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
  readonly endpoint: Endpoint;
  /** Where the states of the peers stand, which end the wait as their rings do. */
  readonly peerStates: readonly number[];
  /** What it waits for while the event loop turns; 0 for nothing. */
  asks: number;
  /** Whether the process lives for it. */
  readonly isKeeping: boolean;
  /**
   * The chores before any wait: publishes what is finished, gives back what is released, and places
   * what was accepted. Returns `asks`, with what there is to wait for to place the rest.
   */
  prepare(asks: number): number;
  /**
   * Whether something that is asked for may be there; also if the memory is gone. Looks at no
   * state.
   */
  sees(asks: number): boolean;
  /** Asks the peers to ring for it, or takes that back. */
  arm(asks: number): void;
  disarm(asks: number): void;
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

/** What a hub adds to the waits of its endpoint. */
export interface HubWaits {
  /** What a call that blocks waits for: what it asks for, and what all ports of the hub owe. */
  join(waiter: Waiter): Waiter;
  /** Publishes and gives back what its ports owe. [port.hub_publish] */
  publish(): void;
  /** The bell rang: which waiters are looked at; all, if it is undefined. */
  choose(): ((waiter: Waiter) => boolean) | undefined;
}

/** Where a thread sleeps and is woken: one endpoint, owned by the thread that made this object. */
export interface Endpoint {
  readonly segment: Segment;
  readonly index: number;
  /** Whether the endpoint was vacated before: its rings begin where they stand. [segment.again] */
  isAgain: boolean;
  readonly mechanism: Mechanism;
  readonly spinner: Spinner;
  readonly words: Int32Array;
  /** Where the bell and the own state stand in the words. */
  readonly bell: number;
  readonly state: number;
  /** The own state word while this object has the endpoint. [segment.own_state] */
  readonly attached: number;
  /** Milliseconds of the longest sleep. [wait.slice] */
  readonly sliceMs: number;
  /** All who wait on it: one port, or those of a hub. */
  readonly waiters: Waiter[];
  hub: HubWaits | undefined;
  /** What all who wait demanded when all were looked at last, and who began to wait since. */
  demands: number;
  // What `stats` tells.
  wakes: number;
  wakesElided: number;
  parks: number;
  lateWakes: number;
  // The one sleep of the event loop, and the timer of its slices. [wait.async_one]
  isAsleep: boolean;
  asleepFor: number;
  timerMs: number;
  stopTimer: (() => void) | undefined;
  /** Made once, as a stream sleeps once for each message. */
  readonly woken: (how: unknown) => void;
}

/** Makes the object of an endpoint that this thread has, or of its side of a mailbox. */
export function makeEndpoint(
  words: Int32Array,
  bell: number,
  state: number,
  attached: number,
  mechanism: Mechanism,
  spin: number | undefined,
  segment?: Segment,
  index: number = 0,
): Endpoint {
  const isLong = segment && !mechanism.checkPeers;
  const endpoint: Endpoint = {
    segment: segment!,
    index,
    words,
    bell,
    state,
    attached,
    sliceMs: isLong ? layout.WAIT_SLICE_ATTACHED_MS : layout.WAIT_SLICE_MS,
    mechanism,
    spinner: makeSpinner(spin, mechanism),
    isAgain: false,
    waiters: [],
    hub: undefined,
    demands: 0,
    wakes: 0,
    wakesElided: 0,
    parks: 0,
    lateWakes: 0,
    isAsleep: false,
    asleepFor: 0,
    timerMs: 0,
    stopTimer: undefined,
    woken: (how) => {
      endpoint.isAsleep = false;
      noteTurn();
      if (look(endpoint, endpoint.hub?.choose()) && how === "timed-out") endpoint.lateWakes++;
    },
  };
  return endpoint;
}

/**
 * Takes a vacant endpoint for this thread, or the one that is lent. [segment.attach]
 *
 * @throws {SegmentError} `segment.endpoint` if it does not exist or is not vacant.
 */
export function attachEndpoint(
  segment: Segment,
  index: number,
  { spin, mechanism = defaultMechanism(segment) }: EndpointOptions = {},
): Endpoint {
  const vacant = requireVacant(segment, index);
  const { lent, control: words } = segment;
  if (lent?.index === index) {
    segment.lent = undefined;
    return lent as Endpoint;
  }
  const record = recordAt(index);
  const state = record + layout.ENDPOINT_STATE_WORD;
  const attached = vacant | layout.ENDPOINT_STATE_ATTACHED; // [segment.again] Upper bits stay.
  const bell = record + layout.ENDPOINT_BELL_WORD;
  const endpoint = makeEndpoint(words, bell, state, attached, mechanism, spin, segment, index);
  const isTaken = Atomics.compareExchange(words, state, vacant, attached) !== vacant;
  if (!isTaken) {
    // After the state: until then the record is not ours. Peers that look in between poll, and
    // the ring sends them to look again.
    Atomics.store(words, record + layout.ENDPOINT_WAKES_WORD, mechanism.rings);
    // This version understands nothing beyond itself. [segment.features]
    Atomics.store(words, record + layout.ENDPOINT_FEATURES_WORD, 0);
  }
  endpoint.isAgain = generationAt(segment, index) > 0;
  // Also if somebody else came first, who may have died before its ring.
  ringAround(segment, index, mechanism);
  return isTaken ? throwTaken(index) : endpoint;
}

/** A copy of the counters. */
export function statsOfEndpoint({ wakes, wakesElided, parks, lateWakes }: Endpoint): Stats {
  return { wakes, wakesElided, parks, lateWakes };
}

/** What the peers of a waiter, and the waiter itself, demand of a sleep. */
function demandsOf(
  { endpoint: { words, mechanism }, peerStates, isKeeping }: Waiter,
): number {
  let demands: number = isKeeping ? Demand.KEPT : 0;
  for (const at of peerStates) {
    // [wait.vacant] Its attach will ring, or a slice will end.
    const isVacant = !words.length ||
      (Atomics.load(words, at) & layout.STATE_MASK) === layout.ENDPOINT_STATE_VACANT;
    if (isVacant) demands |= Demand.SHORT;
    else {
      // [wait.mechanism] It has to ring the mechanism by which this endpoint sleeps.
      const wakes = at + layout.ENDPOINT_WAKES_WORD - layout.ENDPOINT_STATE_WORD;
      if (!(Atomics.load(words, wakes) & mechanism.sleeps)) demands |= Demand.DEAF;
    }
  }
  return demands;
}

/** Ends an endpoint, and every wait of it. [pipe.close] */
export function leaveEndpoint(endpoint: Endpoint): void {
  const { segment, index, mechanism, attached, words } = endpoint;
  if (words.length) changeState(segment, index, 0, mechanism, attached >>> layout.REASON_SHIFT);
  look(endpoint);
}

/**
 * Blocks until something that the waiter asks for may be there, or a state has changed. False at
 * the deadline, in milliseconds of `now`. The caller has looked before, in vain. `waits` are those
 * of its call before this one.
 *
 * @throws {ForbiddenError} on a thread that must not block, after a few looks. [wait.no_block]
 */
export function wait(
  waiter: Waiter,
  asks: number,
  deadline: number,
  waits: number = 0,
): boolean {
  const { endpoint } = waiter;
  const { spinner, mechanism, words, hub } = endpoint;
  if (hub) waiter = hub.join(waiter);
  let all = waiter.prepare(asks);
  if (!spinner.blocks) {
    const most = layout.WAIT_NO_BLOCK_LOOKS;
    for (let looks = waits ? 1 : most / 4; looks-- > 0 && waits < most / 8;) {
      if (finds(waiter, all)) return true;
    }
    throw forbidden();
  }
  // A peer that has not attached takes longer than a spin, and says nothing of those to come.
  const mayHit = isDue(spinner) && !(demandsOf(waiter) & Demand.SHORT);
  if (mayHit && spin(waiter, all, budgetOf(spinner), deadline)) return true;
  // A first look at the clock takes a worker of Node 0.7 ms.
  const isLearning = learns(spinner);
  const isTimed = deadline < Infinity || isLearning;
  const start = isTimed ? now() : 0;
  for (let time = start;; all = waiter.prepare(asks)) {
    // [wait.bell_first] What rings after this load keeps us from sleeping.
    const bell = Atomics.load(words, endpoint.bell);
    waiter.arm(all);
    try {
      // [wait.recheck] Without this look, a cursor stored just before the arming is missed.
      if (finds(waiter, all)) return true;
      if (time < deadline) {
        endpoint.parks++;
        const demands = demandsOf(waiter);
        const slice = sliceMs(endpoint, demands);
        const left = deadline - time;
        // [mailbox.one_waiter] A second sleeper on a `signal` could miss the original's wake, which
        // is for one. Only a turn of the event loop could tell whether the first has ended.
        const isSecond = endpoint.isAsleep && !endpoint.segment;
        const by = isSecond ? pollingMechanism() : mechanism;
        const isOver = by.sleep(words, endpoint.bell, bell, Math.min(left, slice));
        const isLate = isOver === false && !(demands & Demand.DEAF) && slice <= left;
        if (isLate && finds(waiter, all)) endpoint.lateWakes++;
        mechanism.checkPeers?.();
      }
    } finally {
      waiter.disarm(all);
    }
    if (finds(waiter, all)) {
      if (isLearning) slept(spinner, now() - start);
      return true;
    }
    if (isTimed) time = now();
    if (deadline <= time) return false;
  }
}

/** The longest sleep, in milliseconds. [wait.slice] [wait.poll] */
const sliceMs = (endpoint: Endpoint, demands: number): number =>
  demands & Demand.DEAF
    ? layout.WAIT_POLL_MS
    : demands & Demand.SHORT
    ? layout.WAIT_SLICE_MS
    : endpoint.sliceMs;

/** The bell, loaded before anything is armed; 0 if the memory is gone. [wait.bell_first] */
export const bellOf = ({ words, bell }: Endpoint): number =>
  words.length ? Atomics.load(words, bell) : 0;

/**
 * Has the event loop sleep for what the waiters ask for. The caller has loaded this value of the
 * bell, armed, and looked in vain; `more` is the waiter that asks since then.
 */
export function listen(endpoint: Endpoint, bell: number, more?: Waiter): void {
  endpoint.hub?.publish();
  if (more) endpoint.demands |= demandsOf(more);
  let { demands } = endpoint;
  if (!endpoint.isAsleep && !(demands & Demand.DEAF)) {
    // No timeout of its own, which took a noticeable part of an echo between two event loops.
    const isKept = (demands & Demand.KEPT) > 0;
    const { mechanism, words, woken } = endpoint;
    const most = endpoint.segment ? Infinity : endpoint.sliceMs; // [mailbox.recheck]
    const sleep = mechanism.sleepAsync(words, endpoint.bell, bell, most, isKept);
    if (sleep) {
      endpoint.isAsleep = true;
      endpoint.parks++;
      sleep.then(woken, woken);
    } else demands |= Demand.DEAF;
  }
  endpoint.asleepFor = bell;
  // A timer fires up to 1 ms late, so one that polls has a period that is shorter by that.
  const ms = sliceMs(endpoint, demands) - (demands & Demand.DEAF ? 1 : 0);
  if (ms === endpoint.timerMs) return;
  endpoint.stopTimer?.();
  endpoint.timerMs = ms;
  endpoint.stopTimer = repeat(ms, () => tick(endpoint));
}

/** A slice has ended: looks at everything, liveness included. [wait.liveness] */
function tick(endpoint: Endpoint): void {
  if (!endpoint.waiters.some(({ asks }) => asks)) {
    endpoint.stopTimer!();
    endpoint.timerMs = 0;
    return;
  }
  endpoint.mechanism.checkPeers?.();
  // If the bell has moved, its ring was not lost: this event loop has just not come to it yet. The
  // signal of a mailbox is the bell and what is waited for.
  const isQuiet = endpoint.isAsleep &&
    (!endpoint.segment || bellOf(endpoint) === endpoint.asleepFor);
  if (look(endpoint) && isQuiet) endpoint.lateWakes++;
}

/**
 * Looks for what the waiters ask for, or some of them, and has those go on for whom something has
 * come. The others stay armed. [wait.stay_armed] Returns whether anything has come.
 */
export function look(endpoint: Endpoint, isMeant?: (waiter: Waiter) => boolean): boolean {
  const { waiters } = endpoint;
  let bell: number | undefined;
  if (!isMeant) {
    endpoint.demands = 0;
    for (const waiter of waiters) if (waiter.asks) endpoint.demands |= demandsOf(waiter);
  }
  let isFound = false;
  let isLeft = false;
  for (let i = 0; i < waiters.length; i++) {
    const waiter = waiters[i]!;
    const { asks } = waiter;
    if (!asks) continue;
    bell ??= bellOf(endpoint);
    if (isMeant?.(waiter) !== false) {
      waiter.arm(asks);
      if (finds(waiter, asks)) {
        isFound = true;
        waiter.tend();
        continue;
      }
    }
    isLeft = true;
  }
  if (isLeft) listen(endpoint, bell!);
  return isFound;
}

/** Whether something that is asked for may be there, or a state ends the wait. */
export const finds = (waiter: Waiter, asks: number): boolean =>
  waiter.sees(asks) || hasChanged(waiter);

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
