/**
 * Brings the messages of a port to its listeners, one in each microtask, until the ring is empty or
 * the event loop has to turn. The listeners are called here and not by the platform, whose dispatch
 * took a quarter of an echo. See `spec/port.md`.
 *
 * @module
 */

import { MillraceError } from "../error.ts";
import { now } from "../memory/clock.ts";
import { requireAmount, requireInteger } from "../memory/plan.ts";
import type { Link } from "../pipe/link.ts";
import { type Delivery, For, noteKeeping, stateError } from "../pipe/tend.ts";
import {
  Found,
  giveUpRest,
  hasEnded,
  type Incoming,
  Mode,
  noteAsked,
  pull,
  tryRead,
} from "../pipe/incoming.ts";
import type { Outgoing } from "../pipe/outgoing.ts";
import { Bit, load } from "../ring/side.ts";
import { finds } from "../wait/endpoint.ts";
import { nextTask, SETTLED, Turn, turn } from "../wait/loop.ts";
import { learns, slept, spinForAnswer } from "../wait/spin.ts";
import { hasChanged } from "../wait/state.ts";
import { PortEvent, type PortListener, type PortListenerOptions } from "./events.ts";
import type { PortOptions } from "./options.ts";

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

/** Throws for options of the delivery that it cannot use. */
export function requireDeliveryOptions({ turnCount = 1, turnTime = 0 }: DeliveryOptions): void {
  requireInteger("turnCount", turnCount, 1);
  requireAmount("turnTime", turnTime);
}

export const enum Tuned {
  /**
   * Microtasks for which a run that found nothing more waits for its listeners to answer: they may
   * have awaited something.
   */
  HOPS = 8,
}

/** What is so of a delivery, as bits. */
export const enum Is {
  /** Somebody listens to `message`, to `close`, to `messageerror`. */
  HEARD = 1,
  WATCHED = 2,
  WARNED = 4,
  ALL_HEARD = 7,
  /** It does not keep the process alive. */
  UNREF = 8,
  /** A run is under way: one message in each microtask. */
  RUNNING = 16,
  /** Nothing more will come. */
  OVER = 32,
}

/** One listener to the events of one type. */
interface Listener {
  /** The type, as the bit that says that somebody listens to it. */
  readonly type: Is;
  /** The listener that was given, by which this one is found; undefined for a handler. */
  readonly key: PortListener<Event> | undefined;
  readonly capture: boolean;
  readonly once: boolean;
  /** What is called; for a handler, the one that was set last. Undefined once it was removed. */
  call: PortListener<Event> | undefined;
  readonly remove: () => void;
}

/** What delivers the messages of one port as events. */
export interface PortDelivery extends Delivery {
  readonly link: Link;
  readonly incoming: Incoming;
  readonly outgoing: Outgoing;
  readonly port: EventTarget;
  readonly options: PortOptions<unknown, never>;
  /**
   * In the order of their registration. The array is replaced, so that a dispatch goes on with its
   * own.
   */
  listeners: readonly Listener[];
  bits: number;
  /** Microtasks to wait yet; as many as there are at all while there are messages. */
  hops: number;
  /** When the event loop fell asleep for an answer, to learn how long that takes; 0 if not. */
  asleep: number;
  closed?: Promise<MillraceError | undefined>;
  settle?: (error: MillraceError | undefined) => void;
  /** One step of the run. A meter puts its own in front. */
  next: () => void;
}

/** Makes the delivery from a link to a port. */
export function makeDelivery(
  incoming: Incoming,
  outgoing: Outgoing,
  port: EventTarget,
  options: PortOptions<unknown, never>,
): PortDelivery {
  const { link } = incoming;
  const delivery: PortDelivery = {
    link,
    incoming,
    outgoing,
    port,
    options,
    listeners: [],
    bits: 0,
    hops: 0,
    asleep: 0,
    next: () => deliver(delivery),
    tend,
    finish,
    get keeps() {
      if (delivery.bits & (Is.UNREF | Is.OVER)) return false;
      return (delivery.bits & Is.HEARD) !== 0 || incoming.route?.keeps === true;
    },
  };
  link.delivery = delivery;
  return delivery;
}

/** Resolves when nothing more will come, with the error if there is one. */
export function closedOf(delivery: PortDelivery): Promise<MillraceError | undefined> {
  delivery.closed ??= new Promise((resolve) => delivery.settle = resolve);
  delivery.link.tend();
  return delivery.closed;
}

/** Says whether the process stays alive while messages are delivered. */
export function setRef(delivery: PortDelivery, on: boolean): void {
  delivery.bits = on ? delivery.bits & ~Is.UNREF : delivery.bits | Is.UNREF;
  noteKeeping(delivery.link);
}

function tend(this: PortDelivery): number {
  const { link, incoming } = this;
  const { route, queue, takers } = incoming;
  if (this.bits & Is.RUNNING) return 0;
  let asks = route?.tend() ?? 0;
  if (incoming.bits & Bit.LENDING) return 0; // until the release
  const state = this.bits & (Is.HEARD | Is.OVER);
  if (takers.length > 0) asks &= For.CALLS; // they come first
  else if (state === Is.HEARD) asks |= For.MESSAGES;
  const isThere = link.sees(asks) || (asks & For.FRAMES) !== 0 &&
      ((state & Is.OVER) === 0 && hasChanged(link) || queue[0] instanceof MillraceError);
  if (isThere) {
    if (this.asleep > 0) slept(link.endpoint.spinner, now() - this.asleep);
    this.asleep = 0;
    this.bits |= Is.RUNNING;
    SETTLED.then(this.next);
    return 0;
  }
  const isWatched = route || this.closed || this.bits & Is.WATCHED;
  if (isWatched && state === 0 && takers.length === 0) {
    lookOut(this);
    if (!(this.bits & Is.OVER)) asks |= For.STATE;
  }
  return asks;
}

/**
 * While nobody takes messages: finds out whether the pipe is over. Takes nothing but an `end`.
 */
export function lookOut(delivery: PortDelivery): void {
  const { link, incoming } = delivery;
  const { route } = incoming;
  // A port that only serves has nobody who would read what is in its queue.
  if (incoming.queue.length > 0 && !route || incoming.bits & Bit.LENDING) return;
  let gone: MillraceError | undefined;
  try {
    for (;;) {
      const found = pull(incoming, Mode.PASS, gone === undefined);
      if (incoming.bits & Bit.ENDED) return delivery.finish(undefined);
      // With a full inbox, a port that serves has to be told too.
      if (found === Found.TAKEN || found === Found.IN_RING && !route?.refuse()) return;
      if (gone) throw giveUpRest(incoming, gone);
      gone = hasChanged(link) ? stateError(link, "read") : undefined;
      if (!gone) return;
      load(incoming); // [pipe.look_again]
    }
  } catch (reason) {
    if (!(reason instanceof MillraceError)) throw reason;
    route?.finish(reason);
    delivery.finish(reason);
  }
}

function finish(this: PortDelivery, reason: MillraceError | undefined): void {
  if (this.bits & Is.OVER) return;
  if (this.bits & Is.HEARD) turn.listening--;
  this.bits |= Is.OVER;
  // This end's own `close` is no error, whatever error its calls report from now on.
  const error = this.link.isClosed ? undefined : reason;
  this.closed ??= Promise.resolve(error);
  this.settle?.(error);
  // Not inside the call that has found it.
  SETTLED.then(() => callListeners(this, new PortEvent("close", this.port, undefined, error)));
  noteKeeping(this.link);
}

/** A step of the run: delivers one message, and what comes after it in the next microtask. */
function deliver(delivery: PortDelivery): void {
  const { link, incoming, outgoing, bits, hops, next } = delivery;
  const hasSent = outgoing.first !== undefined || outgoing.published !== incoming.asked;
  const isWaiting = !hasSent && hops > 0 && hops < Tuned.HOPS;
  if (isWaiting && --delivery.hops > 0) return void SETTLED.then(next);
  link.prepare(0); // sends what was posted since
  link.isDue = true; // as the run goes on, and does so again
  const isHeard = (bits & Is.HEARD) !== 0 && incoming.takers.length === 0;
  const route = isHeard ? undefined : incoming.route;
  const mayTake = !isWaiting && (incoming.bits & Bit.LENDING) === 0;
  let goesOn = mayTake && (isHeard || route !== undefined);
  if (goesOn && isTurnOver(delivery)) {
    link.isDue = false;
    return nextTask(next, delivery.keeps);
  }
  if (goesOn) goesOn = route ? route.serve(delivery) : deliverNext(delivery);
  // The promises of the listeners come first, and what they posted.
  if (goesOn) return void SETTLED.then(delivery.next);
  delivery.bits &= ~Is.RUNNING;
  link.isDue = false;
  link.tend();
}

/** Delivers the next message. Returns whether the run goes on. */
function deliverNext(delivery: PortDelivery): boolean {
  const { incoming } = delivery;
  let type = "message";
  let data: unknown;
  try {
    data = tryRead(incoming, Mode.VALUE);
    if (data === undefined) {
      if (!hasEnded(incoming)) return isAwaiting(delivery, For.MESSAGES);
      type = "close";
    }
  } catch (reason) {
    if (!(reason instanceof MillraceError)) throw reason;
    type = reason.name === "MessageError" ? "messageerror" : "close";
    data = reason;
  }
  if (type === "close") {
    delivery.finish(data as MillraceError | undefined);
    return false;
  }
  turn.delivered++;
  delivery.hops = Tuned.HOPS;
  callListeners(delivery, new PortEvent(type, delivery.port, data));
  return true;
}

/**
 * Whether the event loop has to turn before the next message. All ports of the thread have one turn
 * together.
 */
export function isTurnOver({ options }: PortDelivery): boolean {
  const { turnCount = 256, turnTime = Turn.MS } = options;
  const { delivered } = turn;
  if (delivered === 0) {
    turn.began = now();
    return false;
  }
  const isTimed = turnTime === 0 || delivered % 4 === 0;
  return delivered >= turnCount || isTimed && now() - turn.began >= turnTime;
}

/**
 * Everything is delivered: waits for what the listeners send, or spins for an answer to it, if that
 * pays; not while other ports of the thread may have messages. Whether the run goes on.
 */
export function isAwaiting(delivery: PortDelivery, asks: number): boolean {
  const { link, incoming } = delivery;
  const hasAsked = noteAsked(incoming);
  if (!hasAsked && delivery.hops === Tuned.HOPS) {
    delivery.hops--;
    return true;
  }
  const isSpinning = hasAsked && turn.listening < 2;
  if (isSpinning && (spinForAnswer(link, asks) || link.sees(asks))) return true;
  delivery.asleep = isSpinning && learns(link.endpoint.spinner) ? now() : 0;
  return false;
}

/** The bit of a type of events of a port's own; 0 for all others, which the platform dispatches. */
export function bitOf(type: string): Is | 0 {
  if (type === "message") return Is.HEARD;
  return type === "close" ? Is.WATCHED : type === "messageerror" ? Is.WARNED : 0;
}

/** Calls the listeners of an event of a port's own. */
export function callListeners(
  { listeners, port }: PortDelivery,
  event: Event & { readonly isStopped?: boolean | undefined },
): void {
  const type = bitOf(event.type);
  for (const listener of listeners) {
    const { call } = listener;
    if (listener.type !== type || !call) continue;
    if (listener.once) listener.remove();
    try {
      if (typeof call === "function") call.call(port, event);
      else call.handleEvent(event);
    } catch (error) {
      report(error);
    }
    if (event.isStopped) break;
  }
}

/** Adds a listener, or a handler, which keeps the place where it was first set. */
export function listen(
  delivery: PortDelivery,
  type: Is,
  key: PortListener<Event> | undefined,
  call: PortListener<Event>,
  options?: boolean | PortListenerOptions,
): void {
  const { once = false, signal }: PortListenerOptions = Object(options);
  const found = findListener(delivery, type, key, options);
  if (found) found.call = call;
  if (found || signal?.aborted) return;
  const remove = () => {
    listener.call = undefined;
    signal?.removeEventListener("abort", remove);
    setListeners(delivery, delivery.listeners.filter((each) => each !== listener));
  };
  const listener: Listener = { type, key, capture: isCapture(options), once, call, remove };
  signal?.addEventListener("abort", remove);
  setListeners(delivery, [...delivery.listeners, listener]);
}

/** Finds a listener, or, without a key, a handler. */
export function findListener(
  { listeners }: PortDelivery,
  type: Is,
  key?: PortListener<Event>,
  options?: boolean | PortListenerOptions,
): Listener | undefined {
  return listeners.find((each) =>
    each.type === type && each.key === key && each.capture === isCapture(options)
  );
}

/** The same listener with and without `capture` counts as two. */
function isCapture(options: boolean | PortListenerOptions | undefined): boolean {
  return options === true || Object(options).capture === true;
}

function setListeners(delivery: PortDelivery, listeners: readonly Listener[]): void {
  const { link, bits } = delivery;
  let types = 0;
  for (const { type } of listeners) types |= type;
  delivery.listeners = listeners;
  delivery.bits = bits & ~Is.ALL_HEARD | types;
  if ((bits ^ types) & Is.HEARD) {
    const isHeard = (types & Is.HEARD) !== 0;
    if (!(bits & Is.OVER)) turn.listening += isHeard ? 1 : -1;
    // The job that began to listen comes to its end first, as with a `MessagePort`.
    if (isHeard && !(bits & Is.RUNNING) && (finds(link, For.MESSAGES))) {
      delivery.bits |= Is.RUNNING;
      nextTask(delivery.next, delivery.keeps);
    }
  }
  if (!(delivery.bits & Is.RUNNING)) link.tend();
  noteKeeping(link);
}

/** Reports what a listener has thrown as the platform does, by a dispatch of the platform's own. */
function report(error: unknown): void {
  const target = new EventTarget();
  target.addEventListener("error", () => {
    throw error;
  });
  target.dispatchEvent(new Event("error"));
}
