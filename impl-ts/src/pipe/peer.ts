/**
 * Waiting for a peer that has not attached yet. See `spec/wait.md`.
 *
 * @module
 */

import { raise } from "../error.ts";
import { ENDPOINT_STATE_VACANT } from "../memory/layout.ts";
import { deadlineOfCall, type Link, requireWait, type WaitOptions } from "./pipe.ts";
import { isPast } from "../memory/segment.ts";
import type { Waitable } from "../wait/wait.ts";
import { stateOf } from "../wait/state.ts";

/**
 * Blocks until the peer has attached, and returns whether it has. If the peer is gone by then, the
 * next call reports that.
 *
 * @throws {ClosedError} if this end is closed or failed.
 */
export function waitForPeer(link: Link, options: WaitOptions = {}): boolean {
  const arrival = arrivalOf(link, options);
  if (arrival.look() || options.timeout === 0) return arrival.look();
  link.endpoint.wait(arrival, deadlineOfCall(options));
  requireOwn(link);
  return arrival.look();
}

/** `waitForPeer` without blocking. */
export async function waitForPeerAsync(link: Link, options: WaitOptions = {}): Promise<boolean> {
  const arrival = arrivalOf(link, options);
  const deadline = deadlineOfCall(options);
  while (!arrival.look() && !isPast(deadline)) {
    await link.endpoint.waitAsync(arrival, deadline, options.signal);
    requireOwn(link);
  }
  return arrival.look();
}

function arrivalOf(link: Link, options: WaitOptions): Waitable {
  requireWait(options);
  requireOwn(link);
  // There is nothing to arm: an endpoint that attaches rings all its peers, whether or not they ask
  // for it. [segment.state_ring]
  return {
    peer: link.peer,
    look: () => stateOf(link.endpoint.state(link.peer)) !== ENDPOINT_STATE_VACANT,
    lookAround: () => link.endpoint.hasChanged(link.peer),
    arm: () => {},
    stayArmed: () => {},
    disarm: () => {},
  };
}

function requireOwn(link: Link): void {
  raise(link.ownError("wait"));
}
