/**
 * Whether the other side has come. See `spec/wait.md`.
 *
 * @module
 */

import { layout } from "../memory/layout.ts";
import { isPast } from "../memory/segment.ts";
import type { Link } from "../pipe/link.ts";
import {
  deadlineOf,
  type ReadingEnd,
  requireWait,
  type WaitOptions,
  type WritingEnd,
} from "../pipe/options.ts";
import { ownError } from "../pipe/tend.ts";
import { type Waitable, waitFor, waitForAsync } from "../wait/waitable.ts";
import { stateOf, stateWord } from "../wait/state.ts";

/**
 * Blocks until the other side has attached. Returns whether it has; false at the timeout. Only this
 * call finds out that a worker never comes. If the peer has come and is gone again, the next call
 * reports that. A port over a stream is no such end: it opens when its peer is there.
 *
 * @throws {ClosedError} if this end is closed or failed.
 *
 * @example
 * ```ts
 * import { Port } from "@millrace/millrace";
 * import { waitForPeer } from "@millrace/millrace/peer";
 *
 * using here = Port.create();
 * console.log(waitForPeer(here, { timeout: 10 })); // false
 * using there = Port.attach(here.memory); // usually in another thread
 * console.log(waitForPeer(here, { timeout: 10 })); // true
 * ```
 */
export function waitForPeer(
  { link }: ReadingEnd | WritingEnd,
  options: WaitOptions = {},
): boolean {
  requireWait(options);
  requireOwn(link);
  const deadline = options.timeout === 0 ? 0 : deadlineOf(options);
  for (let waits = 0; !isThere(link) && !isPast(deadline); waits++) {
    if (!waitFor(link.endpoint, arrivalOf(link), deadline, waits)) break;
    requireOwn(link);
  }
  return isThere(link);
}

/**
 * `waitForPeer` without blocking.
 *
 * @example
 * ```ts
 * import { Port } from "@millrace/millrace";
 * import { waitForPeerAsync } from "@millrace/millrace/peer";
 *
 * using here = Port.create();
 * const hasCome = waitForPeerAsync(here, { timeout: 1000 });
 * using there = Port.attach(here.memory); // usually in another thread
 * console.log(await hasCome, there.ended); // true false
 * ```
 */
export async function waitForPeerAsync(
  { link }: ReadingEnd | WritingEnd,
  options: WaitOptions = {},
): Promise<boolean> {
  requireWait(options);
  requireOwn(link);
  const deadline = deadlineOf(options);
  while (!isThere(link) && !isPast(deadline)) {
    await waitForAsync(link.endpoint, arrivalOf(link), deadline, options.signal);
    requireOwn(link);
  }
  return isThere(link);
}

/**
 * Index of the endpoint at the other end of a port, a writer or a reader; of the clients of a hub,
 * the first has 1.
 *
 * @example
 * ```ts
 * import { Port } from "@millrace/millrace";
 * import { peerIndexOf } from "@millrace/millrace/peer";
 *
 * using here = Port.create();
 * using there = Port.attach(here.memory); // usually in another thread
 * console.log(peerIndexOf(here), peerIndexOf(there)); // 1 0
 * ```
 */
export function peerIndexOf({ link }: ReadingEnd | WritingEnd): number {
  return link.peer;
}

function isThere({ endpoint, peer }: Link): boolean {
  return stateOf(stateWord(endpoint, peer)) !== layout.ENDPOINT_STATE_VACANT;
}

function requireOwn(link: Link): void {
  const failure = ownError(link, "wait");
  if (failure !== undefined) throw failure;
}

/**
 * Waits for the peer's attach. Nothing is armed for that: an endpoint that attaches rings all
 * its peers, whether or not they ask for it. [segment.state_ring] But a hub goes on writing to
 * others.
 */
function arrivalOf(link: Link): Waitable {
  return {
    peer: link.peer,
    look: () => isThere(link) || link.sees(0),
    arm: () => link.arm(0),
    stayArmed: () => link.arm(0),
    disarm: () => link.disarm(0),
    settle: () => void link.prepare(0),
  };
}
