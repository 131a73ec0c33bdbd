/**
 * How a call that writes waits for its turn and for room in the ring. See `spec/pipe.md`.
 *
 * @module
 */

import { detach } from "../codec/codec.ts";
import { cannot, raise, TimeoutError } from "../error.ts";
import { BUSY } from "../memory/gate.ts";
import { deadlineOfCall, type WaitOptions } from "./pipe.ts";
import type { Outlet } from "./outlet.ts";
import { isPast } from "../memory/segment.ts";
import { Several, type Waitable } from "../wait/wait.ts";

/**
 * The first step of a blocking call: throws the answer that needs no look at the ring, if there is
 * one, and writes what was posted. Returns the deadline of the call if there was anything posted.
 */
export function begin(outlet: Outlet, options: WaitOptions | undefined): number | undefined {
  outlet.check();
  return outlet.isTaken ? flushAll(outlet, options) : undefined;
}

function flushAll(outlet: Outlet, options: WaitOptions | undefined): number {
  const deadline = deadlineOfCall(options);
  let waits = 0;
  if (flush(outlet, () => waitRoom(outlet, deadline, waits++))) return deadline;
  cannot("write: an asynchronous write is under way");
}

/**
 * The first step of a call that does not wait. Returns false if somebody else still has the turn.
 */
export function tryBegin(outlet: Outlet): boolean {
  outlet.check();
  return !outlet.isTaken || flush(outlet);
}

function flush(outlet: Outlet, wait?: () => void): boolean {
  outlet.posts?.flush(wait);
  if (outlet.isTaken) return false;
  outlet.check();
  return true;
}

/** Places and publishes all of the message under way. Waits whenever there is no room. */
export function sendAll(
  outlet: Outlet,
  options: WaitOptions | undefined,
  deadline: number | undefined,
): void {
  outlet.check();
  for (let waits = 0; !outlet.advance(); waits++) {
    deadline ??= deadlineOfCall(options);
    waitRoom(outlet, deadline, waits);
  }
  outlet.store();
}

/** Waits until there may be room. Throws at the deadline; the message then stays under way. */
export function waitRoom(outlet: Outlet, deadline: number, waits: number): void {
  outlet.bits |= BUSY;
  try {
    const what = orArrival(outlet, prepare(outlet, deadline));
    if (!outlet.endpoint.wait(what, deadline, waits)) throw timedOut();
  } finally {
    outlet.bits &= ~BUSY;
  }
  outlet.check(true); // [pipe.peer_gone] A state may have ended the wait.
}

/** `waitRoom` without blocking. `room` is what shows that there may be room. */
export async function waitRoomAsync(
  outlet: Outlet,
  deadline: number,
  signal: AbortSignal | undefined,
  room: Waitable = outlet,
): Promise<void> {
  const what = orArrival(room, prepare(outlet, deadline));
  if (!await outlet.endpoint.waitAsync(what, deadline, signal)) throw timedOut();
  outlet.check(true);
}

/**
 * Takes what arrives into the inbox. Returns what a call that waits for something else has to wait
 * for as well, in order to place more. [port.posted]
 */
export function roomOf(outlet: Outlet): Waitable {
  return orArrival(outlet, outlet.idle?.fill());
}

/** The error of a write whose deadline has passed. */
export function timedOut(): TimeoutError {
  return new TimeoutError("Cannot write: the ring stayed full until the deadline");
}

function orArrival(room: Waitable, other: Waitable | undefined): Waitable {
  return other === undefined ? room : new Several([room, other]);
}

/**
 * Copies the payload if it would not outlast the call, publishes what is held back, and takes what
 * arrives into the inbox. Returns what else to wait for.
 */
function prepare(outlet: Outlet, deadline: number): Waitable | undefined {
  detach(outlet);
  outlet.endpoint.settle();
  raise(outlet.link.stateError("write"));
  const other = outlet.idle?.fill();
  // Here too, because the wait returns at once for as long as the peer keeps a cursor moving.
  if (isPast(deadline)) throw timedOut();
  return other;
}
