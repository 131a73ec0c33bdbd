/**
 * Waits for what is no pipe: properties, fanouts, an attach. Each says what it looks at and which
 * word it arms; here it waits on its endpoint, blocking or on the event loop.
 *
 * @module
 */

import { now } from "../memory/clock.ts";
import { bellOf, type Endpoint, finds, listen, wait, type Waiter } from "./endpoint.ts";
import { after, giveWay, keepAlive } from "./loop.ts";
import { stateAt } from "./state.ts";

/** What a wait waits for and what ends it: one side of a ring, or several of them together. */
export interface Waitable {
  /** Whether what the caller waits for may be there. Cheap. */
  look(): boolean;
  /** Index of the endpoint at the other end; the first one's, if there are several. */
  readonly peer: number;
  /** The indices of all, if there are several. */
  readonly peers?: readonly number[] | undefined;
  /** Stores the `wants` word. */
  arm(): void;
  /**
   * Stores the `wants` word again if it no longer holds what `arm` would store. [wait.stay_armed]
   */
  stayArmed(): void;
  /** Clears the `wants` word, unless another wait of this endpoint still needs it. */
  disarm(): void;
  /** Before a wait: publishes and gives back what is held back. */
  settle?(): void;
}

/** Waits until any one of several waitables is ready. The bell of one endpoint wakes them all. */
export class Several implements Waitable {
  readonly peer: number;
  readonly peers: readonly number[];
  readonly parts: readonly Waitable[];

  /** Joins the waitables of one endpoint. There must be at least one. */
  constructor(parts: readonly Waitable[]) {
    this.peers = parts.map(({ peer }) => peer);
    this.peer = this.peers[0]!;
    this.parts = parts;
  }

  look(): boolean {
    return this.parts.some((part) => part.look());
  }

  arm(): void {
    for (const part of this.parts) part.arm();
  }

  stayArmed(): void {
    for (const part of this.parts) part.stayArmed();
  }

  disarm(): void {
    for (const part of this.parts) part.disarm();
  }
}

/** What asks for one thing only. */
const SOMETHING = 1;

/** Has an endpoint wait for something. */
class WaitableWaiter implements Sleeping {
  asks = 0;
  readonly isKeeping = true;
  readonly endpoint: Endpoint;
  readonly #what: Waitable;
  #isArmed = false;
  /** Called when something may be there. */
  wake: () => void = () => {};

  constructor(endpoint: Endpoint, what: Waitable) {
    this.endpoint = endpoint;
    this.#what = what;
  }

  get peerStates(): readonly number[] {
    const { peer, peers = [peer] } = this.#what;
    return peers.map(stateAt);
  }

  prepare(asks: number): number {
    this.#what.settle?.();
    return asks;
  }

  sees(): boolean {
    return !this.endpoint.words.length || this.#what.look();
  }

  arm(): void {
    if (!this.endpoint.words.length) return;
    if (this.#isArmed) return this.#what.stayArmed();
    this.#isArmed = true;
    this.#what.arm();
  }

  disarm(): void {
    if (this.#isArmed) this.#what.disarm();
    this.#isArmed = false;
  }

  tend(): void {
    this.wake();
  }
}

/** Blocks until something may be there, or a state has changed; false at the deadline. */
export function waitFor(
  endpoint: Endpoint,
  what: Waitable,
  deadline: number,
  waits: number = 0,
): boolean {
  return wait(new WaitableWaiter(endpoint, what), SOMETHING, deadline, waits);
}

/**
 * `waitFor` without blocking. Rejects with the reason of an aborted signal. The process lives
 * meanwhile.
 */
export async function waitForAsync(
  endpoint: Endpoint,
  what: Waitable,
  deadline: number,
  signal: AbortSignal | undefined,
): Promise<boolean> {
  const waiter = new WaitableWaiter(endpoint, what);
  return await wakeLater(waiter, SOMETHING, deadline, signal);
}

/** A waiter of a wait that is over when it is woken. */
export interface Sleeping extends Waiter {
  wake(): void;
}

/** Waits without blocking for what a waiter asks for; see `waitForAsync`. */
export async function wakeLater(
  waiter: Sleeping,
  asks: number,
  deadline: number,
  signal: AbortSignal | undefined,
): Promise<boolean> {
  signal?.throwIfAborted();
  const { endpoint } = waiter;
  const left = deadline < Infinity ? deadline - now() : deadline;
  if (!(left > 0)) return finds(waiter, asks);
  waiter.prepare(asks);
  const bell = bellOf(endpoint);
  waiter.arm(asks);
  if (finds(waiter, asks)) { // [wait.recheck]
    waiter.disarm(asks);
    await giveWay();
    return true;
  }
  keepAlive(1);
  endpoint.waiters.push(waiter);
  waiter.asks = asks;
  await until(left, signal, (end) => {
    waiter.wake = end;
    listen(endpoint, bell, waiter);
  });
  waiter.asks = 0;
  remove(endpoint.waiters, waiter);
  if (endpoint.words.length) waiter.disarm(asks);
  keepAlive(-1);
  signal?.throwIfAborted();
  return true;
}

/**
 * Lets the asynchronous verbs of one end of a pipe run one at a time, in the order of the calls.
 */
export class Turns {
  /** Those who wait for the turn; undefined while nobody has it. */
  #queue: (() => void)[] | undefined;

  /** Whether a call has the turn. */
  get busy(): boolean {
    return this.#queue !== undefined;
  }

  /** Takes the turn if no other call has it. */
  tryTake(): boolean {
    if (this.#queue) return false;
    this.#queue = [];
    return true;
  }

  /**
   * Waits for the turn, which another call has. Resolves with false at the deadline, and throws the
   * signal's reason if the signal aborts.
   */
  async take(deadline: number, signal: AbortSignal | undefined): Promise<boolean> {
    const queue = this.#queue!;
    let start = () => {};
    const begin = (end: (isMine: boolean) => void) => queue.push(start = () => end(true));
    const isMine = await until(deadline - now(), signal, begin, () => remove(queue, start));
    if (!isMine) signal?.throwIfAborted();
    return isMine === true;
  }

  /** Passes the turn to the next call in the queue. */
  give(): void {
    const next = this.#queue!.shift();
    if (next) next();
    else this.#queue = undefined;
  }
}

/**
 * Waits until the function `end`, which `begin` receives, is called, and resolves with its
 * argument. After `ms` milliseconds, or when the signal aborts, it calls `quit` and resolves with
 * undefined; an abort is not reported.
 */
export function until(
  ms: number,
  signal: AbortSignal | undefined,
  begin: (end: (value?: boolean) => void) => void,
  quit?: () => void,
): Promise<boolean | undefined> {
  return new Promise((resolve) => {
    const end = (value?: boolean) => {
      stopTimer?.();
      signal?.removeEventListener("abort", stop);
      resolve(value);
    };
    const stop = () => {
      quit?.();
      end();
    };
    begin(end);
    const stopTimer = after(Math.max(0, ms), stop); // Node warns of a negative delay
    signal?.addEventListener("abort", stop);
  });
}

/** Removes an element from an array. */
export function remove<T>(list: T[], one: T): void {
  const index = list.indexOf(one);
  if (index >= 0) list.splice(index, 1);
}
