/**
 * The choice among several ends that can be read, and the waits for all of them at once.
 *
 * @module
 */

import { throwCannot, throwTypeError } from "../error.ts";
import { layout } from "../memory/layout.ts";
import { isPast } from "../memory/segment.ts";
import { Found, hasEnded, type Incoming, keepNext, Mode, pull } from "../pipe/incoming.ts";
import type { Link } from "../pipe/link.ts";
import { deadlineOfCall, type WaitOptions } from "../pipe/options.ts";
import { For } from "../pipe/tend.ts";
import { Head } from "../ring/frame.ts";
import { Bit } from "../ring/side.ts";
import { hasLeft, stateOf, stateWord } from "../wait/state.ts";
import { type Endpoint, wait } from "../wait/endpoint.ts";
import { giveWay } from "../wait/loop.ts";
import { type Sleeping, wakeLater } from "../wait/waitable.ts";
import type { Selectable } from "./select.ts";

/** The number of the choice in which each end was chosen last. */
const chosen: WeakMap<Link, number> = new WeakMap();
let choices = 0;

/** Several ends, and the waits for all of them at once. */
export class Selection {
  readonly #links: readonly Link[];
  readonly #groups: readonly Group[];

  /** @throws {TypeError} if there is nothing to select from. */
  constructor(ends: readonly Selectable[]) {
    if (ends.length === 0) throwTypeError("Cannot select: there are no ports");
    this.#links = ends.map(({ link }) => link);
    const parts = new Map<Endpoint, Link[]>();
    for (const link of this.#links) {
      const group = parts.get(link.endpoint);
      if (group === undefined) parts.set(link.endpoint, [link]);
      else group.push(link);
    }
    this.#groups = [...parts].map(([endpoint, links]) => new Group(endpoint, links));
  }

  /** Returns the index of an end that can be read, or -1 at the timeout. */
  select(options: WaitOptions): number {
    const deadline = deadlineOfCall(options);
    const [group, ...others] = this.#groups;
    if (others.length > 0 && options.timeout !== 0) {
      throwTypeError(
        "Cannot select: these ports belong to several endpoints, which no thread can block for " +
          "at once; use the ports of a hub, or selectAsync",
      );
    }
    for (let waits = 0;; waits++) {
      const found = this.#find();
      if (found >= 0) return found;
      for (const each of this.#groups) each.prepare(0);
      if (isPast(deadline)) return -1;
      wait(group!, For.MESSAGES, deadline, waits);
    }
  }

  /** `select` without blocking. */
  async selectAsync(options: WaitOptions): Promise<number> {
    const deadline = deadlineOfCall(options);
    await giveWay();
    for (;;) {
      const found = this.#find();
      if (found >= 0) return found;
      for (const each of this.#groups) each.prepare(0);
      if (isPast(deadline)) return -1;
      await this.#wait(deadline, options.signal);
    }
  }

  /** The index of the end that can be read and was chosen longest ago; -1 if there is none. */
  #find(): number {
    let found = -1;
    let least = Infinity;
    for (let index = 0; index < this.#links.length; index++) {
      const link = this.#links[index]!;
      const last = chosen.get(link) ?? 0;
      if (last >= least || !canBeRead(link)) continue;
      found = index;
      least = last;
    }
    if (found >= 0) chosen.set(this.#links[found]!, ++choices);
    return found;
  }

  /** Sleeps on all bells at once. When one sleep ends, it ends the others. */
  async #wait(deadline: number, signal: AbortSignal | undefined): Promise<void> {
    signal?.throwIfAborted();
    const over = new AbortController();
    const stop = () => over.abort();
    signal?.addEventListener("abort", stop);
    const waits = this.#groups.map((group) =>
      wakeLater(group, For.MESSAGES, deadline, over.signal)
    );
    try {
      await Promise.race(waits);
    } catch (error) {
      if (!over.signal.aborted) throw error;
    } finally {
      signal?.removeEventListener("abort", stop);
      stop();
      await Promise.allSettled(waits); // all `wants` words are disarmed after this
    }
    signal?.throwIfAborted();
  }
}

/** Whether a read of an end would not have to wait: for a message, a report, an end or an error. */
function canBeRead(link: Link): boolean {
  const incoming = link.incoming!;
  if ((incoming.bits & Bit.LENT) !== 0) throwCannot("select: a frame is lent");
  if (link.isClosed || incoming.queue.length > 0 || incoming.fault !== undefined) return true;
  return shows(incoming, true) || hasEnded(incoming) || isOver(link) && !shows(incoming, false);
}

/** Whether a message or a report is in the ring. */
function shows(incoming: Incoming, mayLoad: boolean): boolean {
  try {
    for (;;) {
      incoming.route?.begin();
      if (incoming.queue.length > 0) return true;
      const found = pull(incoming, Mode.LOOK, mayLoad);
      if (found === undefined) return false;
      if (found === Found.TAKEN) continue;
      // Of a message of several frames, only a read that finds the last one returns something.
      if (incoming.frame.flags === Head.WHOLE || (incoming.bits & Bit.LENDING) !== 0) return true;
      const kept = keepNext(incoming, mayLoad);
      if (kept !== Found.TAKEN) return kept === Found.IN_RING; // a read has to collect it
    }
  } catch (error) {
    if (error !== incoming.fault) incoming.queue.push(error as never); // a report, for the read
    return true;
  }
}

/** Whether a state says that nothing more will come. */
function isOver({ endpoint, peer }: Link): boolean {
  return hasLeft(endpoint) ||
    stateOf(stateWord(endpoint, peer)) > layout.ENDPOINT_STATE_ATTACHED;
}

/** The ends of one endpoint. One sleep on its bell waits for all of them. */
class Group implements Sleeping {
  asks = 0;
  readonly isKeeping = true;
  readonly endpoint: Endpoint;
  readonly peerStates: readonly number[];
  readonly #links: readonly Link[];
  wake: () => void = () => {};

  constructor(endpoint: Endpoint, links: readonly Link[]) {
    this.endpoint = endpoint;
    this.#links = links;
    this.peerStates = links.map(({ peerState }) => peerState);
  }

  prepare(asks: number): number {
    for (const link of this.#links) link.prepare(0);
    return asks;
  }

  sees(asks: number): boolean {
    return this.#links.some((link) => link.sees(asks));
  }

  arm(asks: number): void {
    for (const link of this.#links) link.arm(asks);
  }

  disarm(asks: number): void {
    for (const link of this.#links) link.disarm(asks);
  }

  tend(): void {
    this.wake();
  }
}
