/**
 * What the reading end of a pipe holds: the rest of a burst, and those who wait for the next.
 *
 * @module
 */

import { CorruptError } from "../error.ts";
import { deadlineOf } from "../pipe.ts";
import { Turns } from "../wait.ts";
import { type Bounds, Queue, type Taken } from "./sab_queue.ts";
import { isClosing, type ReaderWire } from "./sab_wire.ts";

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

/** What the inbox needs of its pipe. */
export interface InboxOwner {
  /** Throws if the pipe is disposed. */
  requireOpen(): void;
  /** Makes an error of the wire one for the caller. */
  report(error: unknown): unknown;
  /** Writes what the port still owes; true when nothing is left to be written. */
  write(): boolean;
}

/** How long a blocking read waits before it tries again to write what its port still owes. */
const OWING_MS = 1;

/** The messages of one reader. */
export class Inbox<T> {
  /** Whether messages are being delivered to the handler. */
  delivering = false;
  readonly #wire: ReaderWire;
  readonly #bounds: Bounds<T>;
  readonly #owner: InboxOwner;
  /** The rest of the burst that was taken last. */
  readonly #queue: Queue<T> = new Queue<T>("newest first");
  readonly #turns: Turns = new Turns();
  /** Makes whoever waits look at the queue and the handler again. */
  #nudger: AbortController = new AbortController();
  #handler: MessageHandler<T> | null = null;

  constructor(wire: ReaderWire, bounds: Bounds<T>, owner: InboxOwner) {
    this.#wire = wire;
    this.#bounds = bounds;
    this.#owner = owner;
  }

  /** The handler of messages. */
  get handler(): MessageHandler<T> | null {
    return this.#handler;
  }

  set handler(handler: MessageHandler<T> | null) {
    this.#handler = handler;
    if (handler === null) this.#nudge();
    else if (!this.delivering) this.#deliver();
  }

  /** Takes up to `most` messages; blocks until there is one, or the time is up. */
  read<N extends number>(timeout: number, blocking: boolean, most: N): Taken<T, N> {
    this.#owner.write();
    if (this.#empty) this.#fill(timeout, blocking);
    return this.#take(most);
  }

  /** The next message, left where it is. */
  peek(): T | null {
    this.#owner.write();
    if (this.#empty) this.#fill(0, false);
    return this.#queue.values.at(-1) ?? null;
  }

  /** `read` without blocking. */
  async readAsync<N extends number>(timeout: number, most: N): Promise<Taken<T, N>> {
    if (!this.#empty) return this.#take(most);
    const deadline = deadlineOf(Math.max(0, timeout));
    if (!this.#turns.tryTake() && !await this.#turns.take(deadline, undefined)) {
      return this.#take(most);
    }
    try {
      while (this.#empty && await this.#fillAsync(deadline));
      return this.#take(most);
    } finally {
      this.#turns.give();
    }
  }

  /** Puts messages, oldest first, in front of all others. */
  unread(messages: T[]): void {
    this.#queue.values = this.#queue.values.concat(messages.reverse());
  }

  /** Cuts the queue to its limit. */
  enforce(): void {
    this.#queue.enforce(this.#bounds);
  }

  get #empty(): boolean {
    return this.#queue.values.length === 0;
  }

  /** Takes a burst into the queue, and waits for it as the caller of `read` says. */
  #fill(timeout: number, blocking: boolean): void {
    try {
      const wire = this.#wire;
      if (!blocking) return this.#keep(wire.take(0));
      const deadline = deadlineOf(Math.max(0, timeout));
      for (;;) {
        const left = Math.max(0, deadline - performance.now());
        const burst = wire.take(this.#owner.write() ? left : Math.min(left, OWING_MS));
        if (burst !== undefined) return this.#keep(burst);
        this.#owner.requireOpen();
        if (performance.now() >= deadline) return;
      }
    } catch (error) {
      throw this.#owner.report(error);
    }
  }

  /** Waits for a burst once, and returns whether to go on. */
  async #fillAsync(deadline: number): Promise<boolean> {
    this.#owner.requireOpen();
    const { signal } = this.#nudger;
    const left = Math.max(0, deadline - performance.now());
    try {
      this.#keep(await this.#wire.takeAsync(left, signal));
    } catch (error) {
      if (signal.aborted && error === signal.reason) return true;
      throw this.#owner.report(error);
    }
    return performance.now() < deadline;
  }

  /** Takes messages out of the queue, and more bursts into it if it has not enough for that. */
  #take<N extends number>(most: N): Taken<T, N> {
    const queue = this.#queue;
    if (most as number === 1) return (this.#empty ? null : queue.values.pop()) as Taken<T, N>;
    // With a limit, what is still in the pipe must not push out what was not asked for yet.
    while (!this.#empty && queue.values.length < most && this.#bounds.limit === null) {
      if (!this.#fillMore()) break;
    }
    const count = Math.min(most, queue.values.length);
    return (count > 0 ? queue.values.splice(-count) : []) as Taken<T, N>;
  }

  #fillMore(): boolean {
    try {
      const burst = this.#wire.take(0);
      this.#keep(burst);
      return burst !== undefined;
    } catch (error) {
      if (!isClosing(error)) throw error; // What is in the queue stays there.
      return false; // The next call finds it again.
    }
  }

  /** The messages of a burst, oldest first, are newer than all in the queue. */
  #keep(burst: unknown[] | undefined): void {
    if (burst === undefined) return;
    this.#queue.values = (burst as T[]).reverse().concat(this.#queue.values);
    // An asynchronous read may wait for what a blocking one has left over.
    if (this.#turns.busy) this.#nudge();
    this.enforce();
  }

  #nudge(): void {
    const nudger = this.#nudger;
    this.#nudger = new AbortController();
    nudger.abort();
  }

  async #deliver(): Promise<void> {
    this.delivering = true;
    try {
      while (this.#handler !== null) {
        this.#dispatch();
        if (this.#handler !== null) await this.#waitToDeliver();
      }
    } catch {
      // Disposed or broken: there is nothing more to deliver.
    } finally {
      this.delivering = false;
    }
  }

  #dispatch(): void {
    while (!this.#empty && this.#handler !== null) {
      const data = this.#queue.values.pop()!;
      try {
        this.#handler({ data });
      } catch {
        // As in the original, a handler that throws does not stop the delivery.
      }
    }
  }

  async #waitToDeliver(): Promise<void> {
    try {
      if (!this.#turns.tryTake() && !await this.#turns.take(Infinity, this.#nudger.signal)) return;
    } catch {
      return; // Nudged.
    }
    try {
      if (this.#empty) await this.#fillAsync(Infinity);
    } catch (error) {
      this.#owner.requireOpen();
      if (error instanceof CorruptError) throw error;
      // A message that was lost, or a handler of the overflow that threw: the next may be good.
    } finally {
      this.#turns.give();
    }
  }
}
