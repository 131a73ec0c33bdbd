/**
 * In which order the ports of a thread deliver their events, and how much in one turn of its event
 * loop. See `spec/port.md`.
 *
 * @module
 */

import type { DeliveryOptions } from "./delivery.ts";
import { now } from "../memory/segment.ts";
import { Several, type Waitable } from "../wait/wait.ts";
import type { Endpoint } from "../wait/endpoint.ts";
import { loopSpinnerOf } from "../wait/loop_spinner.ts";
import type { Sight } from "../wait/spinner.ts";
import { nextTask } from "../wait/task.ts";

/** How it stands with a port that was served. */
export type Standing = typeof MORE | typeof LATE | typeof DRY | typeof AWAY;

/** It has delivered a message, and there is more. */
export const MORE = 0;
/** It has delivered nothing, and comes again when the event loop has turned. */
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
  /** Its limits of one turn. */
  readonly limits: DeliveryOptions;
  /** Notes what its listeners have sent. Returns whether any is new: an answer may come soon. */
  noteAsked(): boolean;
  /** Delivers one message. */
  serve(): Standing;
  /** Goes to sleep. False: it has to be served first. */
  sleep(): boolean;
}

const DEFAULT_TURN_COUNT = 256;
const DEFAULT_TURN_TIME = 4;
/**
 * Microtasks that are let by before a sleep, where no listener has sent anything. A method that
 * awaits the answer to a call of its own sends its answer one later, and one more for each function
 * that awaits it in turn, or three. The peer would find this thread asleep, whose wake takes 50 µs.
 */
const HOPS = 8;
/** Messages that a port delivers before others that wait have their turn. */
const ROUND = 16;

// Those of one thread are served one after the other. What they may have in one turn of the event
// loop they have together: with a share for each, 64 busy ports kept the timers of their thread
// away for a second.

/** Messages of this turn, and when the first of them was delivered, -1 for not yet. */
let count = 0;
let began = -1;
/** Those that have something. */
const queue: Served[] = [];
/** Those that have delivered everything, and do not sleep yet; the one that was looked at last. */
const dry: Served[] = [];
let looked = 0;
let hops = 0;
let isRunning = false;

/** What is done behind it is a microtask. */
const settled = Promise.resolve();

/** Serves a port, and others before it. */
export function serve(one: Served): void {
  queue.push(one);
  if (isRunning) return;
  isRunning = true;
  settled.then(run); // not inside of the call that has found something
}

/** The same, where the event loop has turned. */
export function serveInNewTurn(one: Served): void {
  count = 0;
  began = -1;
  serve(one);
}

/** Serves one of them, and the next in a microtask, until nobody has anything. */
function run(): void {
  while (queue.length === 0) {
    if (gather()) break;
    const asking = findAsking();
    if (asking === undefined && hops++ < HOPS) return void settled.then(run);
    // What has come by now says nothing about how soon answers come.
    if (gather() || (asking !== undefined && awaitAnswer(asking) && gather())) break;
    if (fallAsleep()) {
      hops = 0;
      isRunning = false;
      return;
    }
  }
  hops = 0;
  const one = queue.shift()!;
  const standing = serveSome(one);
  if (standing === LATE) return turn(one);
  if (standing === DRY) dry.push(one);
  if (standing === MORE) queue.push(one);
  settled.then(run); // the promises of its listeners come first, and what they have posted
}

/** Has a port deliver until others come first, or the turn of the event loop is over. */
function serveSome(one: Served): Standing {
  let standing: Standing = LATE;
  try {
    // Where nobody waits, it has all of the turn.
    for (let left = queue.length > 0 ? ROUND : Infinity; left > 0 && allows(one); left--) {
      standing = one.serve();
      if (standing !== MORE) break;
    }
  } catch (error) {
    Promise.reject(error); // nobody handles it: the runtime tells of it, and the others go on
    return AWAY;
  }
  return standing;
}

/** Whether another message of that one belongs to this turn. */
function allows({ limits }: Served): boolean {
  const { turnCount = DEFAULT_TURN_COUNT, turnTime = DEFAULT_TURN_TIME } = limits;
  if (count >= turnCount) return false;
  const time = now();
  if (began < 0) began = time;
  else if (time - began >= turnTime) return false;
  count++;
  return true;
}

/** Lets the event loop turn, behind which that one is the first. */
function turn(one: Served): void {
  queue.unshift(one);
  const keep = queue.some(({ keeps }) => keeps);
  nextTask(keep, true).then(() => { // their stay keeps the process
    count = 0;
    began = -1;
    gather();
    run();
  });
}

/**
 * Puts those that ran dry and have got something since in the queue. Here and below, loops over
 * all count: they run for each message, and cold, an iterator is three calls more.
 */
function gather(): boolean {
  let left = 0;
  for (let index = 0; index < dry.length; index++) {
    const one = dry[index]!;
    if (one.what.look()) queue.push(one);
    else dry[left++] = one;
  }
  dry.length = left;
  return queue.length > 0;
}

/** Nobody has anything, and all go to sleep. False: one has, by now. */
function fallAsleep(): boolean {
  for (const one of dry) {
    if (!one.sleep()) queue.push(one);
  }
  dry.length = 0;
  if (queue.length > 0) return false;
  began = -1; // what is slept is not spent
  return true;
}

/** Lets out what listeners have posted. Returns whose listeners have sent something, if any. */
function findAsking(): Endpoint | undefined {
  let asking: Endpoint | undefined;
  let before: Endpoint | undefined;
  for (let index = 0; index < dry.length; index++) {
    const one = dry[index]!;
    const { endpoint } = one;
    if (endpoint !== before) endpoint.prepare(one.what);
    before = endpoint;
    if (one.noteAsked()) asking ??= endpoint;
  }
  return asking;
}

/** Spins, or naps, where an answer may come soon. Returns whether that has found something. */
function awaitAnswer(asking: Endpoint): boolean {
  if (loopSpinnerOf(asking).spin(sight)) return true;
  // It naps on one bell, and so for the ports of one endpoint alone.
  const { what, endpoint } = dry[0]!;
  for (let index = 1; index < dry.length; index++) {
    if (dry[index]!.endpoint !== endpoint) return false;
  }
  const all = dry.length > 1 ? new Several(dry.map((one) => one.what)) : what;
  return loopSpinnerOf(asking).nap(all);
}

/** What a spin looks at: one of those that ran dry after the other, so that a look is short. */
const sight: Sight = {
  /** Whether something has come for it, or for another port of its endpoint. */
  look() {
    if (++looked >= dry.length) looked = 0;
    const { what, endpoint } = dry[looked]!;
    return what.look() || endpoint.watch.isRung;
  },
  /** Whether a state has changed for it. */
  lookAround() {
    return dry[looked]!.what.lookAround();
  },
};
