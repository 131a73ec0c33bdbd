/**
 * The reading end of a pipe: it keeps the rest of the last burst, and serves the calls and the
 * handler that wait for the next one.
 *
 * @module
 */

import type { MillraceError } from "../error.ts";
import { now } from "../memory/clock.ts";
import { isPast } from "../memory/segment.ts";
import { deadlineOf, type Delivery, For, limit } from "../pipe/link.ts";
import { giveWay, SETTLED, turn } from "../wait/loop.ts";
import { type Bounds, enforceLimit, type Taken } from "./sab_queue.ts";
import { isClosing, type ReaderWire } from "./sab_wire.ts";
import type { Owner, SabWriter } from "./sab_writer.ts";

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

/** An asynchronous read that waits. */
interface Taker {
  readonly most: number;
  readonly resolve: (taken: unknown) => void;
  readonly reject: (reason: unknown) => void;
  readonly stop: (() => void) | undefined;
}

/** Milliseconds after which a blocking read tries again to write what its port has posted. */
const OWING_MS = 1;
/**
 * Bursts after which an asynchronous read or a delivery checks whether the event loop has to turn.
 */
const STREAK = 8;

/** The messages of one reader. */
export class SabReader<T> implements Delivery {
  readonly wire: ReaderWire;
  readonly #bounds: Bounds<T>;
  readonly #owner: Owner;
  /** The writer of the same port. */
  #writer: SabWriter<unknown> | undefined;
  /** The rest of the burst that was taken last, newest first. */
  #queue: T[] = [];
  readonly #takers: Taker[] = [];
  #handler: MessageHandler<T> | null = null;
  #isDelivering = false;
  /** Whether a run of the delivery is under way: one burst in each microtask. */
  #isRunning = false;
  #streak = 0;
  readonly #run = (): void => {
    // Those who wait come first.
    if (this.#takers.length > 0 || !this.#isReady() && !this.#findAnswer()) {
      this.#isRunning = false;
      return this.wire.tend();
    }
    this.#dispatch();
    // Let the promises of the handler run first, and write what they post.
    ((++this.#streak % STREAK === 0 && giveWay()) || SETTLED).then(this.#run);
  };

  constructor(wire: ReaderWire, bounds: Bounds<T>, owner: Owner) {
    this.wire = wire;
    this.#bounds = bounds;
    this.#owner = owner;
    wire.owner = this;
  }

  /** Joins this reader and the writer of the same port. */
  set writer(writer: SabWriter<unknown> | undefined) {
    this.#writer = writer;
    this.wire.writer = writer?.wire;
  }

  /** Whether messages are being delivered to the handler. */
  get delivering(): boolean {
    return this.#isDelivering;
  }

  set delivering(on: boolean) {
    if (on !== this.#isDelivering) turn.listening += on ? 1 : -1;
    this.#isDelivering = on;
  }

  /** The handler that messages are delivered to, or `null`. */
  get handler(): MessageHandler<T> | null {
    return this.#handler;
  }

  set handler(handler: MessageHandler<T> | null) {
    this.#handler = handler;
    this.delivering = handler !== null;
    if (this.#isRunning) return;
    if (handler === null) this.wire.tend();
    else {
      this.#isRunning = true;
      this.#run();
    }
  }

  get keeps(): boolean {
    return this.#isDelivering || this.#takers.length > 0;
  }

  /** Serves the reads that wait, and then the handler. */
  tend(): number {
    for (let taker; (taker = this.#takers[0]) !== undefined;) {
      let taken: unknown;
      let fault: { reason: unknown } | undefined;
      try {
        if (this.#queue.length === 0 && !this.#fill()) return For.MESSAGES;
        taken = this.#take(taker.most);
      } catch (reason) {
        fault = { reason };
      }
      this.#takers.shift();
      taker.stop?.();
      if (fault === undefined) taker.resolve(taken);
      else taker.reject(fault.reason);
    }
    if (!this.#isDelivering || this.#isRunning) return 0;
    if (!this.#isReady()) return this.#isDelivering ? For.MESSAGES : 0;
    this.#isRunning = true;
    SETTLED.then(this.#run);
    return 0;
  }

  finish(): void {}

  /**
   * Takes up to `most` messages. If `blocking`, waits until there is one or the timeout has passed.
   */
  read<N extends number>(timeout: number, blocking: boolean, most: N): Taken<T, N> {
    this.#look();
    if (this.#queue.length === 0 && blocking) this.#block(timeout);
    const taken = this.#take(most);
    if (this.#takers.length > 0) this.wire.tendSoon(); // for what this read has left
    return taken;
  }

  /** Returns the next message without taking it. */
  peek(): T | null {
    this.#look();
    if (this.#takers.length > 0) this.wire.tendSoon();
    return this.#queue.at(-1) ?? null;
  }

  /** Does what `read` does, without blocking. */
  async readAsync<N extends number>(timeout: number, most: N): Promise<Taken<T, N>> {
    const way = timeout > 0 && ++this.#streak % STREAK === 0 ? giveWay() : undefined;
    if (this.#takers.length === 0 && way === undefined && this.#queue.length === 0) this.#fill();
    const isThere = this.#queue.length > 0 && this.#takers.length === 0;
    if (isThere || !(timeout > 0)) return this.#take(most);
    return await new Promise<unknown>((resolve, reject) => {
      const stop = limit({ timeout }, () => {
        this.#takers.splice(this.#takers.indexOf(taker), 1);
        try {
          resolve(this.#take(most));
        } catch (reason) {
          reject(reason);
        }
        this.wire.tend();
      });
      const taker: Taker = { most, resolve, reject, stop };
      this.#takers.push(taker);
      if (way === undefined) this.wire.tend();
      else way.then(() => this.wire.tend());
    }) as Taken<T, N>;
  }

  /** Puts messages back in front of all others; the argument lists them oldest first. */
  unread(messages: T[]): void {
    this.#queue = this.#queue.concat(messages.reverse());
  }

  /** Cuts the queue to its limit. */
  enforce(): void {
    enforceLimit(this.#queue, "newest first", this.#bounds);
  }

  /** Writes what the port has posted, and takes a burst if the queue is empty. */
  #look(): void {
    this.#writer?.write();
    if (this.#queue.length === 0) this.#fill();
  }

  /**
   * Takes a burst into the queue if there is one. `isMore` says that the call already has messages.
   */
  #fill(isMore = false): boolean {
    let burst: unknown[] | undefined;
    try {
      burst = this.wire.take();
    } catch (error) {
      if (isMore && isClosing(error)) return false; // the next call throws it
      throw this.#owner._report(error);
    }
    if (burst === undefined) return false;
    // The wire gives a burst oldest first. All of its messages are newer than those in the queue.
    const newer = (burst as T[]).reverse();
    this.#queue = this.#queue.length === 0 ? newer : newer.concat(this.#queue);
    if (this.#bounds.limit !== null) this.enforce();
    return true;
  }

  /** Blocks until there is a burst in the queue, or the timeout has passed. */
  #block(timeout: number): void {
    const deadline = deadlineOf({ timeout: Math.max(0, timeout) });
    for (let waits = 0, found = false; !found && !isPast(deadline); waits++) {
      const isDone = this.#writer?.write() ?? true;
      const most = isDone ? deadline : Math.min(deadline, now() + OWING_MS);
      try {
        found = this.wire.wait(most, waits);
      } catch (error) {
        throw this.#owner._report(error);
      }
      found &&= this.#fill();
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

  /** Whether there may be something to deliver; takes the next burst if the queue is empty. */
  #isReady(): boolean {
    if (!this.#isDelivering) return false;
    try {
      return this.#queue.length > 0 || this.#fill();
    } catch (error) {
      // If only a message was lost, or the overflow handler threw, the next burst may be good.
      const isOver = this.wire.disposed || (error as MillraceError).name === "CorruptError";
      if (isOver) this.delivering = false;
      return !isOver;
    }
  }

  /**
   * Whether an answer comes at once to what was posted, as it does if the peer is awake. In its
   * first rounds it may not be.
   */
  #findAnswer(): boolean {
    return this.#isDelivering && this.#streak > STREAK && this.wire.spinForAnswer?.() === true &&
      this.#isReady();
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
