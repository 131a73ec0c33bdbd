/**
 * What an endpoint has with one peer: a pipe to it, a pipe from it, or both. All that happens on
 * the event loop for them is in `tend`, and before any wait of the thread in `prepare`. See
 * `spec/pipe.md` and `spec/port.md`.
 *
 * @module
 */

import { layout } from "../memory/layout.ts";
import { Bit, hasMoved, stop, store, want } from "../ring/side.ts";
import {
  bellOf,
  type Endpoint,
  finds,
  leaveEndpoint,
  listen,
  type Waiter,
} from "../wait/endpoint.ts";
import { giveWay, SETTLED } from "../wait/loop.ts";
import { stateAt } from "../wait/state.ts";
import { empty, fill, type Incoming, mayGoOn, rejectAll, serve } from "./incoming.ts";
import { drop, giveUpAll, type Outgoing, pump } from "./outgoing.ts";
import { closedError, type Delivery, For, noteKeeping, tendSoon } from "./tend.ts";

/**
 * The one or two pipes between an endpoint and one peer. What a wait asks of it are functions in
 * its fields, which other kinds of links and a meter replace.
 */
export class Link implements Waiter {
  readonly endpoint: Endpoint;
  /** Index of the endpoint at the other end. */
  readonly peer: number;
  /** Where its state word stands. */
  readonly peerState: number;
  readonly peerStates: readonly number[];
  asks = 0;
  /** Whether `close` was called on this end. */
  isClosed = false;
  outgoing: Outgoing | undefined;
  incoming: Incoming | undefined;
  delivery: Delivery | undefined;
  /** The first final or invalid state word of the peer, after which none counts. 0: none yet. */
  final = 0;
  streak = 0;
  /** Whether `tend` is about to run. */
  isDue = false;
  /** Whether it runs. */
  isTending = false;
  /** Whether the process lives for this link. */
  isKeeping = false;
  readonly tend = (): void => tend(this);
  prepare: Waiter["prepare"] = prepare;
  sees: Waiter["sees"] = sees;
  arm: Waiter["arm"] = arm;
  disarm: Waiter["disarm"] = disarm;

  /** Makes the link of an attached endpoint to one peer. */
  constructor(endpoint: Endpoint, peer: number) {
    this.endpoint = endpoint;
    this.peer = peer;
    this.peerState = stateAt(peer);
    this.peerStates = [this.peerState];
    endpoint.waiters.push(this);
  }

  /** Makes the link of the same endpoint to the next owner of the peer's. */
  again(): Link {
    return new Link(this.endpoint, this.peer);
  }

  /** Is told of the port that takes the place of one whose peer was vacated; for hubs. */
  // deno-lint-ignore no-explicit-any
  replace?(old: any, next: any): void;

  /** Tells the peer that this end is closed. */
  leave(): void {
    leaveEndpoint(this.endpoint);
  }
}

function prepare(this: Link, asks: number): number {
  const { outgoing, incoming } = this;
  if (outgoing) {
    const isLeft = outgoing.first !== undefined && !pump(outgoing);
    const isWanted = (asks & For.ROOM) !== 0 || outgoing.pendingCount > 0;
    // [port.posted]
    if (isLeft && isWanted) asks |= For.ROOM | (incoming ? fill(incoming) : 0);
    if (outgoing.cursor !== outgoing.published) store(outgoing);
  }
  // [port.publish_both]
  if (incoming && incoming.cursor !== incoming.published) store(incoming);
  return asks;
}

function sees(this: Link, asks: number): boolean {
  const { incoming, outgoing } = this;
  if (asks & For.FRAMES) {
    if (hasMoved(incoming!)) return true;
    if ((asks & For.MESSAGES) === For.MESSAGES) {
      // Something is known to be in the ring, or was taken out of it, or nothing will come.
      const { cursor, peerCursor, queue, bits } = incoming!;
      if (cursor !== peerCursor || queue.length > 0) return true;
      if (bits & (Bit.ENDED | Bit.STOPPED)) return true;
    }
  }
  if (asks & For.CALLS && (incoming!.route!.isDue || mayGoOn(incoming!))) return true;
  return (asks & For.ROOM) !== 0 && (outgoing!.first === undefined || hasMoved(outgoing!));
}

/** Asks the peer to ring. See `Waiter`. */
export function arm(this: Link, asks: number): void {
  const { incoming, outgoing } = this;
  if (asks & For.FRAMES) { // [wait.reader_asks]
    want(incoming!, (incoming!.cursor + layout.FRAME_ALIGN) | layout.WANTS_ARMED);
  }
  if (asks & For.ROOM) want(outgoing!, outgoing!.need | layout.WANTS_ARMED); // [wait.writer_asks]
}

function disarm(this: Link, asks: number): void {
  const left = asks & ~this.asks; // what the event loop does not wait for
  if (left & For.FRAMES) want(this.incoming!, 0);
  if (left & For.ROOM) want(this.outgoing!, 0);
}

/**
 * Does what can be done without waiting: places what was accepted, serves those who read, delivers
 * events. Then has the event loop sleep for what is left.
 */
function tend(link: Link): void {
  if (link.isTending) return tendSoon(link);
  const { endpoint, asks: before, incoming, outgoing, delivery } = link;
  link.isTending = true;
  link.isDue = false;
  link.asks = 0;
  try {
    if (before !== 0) link.disarm(before);
    let asks = incoming && incoming.takers.length > 0 ? serve(incoming) : 0;
    if (delivery) asks |= delivery.tend();
    asks |= link.prepare(0);
    noteKeeping(link);
    if (asks === 0) return;
    const bell = bellOf(endpoint); // [wait.bell_first]
    link.arm(asks);
    if (asks !== For.STATE && finds(link, asks)) { // [wait.recheck]
      link.disarm(asks);
      link.isDue = true;
      return void (giveWay() ?? SETTLED).then(link.tend);
    }
    link.asks = asks;
    try {
      listen(endpoint, bell, link);
    } catch (reason) { // of a mechanism of the application's
      link.asks = 0;
      link.disarm(asks);
      if (outgoing) giveUpAll(outgoing, reason);
      if (incoming) rejectAll(incoming, reason);
      noteKeeping(link);
    }
  } finally {
    link.isTending = false;
  }
}

/** Closes the endpoint. What was accepted goes out as far as there is room. [pipe.close] */
export function closeLink(link: Link): void {
  if (link.isClosed) return;
  if (link.outgoing?.first) pump(link.outgoing);
  discard(link);
  link.leave();
}

/** Drops what is not published or not delivered; after that stores nothing. [pipe.close] */
export function discard(link: Link): void {
  const { incoming, outgoing } = link;
  link.isClosed = true;
  link.asks = 0;
  if (outgoing) {
    stop(outgoing);
    drop(outgoing, closedError(link, "write"));
  }
  if (incoming) {
    stop(incoming);
    empty(incoming);
  }
  link.delivery?.finish(undefined);
  tendSoon(link); // those who read are told
}
