/**
 * What a link waits for on the event loop, and the errors of the states that end it: what its two
 * sides use of it. See `spec/pipe.md`.
 *
 * @module
 */

import { describe, failure, type MillraceError } from "../error.ts";
import { layout } from "../memory/layout.ts";
import { recordAt } from "../memory/plan.ts";
import { goneError } from "../memory/segment.ts";
import { Bit } from "../ring/side.ts";
import { giveWay, keepAlive, SETTLED, Turn } from "../wait/loop.ts";
import { causeOf, stateOf } from "../wait/state.ts";
import type { Link } from "./link.ts";

/** What a link waits for, as bits. */
export const enum For {
  /** Frames in the ring. */
  FRAMES = 1,
  /** Frames, or what was taken out of the ring before. */
  MESSAGES = 3,
  /** Room in the ring for what is accepted. */
  ROOM = 4,
  /** A change of a state, for which every wait looks. */
  STATE = 8,
  /** Something to be done for calls. */
  CALLS = 16,
}

/** What brings messages to the listeners of a port. */
export interface Delivery {
  /** Does what can be done now. Returns what to wait for. */
  tend(): number;
  /** Whether the process lives for it. */
  readonly keeps: boolean;
  /** This end was closed, or nothing more will come. */
  finish(reason: MillraceError | undefined): void;
}

/** Has a link tended at the end of the job, after its promises. */
export function tendSoon(link: Pick<Link, "isDue" | "tend" | "streak">): void {
  if (link.isDue) return;
  link.isDue = true;
  (giveWayAtTimes(link) ?? SETTLED).then(link.tend);
}

/** Notes whether the process lives for those who read, for what is accepted, or for listeners. */
export function noteKeeping(link: Link): void {
  const { incoming, outgoing, delivery } = link;
  const keeps = !!(incoming?.takers.length || outgoing?.pendingCount || delivery?.keeps);
  if (keeps === link.isKeeping) return;
  link.isKeeping = keeps;
  keepAlive(keeps ? 1 : -1);
}

/** Lets the event loop turn now and then, even if asynchronous calls never have to wait. */
export function giveWayAtTimes(link: Pick<Link, "streak">): Promise<void> | undefined {
  return ++link.streak % Turn.STREAK === 0 ? giveWay() : undefined;
}

/** The error after the own `close`, which comes before every other answer. [pipe.first_answer] */
export function closedError(link: Link, verb: string): MillraceError | undefined {
  return link.isClosed ? failure("pipe.closed", `${verb}: this end is closed`) : undefined;
}

/** The error of the own `close` or the own state; undefined while attached. [pipe.close_frees] */
export function ownError(link: Link, verb: string): MillraceError | undefined {
  return stateError(link, verb, true, false);
}

/** The error of the peer's state; undefined while it is not final. */
export function peerError(link: Link, verb: string): MillraceError | undefined {
  return stateError(link, verb, false);
}

/** The error of the own state, or else of the peer's, if one is final. [pipe.first_answer] */
export function stateError(
  link: Link,
  verb: string,
  isOwn: boolean = true,
  isPeer: boolean = true,
): MillraceError | undefined {
  const { isClosed, peer, endpoint: { segment, words, state, attached } } = link;
  // A mailbox, which has no segment, tells its states itself.
  if (isOwn && isClosed || !segment) return closedError(link, verb);
  if (!words.length) return closedError(link, verb) ?? goneError();
  let word = Atomics.load(words, state);
  if (!isOwn || word === attached) {
    // [segment.state_invalid] The peer's first word that is final, or invalid, counts from then on.
    word = link.final || Atomics.load(words, recordAt(peer) + layout.ENDPOINT_STATE_WORD);
    if (!isPeer || stateOf(word) <= layout.ENDPOINT_STATE_ATTACHED) return undefined;
    link.final = word;
    for (const side of [link.outgoing, link.incoming]) if (side) side.bits |= Bit.GONE;
    isOwn = false;
  }
  const who = isOwn ? "pipe" : "peer";
  const what = `${verb}: ${isOwn ? "this end" : "the peer"} is `;
  if (stateOf(word) === layout.ENDPOINT_STATE_CLOSED) {
    return failure(`${who}.closed`, `${what}closed`);
  }
  // [segment.own_state] Any other own word was forged into our record, or belongs to the endpoint's
  // next owner; it has no reason for us.
  const reason = stateOf(word) === layout.ENDPOINT_STATE_FAILED
    ? word >>> layout.REASON_SHIFT
    : isOwn
    ? 0
    : layout.REASON_SEGMENT_STATE;
  const details = { ...isOwn ? undefined : causeOf(segment, peer), reason };
  return failure(`${who}.failed`, `${what}marked failed${describe(reason)}`, details);
}
