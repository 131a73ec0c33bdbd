/**
 * In which order the ports of a thread deliver their events, and how much in one turn of its event
 * loop. See `spec/port.md`.
 *
 * @module
 */

import { Several, type Waitable } from "./wait.ts";
import type { Endpoint } from "./wait_endpoint.ts";
import { loopSpinnerOf, type Sight } from "./wait_spinner.ts";
import { nextTask } from "./wait_task.ts";

/** How it stands with a port that was served. */
export type Standing = typeof MORE | typeof LATE | typeof DRY | typeof AWAY;

/** There is more, and others come first. */
export const MORE = 0;
/** The turn of the event loop is over before it has had anything. */
export const LATE = 1;
/** There is nothing left. */
export const DRY = 2;
/** It comes back by itself, or not at all. */
export const AWAY = 3;

/** What is served: the delivery of one port. */
export interface Served {
  readonly endpoint: Endpoint;
  /** What comes for it. */
  readonly what: Waitable;
  /** Whether the process lives until it is served. */
  readonly keeps: boolean;
  /** Notes what its listeners have sent. Returns whether any is new: an answer may come soon. */
  noteAsked(): boolean;
  /** Delivers what is there, so many messages at most. */
  serve(rota: Rota, most: number): Standing;
  /** Goes to sleep. False: it has to be served first. */
  sleep(): boolean;
}

/** Messages that a port delivers before others that wait have their turn. */
const ROUND = 16;

/**
 * Serves those that have something, one after the other. What they may have in one turn of the
 * event loop they have together: with a share for each, 64 busy ports kept the timers of their
 * thread away for a second.
 */
export class Rota implements Sight {
  /** Messages of this turn. */
  count = 0;
  /** When the first of them was delivered, -1 for not yet. */
  #began = -1;
  /** Those that have something, and those of them who had nothing of this turn. */
  readonly #queue: Served[] = [];
  readonly #late: Served[] = [];
  /** Those that have delivered everything, and do not sleep yet. */
  readonly #dry: Served[] = [];
  /** The one of those that was looked at last. */
  #looked = 0;
  #isRunning = false;

  /** Serves a port, and others before it. */
  add(one: Served): void {
    this.#queue.push(one);
    if (this.#isRunning) return;
    this.#isRunning = true;
    this.#run();
  }

  /** The event loop has turned. */
  renew(): void {
    this.count = 0;
    this.#began = -1;
  }

  /** Whether another message belongs to this turn, for a port with these limits. */
  allows(turnCount: number, turnTime: number, clock: () => number): boolean {
    if (this.count >= turnCount) return false;
    const now = clock();
    if (this.#began < 0) this.#began = now;
    else if (now - this.#began >= turnTime) return false;
    return true;
  }

  /**
   * Whether something has come for one of those that ran dry, or for another port of its endpoint.
   * It looks at one of them after the other, so that a look is short however many there are.
   */
  look(): boolean {
    const dry = this.#dry;
    if (++this.#looked >= dry.length) this.#looked = 0;
    const { what, endpoint } = dry[this.#looked]!;
    return what.look() || endpoint.watch.isRung;
  }

  /** Whether a state has changed for that one. */
  lookAround(): boolean {
    return this.#dry[this.#looked]!.what.lookAround();
  }

  async #run(): Promise<void> {
    await undefined; // not inside of the call that has found something
    do {
      for (let one; (one = this.#queue.shift()) !== undefined;) {
        this.#serve(one);
        await undefined; // the promises of its listeners come first, and what they have posted
      }
      if (this.#late.length > 0) await this.#turn();
    } while (this.#queue.length > 0 || !this.#rest());
    this.#isRunning = false;
  }

  #serve(one: Served): void {
    // Where nobody waits, it has all of the turn.
    const most = this.#queue.length > 0 || this.#late.length > 0 ? ROUND : Infinity;
    let standing: Standing = AWAY;
    try {
      standing = one.serve(this, most);
    } catch (error) {
      Promise.reject(error); // nobody handles it: the runtime tells of it, and the others go on
    }
    if (standing === MORE) this.#queue.push(one);
    else if (standing === LATE) this.#late.push(one);
    else if (standing === DRY) this.#dry.push(one);
  }

  /** Lets the event loop turn. */
  async #turn(): Promise<void> {
    await nextTask(this.#late.some(({ keeps }) => keeps), true); // their stay keeps the process
    this.renew();
    this.#queue.unshift(...this.#late);
    this.#late.length = 0;
    this.#gather();
  }

  /**
   * Puts those that ran dry and have got something since in the queue. Here and below, loops over
   * all count: they run for each message, and cold, an iterator is three calls more.
   */
  #gather(): void {
    const dry = this.#dry;
    let left = 0;
    for (let index = 0; index < dry.length; index++) {
      const one = dry[index]!;
      if (one.what.look()) this.#queue.push(one);
      else dry[left++] = one;
    }
    dry.length = left;
  }

  /** Nobody has anything: waits for answers for a short while, then sleeps. False: one has. */
  #rest(): boolean {
    const dry = this.#dry;
    if (dry.length === 0) return true;
    // What has come by now says nothing about how soon answers come.
    this.#gather();
    if (this.#queue.length === 0 && this.#awaitAnswer()) this.#gather();
    if (this.#queue.length > 0) return false;
    for (const one of dry) {
      if (!one.sleep()) this.#queue.push(one);
    }
    dry.length = 0;
    if (this.#queue.length > 0) return false;
    this.#began = -1; // what is slept is not spent
    return true;
  }

  /** Spins, or naps, where an answer may come soon. Returns whether that has found something. */
  #awaitAnswer(): boolean {
    const dry = this.#dry;
    let asking: Endpoint | undefined;
    let before: Endpoint | undefined;
    let isOne = true;
    for (let index = 0; index < dry.length; index++) {
      const one = dry[index]!;
      const { endpoint } = one;
      if (endpoint !== before) endpoint.prepare(one.what); // what listeners have posted goes out
      if (before !== undefined && endpoint !== before) isOne = false;
      before = endpoint;
      if (one.noteAsked()) asking ??= endpoint;
    }
    if (asking === undefined) return false;
    if (loopSpinnerOf(asking).spin(this)) return true;
    // It naps on one bell, and so for the ports of one endpoint alone.
    if (!isOne) return false;
    const { what } = dry[0]!;
    const all = dry.length > 1 ? new Several(dry.map((one) => one.what)) : what;
    return loopSpinnerOf(asking).nap(all);
  }
}
