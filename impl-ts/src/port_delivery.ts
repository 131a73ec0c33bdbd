/**
 * Brings what a port reads to its listeners, turn by turn of the event loop. See `spec/port.md`.
 *
 * @module
 */

import { MessageError, MillraceError } from "./error.ts";
import { WAIT_POLL_MS } from "./layout.ts";
import type { Reader } from "./pipe_reader.ts";
import { takeOutcome } from "./pipe_inbox.ts";
import type { Inlet } from "./pipe_inlet.ts";
import { ArrivalEvent, type EventSource, PortCloseEvent } from "./port_events.ts";
import { AWAY, DRY, LATE, MORE, Rota, type Served, type Standing } from "./port_rota.ts";
import { requireInteger } from "./segment_geometry.ts";
import type { Waitable } from "./wait.ts";
import type { Endpoint } from "./wait_endpoint.ts";
import { loopSpinnerOf } from "./wait_spinner.ts";
import { nextTask, unref } from "./wait_task.ts";
import type { Waiter } from "./wait_watch.ts";

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
   * Most messages in one turn of the event loop, from 1. Default 256. Those of all ports of the
   * thread count, which take turns.
   */
  readonly turnCount?: number | undefined;
  /**
   * Milliseconds after which no further message is delivered in the same turn, since the first one
   * of any port of the thread. Default 4.
   */
  readonly turnTime?: number | undefined;
}

const DEFAULT_TURN_COUNT = 256;
const DEFAULT_TURN_TIME = 4;

/** Deliveries of this thread take turns. */
let threadRota: Rota | undefined;

/** What serves the deliveries of this thread, made for the first of them. */
function rotaOf(): Rota {
  return threadRota ??= new Rota();
}

/** Throws for what a delivery cannot work with. */
export function requireDeliveryOptions(options: DeliveryOptions): void {
  const { turnCount = DEFAULT_TURN_COUNT, turnTime = DEFAULT_TURN_TIME } = options;
  requireInteger("turnCount", turnCount, 1);
  if (turnTime >= 0) return;
  throw new RangeError(`turnTime must be 0 or more: ${turnTime}`);
}

/** The events of one port. */
export class Delivery<In> implements EventSource, Served, Waiter {
  readonly #target: EventTarget;
  readonly endpoint: Endpoint;
  readonly #reader: Reader<In>;
  readonly #inlet: Inlet;
  readonly #turnCount: number;
  readonly #turnTime: number;
  readonly #clock: () => number;
  #isListening = false;
  #isWatching = false;
  #isRunning = false;
  #keep = true;
  /** What it waits for while nobody listens to messages: it asks for nothing. */
  readonly #end: Waiter;
  /** Ends a pause. */
  #timer: unknown;
  /** Whether its listeners have sent something that may be answered; when it then fell asleep. */
  #hasAsked = false;
  #asleep = 0;
  #error: MillraceError | undefined;
  #isOver = false;
  #closed: Promise<MillraceError | undefined> | undefined;
  #settle: (() => void) | undefined;

  /** Makes the delivery of a reader to a target. `clock` is for tests. */
  constructor(
    reader: Reader<In>,
    options: DeliveryOptions & { readonly clock?: () => number },
    target: EventTarget,
  ) {
    this.#target = target;
    this.#reader = reader;
    const inlet = this.#inlet = reader.inlet;
    this.endpoint = inlet.endpoint;
    this.#turnCount = options.turnCount ?? DEFAULT_TURN_COUNT;
    this.#turnTime = options.turnTime ?? DEFAULT_TURN_TIME;
    this.#clock = options.clock ?? (() => performance.now());
    this.#end = {
      what: {
        peer: inlet.peer,
        look: () => inlet.look(),
        lookAround: () => inlet.lookAround(),
        arm() {},
        stayArmed() {},
        disarm() {},
      },
      wake: () => rotaOf().add(this),
    };
  }

  /** Settles when nothing more will come, with the error if there is one. */
  get closed(): Promise<MillraceError | undefined> {
    this.#closed ??= new Promise((resolve) => {
      this.#settle = () => resolve(this.#error);
      if (this.#isOver) this.#settle();
    });
    this.#rouse();
    return this.#closed;
  }

  /** Whether the process lives for it. */
  get keeps(): boolean {
    return this.#keep && (this.#isListening || this.#inlet.taker?.keeps === true);
  }

  /** What it waits for. */
  get what(): Waitable {
    const inlet = this.#inlet;
    return this.#isListening ? inlet : inlet.taker?.what ?? inlet;
  }

  /** Whether it looks for calls where nobody listens to messages. */
  get #isServing(): boolean {
    return this.#inlet.taker?.isActive === true;
  }

  /** Does what changes how much its calls want of it. */
  serveCalls(change: () => void): void {
    this.#change(change);
  }

  listen(on: boolean): void {
    ArrivalEvent.prepare();
    this.#change(() => this.#isListening = on);
  }

  watch(on: boolean): void {
    this.#isWatching = on;
    this.#rouse();
  }

  /** Whether the process lives while messages are delivered. */
  keep(on: boolean): void {
    this.#change(() => this.#keep = on);
  }

  /** Nothing more will come: tells everybody, once. */
  finish(error?: MillraceError | undefined): void {
    if (this.#isOver) return;
    this.#isOver = true;
    // The own close is no error, whatever the verbs say about it from now on.
    this.#error = this.#inlet.link.closed ? undefined : error;
    this.#settle?.();
    // Not inside of the call that has found it. An audio worklet has no `queueMicrotask`.
    Promise.resolve().then(() => this.#target.dispatchEvent(new PortCloseEvent(this.#error)));
    this.#rouse();
  }

  /** Goes on with the next owner of the peer's endpoint: what was over is not over any more. */
  renew(): void {
    if (!this.#isOver) return;
    this.#isOver = false;
    this.#error = this.#closed = this.#settle = undefined;
    this.#rouse();
  }

  /** Whether anybody wants to know of anything. */
  #isWanted(): boolean {
    return !this.#isOver &&
      (this.#isListening || this.#isWatching || this.#closed !== undefined || this.#isServing);
  }

  /** Whether it takes messages out of the ring. */
  get #isTaking(): boolean {
    return !this.#isOver && (this.#isListening || this.#isServing);
  }

  /** Whether events may take messages: no asynchronous read is served first, nothing is lent. */
  #isFree(): boolean {
    return !this.#reader.isBusy && !this.#inlet.isLending;
  }

  #change(change: () => void): void {
    const { watch } = this.endpoint;
    const before = this.keeps;
    change();
    if (this.#isRunning && this.keeps !== before) {
      watch.dwell(this.what.peer, this.keeps);
      watch.depart(before);
    }
    this.#rouse();
  }

  /** Sees to it that it is served, and finds out how things stand now. */
  #rouse(): void {
    if (this.#isRunning) {
      const { watch } = this.endpoint;
      if (watch.remove(this) || watch.remove(this.#end) || this.#endPause()) rotaOf().add(this);
    } else if (this.#isWanted()) {
      this.#isRunning = true;
      this.endpoint.watch.dwell(this.what.peer, this.keeps);
      // First of all the job that began to listen comes to its end, as with a MessagePort. Where
      // nothing has come yet, that is so anyway: what wakes this is a task.
      if (!this.#inlet.hasMore && this.sleep()) return;
      nextTask(true, this.keeps).then(() => {
        rotaOf().renew();
        rotaOf().add(this);
      });
    }
  }

  #stop(): Standing {
    this.#isRunning = false;
    this.endpoint.watch.depart(this.keeps);
    return AWAY;
  }

  serve(rota: Rota, most: number): Standing {
    if (this.#inlet.link.closed) this.finish();
    if (this.#isTaking) return this.#deliver(rota, most);
    return this.#isWanted() ? this.#lookOut() : this.#stop();
  }

  noteAsked(): boolean {
    const { outgoing } = this.#inlet.link;
    this.#hasAsked = outgoing !== undefined && outgoing.isAnswerDue;
    if (this.#hasAsked) outgoing!.expectAnswer();
    return this.#hasAsked;
  }

  sleep(): boolean {
    if (!this.#isTaking || !this.#isFree()) return false;
    if (!this.endpoint.watch.add(this)) return false;
    this.#asleep = this.#hasAsked && loopSpinnerOf(this.endpoint).learns ? performance.now() : 0;
    return true;
  }

  wake(): void {
    if (this.#asleep > 0) loopSpinnerOf(this.endpoint).slept(performance.now() - this.#asleep);
    rotaOf().add(this);
  }

  /** Delivers what is there. */
  #deliver(rota: Rota, most: number): Standing {
    let count = 0;
    // The first look in any case: only that finds the end, and what a state says.
    for (let more = true; more; more = this.#inlet.hasMore) {
      if (!this.#isTaking) break;
      if (!this.#isFree()) return this.#stepAside();
      if (count >= most) return MORE;
      if (!rota.allows(this.#turnCount, this.#turnTime, this.#clock)) {
        return count > 0 ? MORE : LATE;
      }
      const event = this.#isListening ? this.#take() : this.#pump();
      if (event === undefined) break;
      count++;
      rota.count++;
      event?.dispatchAt(this.#target);
    }
    return DRY;
  }

  /** Takes one message for calls: null where that makes no event. */
  #pump(): ArrivalEvent | null | undefined {
    const found = this.#inlet.taker!.pump();
    if (!(found instanceof MessageError)) return found ? null : undefined;
    ArrivalEvent.prepare();
    return new ArrivalEvent("messageerror", found);
  }

  #take(): ArrivalEvent | undefined {
    try {
      const data = this.#reader.tryRead();
      if (data !== undefined) return new ArrivalEvent("message", data);
      if (this.#reader.ended) this.finish();
    } catch (error) {
      if (error instanceof MessageError) return new ArrivalEvent("messageerror", error);
      if (!(error instanceof MillraceError)) throw error;
      this.finish(error);
    }
    return undefined;
  }

  /** Leaves what comes to others, for as long as they have to be served first. */
  #stepAside(): Standing {
    if (this.#reader.isBusy) this.#reader.served().then(() => rotaOf().add(this));
    // Nothing tells of a release: that is on the hot path, and to lend for long is rare here.
    else this.#pause();
    return AWAY;
  }

  /** Waits until a state may have ended the pipe. */
  #lookOut(): Standing {
    const inlet = this.#inlet;
    const { watch } = this.endpoint;
    const outcome = takeOutcome(inlet);
    if (outcome !== undefined) {
      this.finish(outcome.error);
      return this.#stop();
    }
    // What is left, somebody else has to read; nothing rings when that is done.
    if (inlet.hasMore || inlet.isLending || inlet.link.isFinal()) watch.rest(this.#end);
    else if (!watch.add(this.#end)) return LATE;
    return AWAY;
  }

  #pause(): void {
    this.#timer = setTimeout(() => {
      this.#timer = undefined;
      rotaOf().add(this);
    }, WAIT_POLL_MS);
    if (!this.#keep) unref(this.#timer);
  }

  #endPause(): boolean {
    if (this.#timer === undefined) return false;
    clearTimeout(this.#timer as number);
    this.#timer = undefined;
    return true;
  }
}
