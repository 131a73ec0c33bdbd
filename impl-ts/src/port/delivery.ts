/**
 * Delivers what a port reads to its listeners, turn by turn of the event loop. See `spec/port.md`.
 *
 * @module
 */

import { setTimeout } from "../memory/clock.ts";
import { MessageError, MillraceError } from "../error.ts";
import { WAIT_POLL_MS } from "../memory/layout.ts";
import type { Reader } from "../pipe/reader.ts";
import { settleOutcome } from "../pipe/inbox.ts";
import type { Inlet } from "../pipe/inlet.ts";
import { ArrivalEvent, type EventSource, PortCloseEvent } from "./events.ts";
import { AWAY, DRY, LATE, MORE, serve, type Served, serveInNewTurn } from "./rota.ts";
import type { Standing } from "./rota.ts";
import { now } from "../memory/segment.ts";
import { requireInteger } from "../memory/segment_geometry.ts";
import type { Waitable } from "../wait/wait.ts";
import type { Endpoint } from "../wait/endpoint.ts";
import { loopSpinnerOf } from "../wait/loop_spinner.ts";
import { requireTime } from "../wait/spinner.ts";
import { nextTask, unref } from "../wait/task.ts";
import type { Waiter } from "../wait/watch.ts";

/**
 * How messages are delivered as events.
 *
 * @example
 * ```ts
 * import { Port } from "@millrace/millrace";
 *
 * // At most 16 messages, or 1 ms, before timers, rendering and others have their turn.
 * const here = Port.create<number>({ turnCount: 16, turnTime: 1 });
 * const there = Port.attach<number>(here.memory); // usually in another thread
 * there.writeMany([1, 2, 3]);
 * there.end();
 * here.onmessage = ({ data }) => console.log(data); // 1, then 2, then 3
 * await here.closed;
 * ```
 */
export interface DeliveryOptions {
  /**
   * The most messages in one turn of the event loop, from 1. Default 256. The messages of all ports
   * of the thread count together, and the ports take turns.
   */
  readonly turnCount?: number | undefined;
  /**
   * Milliseconds after which no further message is delivered in the same turn, counted from the
   * first message of any port of the thread. Default 4.
   */
  readonly turnTime?: number | undefined;
}

/** Throws for options that a delivery cannot use. */
export function requireDeliveryOptions(options: DeliveryOptions): void {
  const { turnCount = 1, turnTime } = options;
  requireInteger("turnCount", turnCount, 1);
  requireTime("turnTime", turnTime);
}

/** Delivers the messages of one port as events. */
export class Delivery<In> implements EventSource, Served, Waiter {
  readonly endpoint: Endpoint;
  readonly limits: DeliveryOptions;
  /** What this delivery waits for, or would wait for. */
  what: Waitable;
  readonly #target: EventTarget;
  readonly #reader: Reader<In>;
  readonly #inlet: Inlet;
  #isListening = false;
  #isWatching = false;
  #isRunning = false;
  #keep = true;
  /**
   * Whether the listeners have sent something that may be answered, and when this then fell asleep.
   */
  #hasAsked = false;
  #asleep = 0;
  #error: MillraceError | undefined;
  #isOver = false;
  #closed: Promise<MillraceError | undefined> | undefined;
  #settle: (() => void) | undefined;

  /** Makes the delivery from a reader to an event target. */
  constructor(reader: Reader<In>, options: DeliveryOptions, target: EventTarget) {
    this.#target = target;
    this.#reader = reader;
    const inlet = this.what = this.#inlet = reader.inlet;
    this.endpoint = inlet.endpoint;
    this.limits = options;
  }

  /** Resolves when nothing more will come, with the error if there is one. */
  get closed(): Promise<MillraceError | undefined> {
    this.#closed ??= new Promise((resolve) => {
      this.#settle = () => resolve(this.#error);
      if (this.#isOver) this.#settle();
    });
    this.#rouse();
    return this.#closed;
  }

  /** Whether this delivery keeps the process alive. */
  get keeps(): boolean {
    return this.#keep && (this.#isListening || this.#inlet.taker?.keeps === true);
  }

  listen(type: string, on: boolean): void {
    this.change(() => {
      if (type === "message") this.#isListening = on;
      if (type === "close") this.#isWatching = on;
    });
  }

  /** Sets whether the process stays alive while messages are delivered. */
  keep(on: boolean): void {
    this.change(() => this.#keep = on);
  }

  /**
   * Runs `change`, which changes what this delivery is wanted for, and then acts on the new
   * situation.
   */
  change(change: () => void): void {
    const { watch } = this.endpoint;
    const before = this.keeps;
    change();
    const { keeps } = this;
    if (this.#isRunning && keeps !== before) {
      watch.dwell(this.#inlet.peer, keeps);
      watch.depart(before);
    }
    this.#rouse();
  }

  /** Notes that nothing more will come, and tells everybody, once. */
  finish(error?: MillraceError | undefined): void {
    if (this.#isOver) return;
    this.#isOver = true;
    // This end's own `close` is no error, whatever error its calls report from now on.
    this.#error = this.#inlet.link.closed ? undefined : error;
    this.#settle?.();
    // Not inside the call that has found it. An audio worklet has no `queueMicrotask`.
    Promise.resolve().then(() => this.#target.dispatchEvent(new PortCloseEvent(this.#error)));
    this.#rouse();
  }

  /** Goes on with the next owner of the peer's endpoint, if this delivery was over. */
  renew(): void {
    if (!this.#isOver) return;
    this.#isOver = false;
    this.#error = this.#closed = this.#settle = undefined;
    this.#rouse();
  }

  /** Whether this delivery takes messages out of the ring. */
  get #isTaking(): boolean {
    if (this.#isOver) return this.#isListening && this.#hasUnread;
    return this.#isListening || this.#inlet.taker?.isActive === true;
  }

  /** Whether messages are left that nobody has read; after `close` there are none. */
  get #hasUnread(): boolean {
    const inlet = this.#inlet;
    return inlet.queue.length > 0 || (inlet.isOpen && inlet.own !== inlet.other);
  }

  /** Whether anybody wants to know of messages, of calls, or of the end. */
  get #isWanted(): boolean {
    return this.#isTaking || (!this.#isOver && (this.#isWatching || this.#closed !== undefined));
  }

  /**
   * Starts this delivery if it is wanted, or, if it runs already, has it look at how things stand
   * now.
   */
  #rouse(): void {
    const { endpoint } = this;
    if (this.#isRunning) {
      if (endpoint.watch.remove(this)) serve(this);
    } else if (this.#isWanted) {
      this.#isRunning = true;
      endpoint.watch.dwell(this.#inlet.peer, this.keeps);
      // The job that began to listen comes to its end first, as with a MessagePort. If nothing has
      // come yet, that is certain: what wakes this delivery later is a task.
      if (!this.#inlet.hasMore && this.sleep()) return;
      nextTask(true, this.keeps).then(() => serveInNewTurn(this));
    }
  }

  serve(): Standing {
    const inlet = this.#inlet;
    if (inlet.link.closed) this.finish();
    if (!this.#isTaking) return this.#lookOut();
    if (this.#reader.isBusy || inlet.isLending) return this.#stepAside();
    this.#aim();
    const event = this.#take();
    if (event === undefined) return DRY;
    if (event !== null) this.#target.dispatchEvent(event);
    // Only a look that finds no message finds the end of the stream, or a final state.
    return inlet.hasMore || !this.#isTaking ? MORE : DRY;
  }

  noteAsked(): boolean {
    const { outgoing } = this.#inlet.link;
    this.#hasAsked = outgoing !== undefined && outgoing.isAnswerDue;
    if (this.#hasAsked) outgoing!.prepareForAnswer();
    return this.#hasAsked;
  }

  sleep(): boolean {
    const { endpoint } = this;
    if (!this.#isTaking || this.#reader.isBusy || this.#inlet.isLending) return false;
    this.#aim();
    if (!endpoint.watch.add(this)) return false;
    this.#asleep = this.#hasAsked && loopSpinnerOf(endpoint).learns ? now() : 0;
    return true;
  }

  wake(): void {
    if (this.#asleep > 0) loopSpinnerOf(this.endpoint).slept(now() - this.#asleep);
    this.#asleep = 0;
    serve(this);
  }

  #aim(): void {
    const inlet = this.#inlet;
    this.what = this.#isListening ? inlet : inlet.taker?.what ?? inlet;
  }

  /**
   * Takes the next message. Returns its event; null for a message of a call, undefined for no
   * message.
   */
  #take(): ArrivalEvent | null | undefined {
    try {
      if (!this.#isListening) {
        const found = this.#inlet.taker!.pump();
        if (found instanceof MessageError) throw found;
        return found ? null : undefined;
      }
      const data = this.#reader.tryRead();
      if (data !== undefined) return new ArrivalEvent("message", data, this.#target);
      if (this.#reader.ended) this.finish();
    } catch (error) {
      if (error instanceof MessageError) {
        return new ArrivalEvent("messageerror", error, this.#target);
      }
      if (!(error instanceof MillraceError)) throw error;
      this.finish(error);
    }
    return undefined;
  }

  /**
   * Leaves what comes to asynchronous reads, or to the user of a lent frame, until they are done.
   */
  #stepAside(): Standing {
    const again = () => serve(this);
    if (this.#reader.isBusy) this.#reader.served().then(again);
    else {
      // Nothing tells of a release: that is on the hot path, and to lend for long is rare here.
      const timer = setTimeout(again, WAIT_POLL_MS);
      if (!this.#keep) unref(timer);
    }
    return AWAY;
  }

  /**
   * While nobody takes messages: waits until a state may have ended the pipe, or stops if it has.
   */
  #lookOut(): Standing {
    const inlet = this.#inlet;
    const { watch } = this.endpoint;
    const outcome = this.#isWanted ? settleOutcome(inlet) : undefined;
    if (outcome !== undefined) this.finish(outcome.error);
    if (!this.#isWanted) {
      this.#isRunning = false;
      watch.depart(this.keeps);
    } else if (inlet.hasMore || inlet.isLending || inlet.link.isFinal()) {
      watch.rest(this); // somebody else has to read what is left; nothing rings when that is done
    } else {
      // This wait asks for no message, so it arms nothing.
      const look = () => inlet.look();
      const lookAround = () => inlet.lookAround();
      this.what = { peer: inlet.peer, look, lookAround, arm() {}, stayArmed() {}, disarm() {} };
      if (!watch.add(this)) return LATE;
    }
    return AWAY;
  }
}
