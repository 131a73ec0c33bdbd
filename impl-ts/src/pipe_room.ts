/**
 * How a call that writes waits for its turn, and for room in the ring. See `spec/pipe.md`.
 *
 * @module
 */

import { detach } from "./codec.ts";
import { cannot, raise, TimeoutError } from "./error.ts";
import { BUSY } from "./gate.ts";
import { deadlineOfCall, type WaitOptions } from "./pipe.ts";
import type { Outlet } from "./pipe_outlet.ts";
import { isPast } from "./segment.ts";
import { Several, type Waitable } from "./wait.ts";

/**
 * What a blocking call does first: throws the answer that it has without a look at the ring, and
 * writes what was posted. Returns its deadline, if it has had to wait for that.
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

/** The same for one that does not wait. False: the turn is still somebody else's. */
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

/** Places and publishes all of the message under way, and waits where there is no room. */
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

/** Waits until there may be room. At the deadline the message stays under way. */
export function waitRoom(outlet: Outlet, deadline: number, waits: number): void {
  outlet.bits |= BUSY;
  try {
    const what = orArrival(outlet, prepare(outlet, deadline));
    if (!outlet.endpoint.wait(what, deadline, waits)) throw timedOut();
  } finally {
    outlet.bits &= ~BUSY;
  }
  outlet.check(true); // [pipe.peer_gone] The wait may have ended because of a state.
}

/** The same without blocking; `room` is what shows that there may be some. */
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

/** What to wait for to place more, in a call that waits for something else. [port.posted] */
export function roomOf(outlet: Outlet): Waitable {
  return orArrival(outlet, outlet.idle?.fill());
}

/** The error of a write whose time is up. */
export function timedOut(): TimeoutError {
  return new TimeoutError("Cannot write: the ring stayed full until the deadline");
}

function orArrival(room: Waitable, other: Waitable | undefined): Waitable {
  return other === undefined ? room : new Several([room, other]);
}

/** Publishes what is held back, and takes what arrives; returns what else to wait for. */
function prepare(outlet: Outlet, deadline: number): Waitable | undefined {
  detach(outlet);
  outlet.endpoint.settle();
  raise(outlet.link.stateError("write"));
  const other = outlet.idle?.fill();
  // Here and not only in the wait, which comes back at once while the peer keeps a cursor moving.
  if (isPast(deadline)) throw timedOut();
  return other;
}
