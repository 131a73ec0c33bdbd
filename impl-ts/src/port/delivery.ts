/**
 * Brings the messages of a port to its listeners, one in each microtask, until the ring is empty or
 * the event loop has to turn. See `spec/port.md`.
 *
 * @module
 */

import { MillraceError } from "../error.ts";
import { requireAmount, requireInteger } from "../memory/plan.ts";
import { now } from "../memory/clock.ts";
import type { Link } from "../pipe/link.ts";
import { type Delivery, For, noteKeeping, stateError } from "../pipe/tend.ts";
import {
  Found,
  giveUpRest,
  hasEnded,
  isLending,
  keepNext,
  mayGoOn,
  Mode,
  noteAsked,
  pull,
  type Route,
  tryRead,
} from "../pipe/incoming.ts";
import { Bit, load } from "../ring/side.ts";
import { nextTask, SETTLED, turn } from "../wait/loop.ts";
import { type EventSource, PortEvent } from "./events.ts";

/**
 * How many messages listeners get before the event loop turns. What all ports of a thread deliver
 * in one turn counts together.
 *
 * @example
 * ```ts
 * import { type DeliveryOptions, Port } from "@millrace/millrace";
 *
 * const gentle: DeliveryOptions = { turnCount: 16, turnTime: 1 };
 * using port = Port.create(gentle); // a page that draws between any 16 messages
 * port.onmessage = ({ data }) => console.log(data);
 * ```
 */
export interface DeliveryOptions {
  /** The most messages in one turn of the event loop, from 1. Default 256. */
  readonly turnCount?: number | undefined;
  /**
   * Milliseconds after which no further message is delivered in the same turn. Default 4. The clock
   * is read after every fourth message; with 0, a turn delivers one message.
   */
  readonly turnTime?: number | undefined;
}

/** Throws for options that a delivery cannot use. */
export function requireDeliveryOptions({ turnCount = 1, turnTime = 0 }: DeliveryOptions): void {
  requireInteger("turnCount", turnCount, 1);
  requireAmount("turnTime", turnTime);
}

/**
 * Microtasks for which a delivery that found nothing more waits for its listeners to answer: they
 * may have awaited something.
 */
const HOPS = 8;

/** Delivers the messages of one port as events. */
export class PortDelivery implements Delivery, EventSource {
  readonly #link: Link;
  readonly #target: EventTarget;
  readonly #options: DeliveryOptions;
  #isListening = false;
  #isWatching = false;
  #isRef = true;
  /** Whether a run is under way: one message in each microtask. */
  #isRunning = false;
  #hops = 0;
  /** When the event loop fell asleep for an answer, to learn how long that takes; 0 if not. */
  #asleep = 0;
  #isOver = false;
  #outcome: MillraceError | undefined;
  #closed: Promise<MillraceError | undefined> | undefined;
  #settle: (() => void) | undefined;
  readonly #next = (): void => this.#deliver();
  /** Goes on when something was sent, or when the listeners have had their microtasks. */
  readonly #hop = (): void => {
    const { incoming, outgoing } = this.#link;
    const hasSent = outgoing!.first || outgoing!.published !== incoming!.asked;
    if (hasSent) this.#hops = 0;
    else if (--this.#hops === 0) return this.#rest();
    SETTLED.then(hasSent ? this.#next : this.#hop);
  };

  /** Makes the delivery from a link to an event target. */
  constructor(link: Link, target: EventTarget, options: DeliveryOptions) {
    this.#link = link;
    this.#target = target;
    this.#options = options;
    link.delivery = this;
  }

  /** Resolves when nothing more will come, with the error if there is one. */
  get closed(): Promise<MillraceError | undefined> {
    this.#closed ??= new Promise((resolve) => {
      this.#settle = () => resolve(this.#outcome);
      if (this.#isOver) this.#settle();
    });
    this.#link.tend();
    return this.#closed;
  }

  get keeps(): boolean {
    if (!this.#isRef || this.#isOver) return false;
    return this.#isListening || this.#link.incoming!.route?.keeps === true;
  }

  /** Whether the process stays alive while messages are delivered. */
  set isRef(on: boolean) {
    this.#isRef = on;
    noteKeeping(this.#link);
  }

  listen(type: string, on: boolean): void {
    const link = this.#link;
    if (type === "close") this.#isWatching = on;
    if (type === "message" && on !== this.#isListening) {
      this.#isListening = on;
      if (!this.#isOver) turn.listening += on ? 1 : -1;
      // The job that began to listen comes to its end first, as with a `MessagePort`.
      const isThere = on && (link.sees(For.MESSAGES) || link.hasChanged());
      if (isThere && !this.#isRunning) {
        this.#isRunning = true;
        nextTask(this.#next, this.keeps);
      }
    }
    if (!this.#isRunning) link.tend();
    noteKeeping(link);
  }

  tend(): number {
    const link = this.#link;
    const incoming = link.incoming!;
    const { route, queue, takers } = incoming;
    if (this.#isRunning) return 0;
    let asks = route?.tend() ?? 0;
    if (isLending(incoming)) return 0; // until the release
    if (takers.length > 0) asks &= For.CALLS; // they come first
    else if (this.#isListening && !this.#isOver) asks |= For.MESSAGES;
    const isServing = (asks & For.FRAMES) !== 0;
    const isThere = asks !== 0 && link.sees(asks) ||
      isServing && (!this.#isOver && link.hasChanged() || queue[0] instanceof MillraceError);
    if (isThere) {
      if (this.#asleep > 0) link.endpoint.spinner.slept(now() - this.#asleep);
      this.#asleep = 0;
      this.#isRunning = true;
      SETTLED.then(this.#next);
      return 0;
    }
    const isWatched = route !== undefined || this.#closed !== undefined || this.#isWatching;
    if (isWatched && !this.#isListening && !this.#isOver && takers.length === 0) {
      this.#lookOut();
      if (!this.#isOver) asks |= For.STATE;
    }
    return asks;
  }

  /**
   * While nobody takes messages: finds out whether the pipe is over. Takes nothing but an `end`.
   */
  #lookOut(): void {
    const link = this.#link;
    const incoming = link.incoming!;
    const { route } = incoming;
    if (link.isClosed) return this.finish(undefined);
    // A port that only serves has nobody who would read what is in its queue.
    if ((incoming.queue.length > 0 && !route) || isLending(incoming)) return;
    // With a full inbox, a port that serves has to be told too.
    const isUnread = () => route === undefined || mayGoOn(incoming);
    try {
      let gone: MillraceError | undefined;
      for (;;) {
        const found = pull(incoming, Mode.PASS, gone === undefined);
        if (incoming.bits & Bit.ENDED) return this.finish(undefined);
        if (found === Found.TAKEN || found === Found.IN_RING && isUnread()) return;
        if (gone) return this.finish(giveUpRest(incoming, gone));
        if (found === Found.IN_RING) {
          load(incoming); // or what came since would seem new forever
          route!.refuse();
        }
        gone = link.hasChanged() ? stateError(link, "read") : undefined;
        if (!gone) return;
        load(incoming); // [pipe.look_again]
      }
    } catch (reason) {
      if (!(reason instanceof MillraceError)) throw reason;
      route?.finish(reason);
      this.finish(reason);
    }
  }

  finish(reason: MillraceError | undefined): void {
    if (this.#isOver) return;
    this.#isOver = true;
    if (this.#isListening) turn.listening--;
    // This end's own `close` is no error, whatever error its calls report from now on.
    this.#outcome = this.#link.isClosed ? undefined : reason;
    this.#settle?.();
    // Not inside the call that has found it.
    SETTLED.then(() =>
      this.dispatch(new PortEvent("close", this.#target, undefined, this.#outcome))
    );
    noteKeeping(this.#link);
  }

  /** Calls the listeners. A method, so that a meter can measure how long they take. */
  dispatch(event: PortEvent): void {
    this.#target.dispatchEvent(event);
  }

  /** Delivers one message, and what comes after it in the next microtask. */
  #deliver(): void {
    const link = this.#link;
    const incoming = link.incoming!;
    link.prepare(0); // sends what was posted since
    link.isDue = true; // as the run goes on, and does so again
    const { route, takers } = incoming;
    const isHeard = this.#isListening && takers.length === 0;
    if (isLending(incoming) || !isHeard && !route) return this.#rest();
    if (this.#isTurnOver()) {
      link.isDue = false;
      return nextTask(this.#next, this.keeps);
    }
    if (!isHeard) return this.#serve(route!);
    let event: PortEvent;
    try {
      const data = tryRead(incoming, Mode.VALUE);
      if (data === undefined) {
        if (!hasEnded(incoming)) return this.#runDry();
        this.finish(undefined);
        return this.#rest();
      }
      event = new PortEvent("message", this.#target, data);
    } catch (reason) {
      if (!(reason instanceof MillraceError)) throw reason;
      if (reason.name !== "MessageError") {
        this.finish(reason);
        return this.#rest();
      }
      event = new PortEvent("messageerror", this.#target, reason);
    }
    this.#noteDelivered();
    this.dispatch(event);
    SETTLED.then(this.#next); // the promises of the listeners come first, and what they posted
  }

  /** Begins calls, and takes what comes: messages of calls, and those that wait to be read. */
  #serve(route: Route): void {
    const incoming = this.#link.incoming!;
    const { queue, takers } = incoming;
    route.begin();
    const isTaken = takers.length > 0;
    const [first] = queue;
    let found = isTaken ? Found.NOTHING : Found.TAKEN;
    if (!isTaken && first instanceof MillraceError) {
      queue.shift();
      this.#noteDelivered();
      this.dispatch(new PortEvent("messageerror", this.#target, first));
    } else {
      // No longer than there is nothing to begin: to take a message in runs no code but our own.
      while (found === Found.TAKEN && !route.isDue && !this.#isTurnOver()) {
        found = keepNext(incoming, true);
        if (found === Found.TAKEN) this.#noteDelivered();
      }
      if (found !== Found.TAKEN) {
        if (!isTaken) this.#lookOut();
        return this.#runDry();
      }
    }
    SETTLED.then(this.#next);
  }

  #noteDelivered(): void {
    if (turn.delivered++ === 0) turn.began = now();
    this.#hops = HOPS;
  }

  /** Whether the event loop has to turn. All ports of the thread have one turn together. */
  #isTurnOver(): boolean {
    const { turnCount = 256, turnTime = 4 } = this.#options;
    const { delivered } = turn;
    const isTimed = delivered > 0 && (turnTime === 0 || delivered % 4 === 0);
    return delivered >= turnCount || isTimed && now() - turn.began >= turnTime;
  }

  /** Ends the run. */
  #rest(): void {
    this.#isRunning = this.#link.isDue = false;
    this.#link.tend();
  }

  /** Everything is delivered: waits for an answer to what the listeners have sent, or sleeps. */
  #runDry(): void {
    const link = this.#link;
    const hasAsked = noteAsked(link.incoming!);
    if (!hasAsked && this.#hops > 0) return void SETTLED.then(this.#hop);
    if (hasAsked && this.#spin()) return void SETTLED.then(this.#next);
    this.#asleep = hasAsked && turn.listening < 2 && link.endpoint.spinner.learns ? now() : 0;
    this.#rest();
  }

  /** Spins for an answer, if that pays; not while other ports of the thread may have messages. */
  #spin(): boolean {
    const link = this.#link;
    const { spinner } = link.endpoint;
    const asks = this.#isListening ? For.MESSAGES : For.FRAMES;
    return turn.listening < 2 && spinner.spinForAnswer(link, asks) || link.sees(asks);
  }
}
