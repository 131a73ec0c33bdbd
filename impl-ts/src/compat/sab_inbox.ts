/**
 * The reading end of a pipe: it keeps the rest of the last burst, and serves the calls and the
 * handler that wait for the next one.
 *
 * @module
 */

import { CorruptError } from "../error.ts";
import { deadlineOf } from "../pipe/pipe.ts";
import { isPast, now } from "../memory/segment.ts";
import { Turns } from "../wait/wait.ts";
import { type Bounds, enforceLimit, type Taken } from "./sab_queue.ts";
import { isClosing, type ReaderWire, sleepOn } from "./sab_wire.ts";

/**
 * A handler of messages.
 *
 * @example
 * ```ts
 * import { type MessageHandler, SABPipe } from "@millrace/millrace/sab-message-port";
 *
 * const writer = new SABPipe<string>("w");
 * const reader = new SABPipe<string>("r", writer.buffer); // usually in a worker
 * const heard = Promise.withResolvers<string>();
 * const handler: MessageHandler<string> = ({ data }) => heard.resolve(data);
 * reader.onmessage = handler;
 * writer.postMessage("hello");
 * console.log(await heard.promise); // "hello"
 * writer.destroy();
 * ```
 */
export type MessageHandler<T> = (event: { data: T }) => void;

/** What an inbox needs from the pipe that owns it. */
export interface InboxOwner {
  /** Turns an error of the wire into the one that the caller gets. */
  _report(error: unknown): unknown;
  /** Writes what the port has posted and not yet written. Returns true when nothing is left. */
  _write(): boolean;
}

/** Milliseconds after which a blocking read tries again to write what its port has posted. */
const OWING_MS = 1;
/**
 * Bursts after which an asynchronous read or a delivery checks whether the event loop has to turn.
 */
const STREAK = 8;

/** A resolved promise: its `then` runs a function in a microtask. */
const settled = /* @__PURE__ */ Promise.resolve();

/** How many inboxes of this thread are delivering messages. */
let deliveryCount = 0;

/** The messages of one reader. */
export class Inbox<T> {
  /** Whether messages are being delivered to the handler. */
  delivering = false;
  readonly wire: ReaderWire;
  readonly #bounds: Bounds<T>;
  readonly #owner: InboxOwner;
  /** The rest of the burst that was taken last, newest first. */
  #queue: T[] = [];
  readonly #turns: Turns = new Turns();
  #handler: MessageHandler<T> | null = null;
  #streak = 0;
  /** Whether the delivery has the turn, because it sleeps or looks for a burst. */
  #hasTurn = false;
  // These two are created once, because a conversation has a burst for each message; and a function
  // that schedules itself as a microtask creates fewer objects than an asynchronous one.
  readonly #again = (): void => void settled.then(this.#step);
  readonly #step = (): void => {
    const { wire } = this;
    try {
      if (this.#handler === null) return this.#deliver(false);
      if (!this.#hasTurn && !this.#turns.tryTake()) {
        const taken = () => this.#hasTurn = true;
        this.#turns.take(Infinity, undefined, taken).then(this.#step);
        return;
      }
      this.#hasTurn = true;
      if (!this.#fillToDeliver() && wire.sleep(Infinity, this.#again)) return;
      this.#giveTurn();
      this.#dispatch();
      // Let the promises of the handler run first, and write what they post.
      ((++this.#streak % STREAK === 0 && wire.giveWay()) || settled).then(this.#step);
    } catch {
      this.#deliver(false); // the pipe is disposed or broken: nothing more will come
    }
  };

  constructor(wire: ReaderWire, bounds: Bounds<T>, owner: InboxOwner) {
    this.wire = wire;
    this.#bounds = bounds;
    this.#owner = owner;
  }

  /** The handler that messages are delivered to, or `null`. */
  get handler(): MessageHandler<T> | null {
    return this.#handler;
  }

  set handler(handler: MessageHandler<T> | null) {
    this.#handler = handler;
    if (handler === null) this.wire.nudge();
    else if (!this.delivering) this.#deliver(true);
  }

  /**
   * Takes up to `most` messages. If `blocking`, waits until there is one or the timeout has passed.
   */
  read<N extends number>(timeout: number, blocking: boolean, most: N): Taken<T, N> {
    this.#owner._write();
    if (this.#queue.length === 0 && !this.#fill() && blocking) this.#block(timeout);
    return this.#take(most);
  }

  /** Returns the next message without taking it. */
  peek(): T | null {
    this.#owner._write();
    if (this.#queue.length === 0) this.#fill();
    return this.#queue.at(-1) ?? null;
  }

  /** Does what `read` does, without blocking. */
  async readAsync<N extends number>(timeout: number, most: N): Promise<Taken<T, N>> {
    if (this.#queue.length > 0) return this.#take(most);
    const deadline = deadlineOf(Math.max(0, timeout));
    if (!this.#turns.tryTake() && !await this.#turns.take(deadline, undefined)) {
      return this.#take(most);
    }
    try {
      if (++this.#streak % STREAK === 0) await this.wire.giveWay();
      if (this.#queue.length === 0 && !this.#fill()) await this.#wait(deadline);
      return this.#take(most);
    } finally {
      this.#turns.give();
    }
  }

  /** Puts messages back in front of all others; the argument lists them oldest first. */
  unread(messages: T[]): void {
    this.#queue = this.#queue.concat(messages.reverse());
  }

  /** Cuts the queue to its limit. */
  enforce(): void {
    enforceLimit(this.#queue, "newest first", this.#bounds);
  }

  /**
   * Takes a burst into the queue if there is one. `isMore` says that the call already has messages.
   */
  #fill(isMore = false): boolean {
    let burst: unknown[] | undefined;
    try {
      burst = this.wire.tryTake();
    } catch (error) {
      if (isMore && isClosing(error)) return false; // the next call throws it
      throw this.#owner._report(error);
    }
    if (burst === undefined) return false;
    // The wire gives a burst oldest first. All of its messages are newer than those in the queue.
    const newer = (burst as T[]).reverse();
    this.#queue = this.#queue.length === 0 ? newer : newer.concat(this.#queue);
    this.wire.nudge(); // an asynchronous read may be waiting for what a blocking one leaves
    if (this.#bounds.limit !== null) this.enforce();
    return true;
  }

  /** Blocks until there is a burst in the queue, or the timeout has passed. */
  #block(timeout: number): void {
    const deadline = deadlineOf(Math.max(0, timeout));
    for (let waits = 0, found = false; !found && !isPast(deadline); waits++) {
      const isDone = this.#owner._write();
      const most = isDone ? deadline : Math.min(deadline, now() + OWING_MS);
      try {
        found = this.wire.wait(most, waits);
      } catch (error) {
        throw this.#owner._report(error);
      }
      found &&= this.#fill();
    }
  }

  /** Waits for a burst until the deadline, or until another call has filled the queue. */
  async #wait(deadline: number): Promise<void> {
    this.wire.keepAlive(true);
    try {
      while (this.#queue.length === 0 && !this.#fill()) {
        const left = deadline - now();
        if (!(left > 0)) return;
        await sleepOn(this.wire, left);
      }
    } finally {
      this.wire.keepAlive(false);
    }
  }

  /** Takes messages out of the queue, after filling it with more bursts if it holds too few. */
  #take<N extends number>(most: N): Taken<T, N> {
    if (most as number === 1) {
      return (this.#queue.length === 0 ? null : this.#queue.pop()) as Taken<T, N>;
    }
    // If the queue has a limit, it takes no more bursts: they could push out messages not yet read.
    while (this.#queue.length > 0 && this.#queue.length < most && this.#bounds.limit === null) {
      if (!this.#fill(true)) break;
    }
    const queue = this.#queue;
    if (queue.length > most) return (most > 0 ? queue.splice(-most) : []) as Taken<T, N>;
    this.#queue = [];
    return queue as Taken<T, N>;
  }

  #deliver(on: boolean): void {
    this.delivering = on;
    deliveryCount += on ? 1 : -1;
    this.wire.keepAlive(on);
    if (on) this.#step();
    else this.#giveTurn();
  }

  #giveTurn(): void {
    if (this.#hasTurn) this.#turns.give();
    this.#hasTurn = false;
  }

  /** Takes the next burst if the queue is empty. Returns false if there is nothing to deliver. */
  #fillToDeliver(): boolean {
    const { wire } = this;
    try {
      // An answer to what was posted comes soon if the peer is awake. In its first rounds it may
      // not be.
      const mayLook = this.#streak > STREAK && deliveryCount === 1;
      while (this.#queue.length === 0 && !this.#fill()) {
        if (!mayLook || !wire.spinForAnswer?.()) return false;
      }
    } catch (error) {
      if (wire.disposed || error instanceof CorruptError) throw error;
      // A message was lost, or the overflow handler threw: the next burst may be good.
    }
    return true;
  }

  #dispatch(): void {
    for (let handler; this.#queue.length > 0 && (handler = this.#handler) !== null;) {
      try {
        handler({ data: this.#queue.pop()! });
      } catch {
        // As in the original, a handler that throws does not stop the delivery.
      }
    }
  }
}
