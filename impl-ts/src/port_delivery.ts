/**
 * Brings what a port reads to its listeners, turn by turn of the event loop. See `spec/port.md`.
 *
 * @module
 */

import { MessageError, MillraceError } from "./error.ts";
import { WAIT_SLICE_MS } from "./layout.ts";
import type { Reader } from "./pipe_reader.ts";
import { OPEN } from "./pipe_waiting.ts";
import { ArrivalEvent, type EventSource, PortCloseEvent } from "./port_events.ts";
import { requireInteger } from "./segment_geometry.ts";
import { nextTask, unref } from "./wait_task.ts";

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
  /** Most messages in one turn of the event loop, from 1. Default 256. */
  readonly turnCount?: number | undefined;
  /** Milliseconds after which no further message is delivered in the same turn. Default 4. */
  readonly turnTime?: number | undefined;
}

const DEFAULT_TURN_COUNT = 256;
const DEFAULT_TURN_TIME = 4;

/** Never wakes: the bell is all that a watch listens to. */
const NOTHING = { look: () => false, arm: () => {}, disarm: () => {} };

/** Throws for what a delivery cannot work with. */
export function requireDeliveryOptions(options: DeliveryOptions): void {
  const { turnCount = DEFAULT_TURN_COUNT, turnTime = DEFAULT_TURN_TIME } = options;
  requireInteger("turnCount", turnCount, 1, Number.MAX_SAFE_INTEGER);
  if (turnTime >= 0) return;
  throw new RangeError(`turnTime must be 0 or more: ${turnTime}`);
}

/** The events of one port. */
export class Delivery<In> implements EventSource {
  target: EventTarget | undefined;
  readonly #reader: Reader<In>;
  readonly #turnCount: number;
  readonly #turnTime: number;
  readonly #clock: () => number;
  #isListening = false;
  #isWatching = false;
  #isRunning = false;
  #keep = true;
  /** Ends the sleeps at each slice; how long one is, and whether the process lives for it. */
  #timer: unknown;
  #timerMs = 0;
  #timerKeeps = false;
  /** What this turn of the event loop has had: messages, and when it began, -1 for not yet. */
  #count = 0;
  #began = -1;
  #isOver = false;
  #error: MillraceError | undefined;
  #closed: Promise<MillraceError | undefined> | undefined;
  #settle: (() => void) | undefined;

  /** Makes the delivery of a reader. `clock` is for tests. */
  constructor(
    reader: Reader<In>,
    options: DeliveryOptions & { readonly clock?: () => number },
  ) {
    this.#reader = reader;
    this.#turnCount = options.turnCount ?? DEFAULT_TURN_COUNT;
    this.#turnTime = options.turnTime ?? DEFAULT_TURN_TIME;
    this.#clock = options.clock ?? (() => performance.now());
  }

  /** Settles when nothing more will come, with the error if there is one. */
  get closed(): Promise<MillraceError | undefined> {
    this.#closed ??= new Promise((resolve) => {
      this.#settle = () => resolve(this.#error);
      if (this.#isOver) this.#settle();
    });
    this.#wake();
    return this.#closed;
  }

  listen(on: boolean): void {
    ArrivalEvent.prepare();
    this.#isListening = on;
    this.#wake();
  }

  watch(on: boolean): void {
    this.#isWatching = on;
    this.#wake();
  }

  /** Whether anybody wants to know of anything. */
  get #isWanted(): boolean {
    return this.#isListening || this.#isWatching || this.#closed !== undefined;
  }

  /** Whether the process lives while messages are delivered. */
  keep(on: boolean): void {
    this.#keep = on;
    this.#reader.link.endpoint.rouse();
  }

  /** Nothing more will come: tells everybody, once. */
  finish(error?: MillraceError | undefined): void {
    if (this.#isOver) return;
    this.#isOver = true;
    // The own close is no error, whatever the verbs say about it from now on.
    this.#error = this.#reader.link.closed ? undefined : error;
    this.#settle?.();
    // Not inside of the call that has found it.
    queueMicrotask(() => this.target?.dispatchEvent(new PortCloseEvent(this.#error)));
  }

  #wake(): void {
    if (this.#isRunning) this.#reader.link.endpoint.rouse();
    else if (!this.#isOver && this.#isWanted) this.#run();
  }

  async #run(): Promise<void> {
    this.#isRunning = true;
    // First of all the job that began to listen comes to its end, as with a MessagePort.
    await this.#nextTurn(true);
    while (!this.#isOver && this.#isWanted) {
      if (this.#reader.link.closed) this.finish();
      else if (!this.#isListening) await this.#lookOut();
      else if (!this.#deliver()) await this.#nextTurn(this.#keep);
      else if (this.#isListening && !this.#isOver) {
        this.#startTimer();
        const arrival = this.#reader.arrival(this.#keep);
        await arrival; // where it is there already, too: the promises of the listener come first
        if (arrival !== undefined) this.#began = -1; // what was slept is not spent
      }
    }
    this.#isRunning = false;
    this.#stopTimer();
    // The sleep under way has no limit.
    const { endpoint, closed } = this.#reader.link;
    if (!closed) endpoint.ring(endpoint.index);
  }

  /** One timer for all slices. [wait.slice] */
  #startTimer(): void {
    const { endpoint, peer } = this.#reader.link;
    const ms = endpoint.sliceMs(peer);
    const isRight = ms === this.#timerMs && this.#keep === this.#timerKeeps;
    if (this.#timer !== undefined && isRight) return;
    this.#stopTimer();
    this.#timer = setInterval(() => endpoint.rouse(), ms);
    this.#timerMs = ms;
    this.#timerKeeps = this.#keep;
    if (!this.#keep) unref(this.#timer);
  }

  #stopTimer(): void {
    clearInterval(this.#timer as number | undefined);
    this.#timer = undefined;
  }

  /** Delivers what is there. False: this turn has had its share. */
  #deliver(): boolean {
    const reader = this.#reader;
    // The first look in any case: only that finds the end, and what a state says.
    for (let more = true; more; more = reader.more) {
      if (!this.#isListening || this.#isOver || !reader.idle) break;
      if (this.#count >= this.#turnCount) return false;
      if (this.#began < 0) this.#began = this.#clock();
      else if (this.#clock() - this.#began >= this.#turnTime) return false;
      const event = this.#take();
      if (event === undefined) break;
      this.#count++;
      this.target!.dispatchEvent(event);
    }
    return true;
  }

  #take(): Event | undefined {
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

  async #nextTurn(keep: boolean): Promise<void> {
    await nextTask(keep);
    this.#count = 0;
    this.#began = -1;
  }

  /** Sleeps until a state may have ended the pipe. */
  async #lookOut(): Promise<void> {
    const reader = this.#reader;
    const outcome = reader.waiting.outcome();
    if (outcome !== OPEN) return this.finish(outcome);
    const { link } = reader;
    this.#stopTimer();
    // What is left in the ring, somebody else has to read; nothing rings when that is done.
    if (link.isFinal()) {
      return await link.endpoint.rest(WAIT_SLICE_MS, false);
    }
    await link.endpoint.waitAsync(NOTHING, undefined, link.peer, Infinity, undefined, false);
  }
}
