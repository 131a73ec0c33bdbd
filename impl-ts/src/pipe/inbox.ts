/**
 * Looks into a reader from outside: for a port that waits for room, for `select`, and for a wait
 * for the end. See `spec/port.md`.
 *
 * @module
 */

import { MessageError, MillraceError } from "../error.ts";
import { IN_PARTS, type Inlet, KEEP, LOOK, MESSAGE, NOTHING, OVER } from "./inlet.ts";
import type { Message } from "./pipe.ts";
import type { Idle } from "./outlet.ts";
import { Looking, type Waitable } from "../wait/wait.ts";

/** How a pipe has ended. */
export interface Outcome {
  /** Undefined if the peer's `end` was read. */
  readonly error: MillraceError | undefined;
}

/** The result of an attempt to take a message in: taken, none there, or no room in the inbox. */
export type Taking = typeof TOOK | typeof NONE | typeof FULL;
export const TOOK = 0;
export const NONE = 1;
export const FULL = 2;

/**
 * The inbox of a port. It takes in what arrives while the port waits for room; the port then waits
 * for further arrivals as well.
 */
export class Inbox implements Idle {
  readonly #inlet: Inlet;
  readonly #arrival: Waitable;
  readonly #maxCount: number;
  readonly #maxSize: number;

  /** Makes the inbox of a reader, with room for `maxCount` messages and `maxSize` bytes. */
  constructor(inlet: Inlet, maxCount: number, maxSize: number) {
    this.#inlet = inlet;
    // What was taken into the queue already is no reason to look again.
    this.#arrival = new Looking(inlet, () => inlet.hasMoved);
    this.#maxCount = maxCount;
    this.#maxSize = maxSize;
  }

  /**
   * Takes messages in while there is room. Returns what to wait for in order to go on; undefined if
   * the inbox is full or nothing can come.
   */
  fill(): Waitable | undefined {
    const inlet = this.#inlet;
    if (!inlet.isOpen) return undefined;
    const before = inlet.queue.length;
    // One load only: the waiting writer looks at its deadline before it calls this again.
    let found = this.takeOne(true);
    while (found === TOOK) found = this.takeOne(false);
    inlet.store(); // [port.publish_both]
    if (inlet.queue.length > before || inlet.taker?.isDue) rouse(inlet);
    return inlet.isOpen && found !== FULL ? this.#arrival : undefined;
  }

  /**
   * Takes one message in, or hands it to the call layer, if there is room for it. [call.takes_in]
   */
  takeOne(mayLoad: boolean): Taking {
    const inlet = this.#inlet;
    const { taker } = inlet;
    if (!inlet.isOpen) return NONE;
    try {
      if (!this.hasRoom) return taker === undefined ? FULL : taker.takePassing(mayLoad);
      if (taker !== undefined) {
        if (taker.takeNext(mayLoad)) return TOOK;
        mayLoad = false;
      }
      const message = asLastRead(inlet, () => inlet.take(KEEP, undefined, mayLoad));
      if (message === undefined) return NONE;
      inlet.keep(message as Message);
    } catch (error) {
      // [port.inbox_fault] The inlet keeps a fault of the pipe, and reports it after the inbox.
      if (!(error instanceof MessageError)) return NONE;
      inlet.keep(error);
    }
    return TOOK;
  }

  /**
   * Whether the inbox may take more. The elements of a batch at the front of the queue do not
   * count.
   */
  get hasRoom(): boolean {
    const { queue, keptSize, taker } = this.#inlet;
    let count = queue.length - (queue.length > 0 && "values" in queue[0]! ? 1 : 0);
    let size = keptSize;
    if (taker !== undefined) {
      count += taker.waitingCount;
      size += taker.waitingSize;
      if (count === 0) return true; // [call.takes_in]
    }
    return count < this.#maxCount && size < this.#maxSize;
  }
}

/**
 * Looks whether a read would return or throw something at once; for `select`. What cannot be left
 * in the ring for that, a message of several frames or the report of a lost one, moves into the
 * queue.
 */
export function findReadable(inlet: Inlet): boolean {
  const { queue, link, taker } = inlet;
  if (taker?.isDue) taker.begin();
  if (queue.length > 0) return true;
  // True of most ports of a hub: nothing has moved since the last look.
  if (inlet.isOpen && !inlet.hasMore) return link.isFinal();
  const found = asLastRead(inlet, () => {
    try {
      taker?.serve(true);
      if (queue.length > 0) return OVER;
      const found = inlet.pull(MESSAGE, undefined, taker === undefined);
      if (found === IN_PARTS) inlet.keep(inlet.takeParts(MESSAGE, undefined) as Message);
      return found;
    } catch (error) {
      // A fault or a close is kept, and the next read reports it.
      if (!(error instanceof MillraceError)) throw error;
      if (error instanceof MessageError) inlet.keep(error);
      return OVER;
    }
  });
  if (queue.length > 0) rouse(inlet);
  return found !== NOTHING || link.isFinal();
}

/**
 * Finds out how the pipe has ended, for ports; undefined while more can come or something is
 * unread. Takes nothing but the `end`; if the peer is gone, the parts of a message are dropped.
 *
 * After the end of its calls, a port does not wait until its messages are read, because a program
 * that only serves or calls reads none. They can be read later.
 */
export function settleOutcome(inlet: Inlet): Outcome | undefined {
  const isLost = inlet.taker?.isLost === true;
  try {
    if (inlet.isLending || (inlet.queue.length > 0 && !isLost)) return undefined;
    let found = inlet.pull(LOOK, undefined, true);
    const gone = found === NOTHING || isLost ? inlet.lookAgain() : undefined;
    if (gone !== undefined) found = inlet.pull(LOOK, undefined, false);
    if (found === OVER) return { error: undefined };
    if (gone === undefined) return undefined;
    if (found === NOTHING) return { error: inlet.giveUp(gone) };
    return isLost ? { error: gone } : undefined;
  } catch (error) {
    if (error instanceof MillraceError) return { error };
    throw error;
  }
}

/** Does `work`, and then restores what was noted of the message that was read last. */
function asLastRead<R>(inlet: Inlet, work: () => R): R {
  const { kind, codec, tag } = inlet;
  const last = { kind, codec, tag };
  try {
    return work();
  } finally {
    inlet.note(last);
  }
}

/**
 * [port.inbox_wake] Has the endpoint's own waits look again. The peer does not ring for them: it
 * has answered their `wants` already, or never looks at it.
 */
export function rouse(inlet: Inlet): void {
  inlet.endpoint.watch.look();
}
