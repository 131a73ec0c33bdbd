/**
 * The order of tasks in a worker: they begin in the order of their arrival, `concurrency` of them
 * at a time, and the result of a task is written before the next one begins.
 *
 * @module
 */

import { now } from "../memory/clock.ts";
import { dataOf, nameOf, textOf } from "../call/callee.ts";
import { type CallContext, runWith } from "../call/context.ts";
import { CallError } from "../call/error.ts";
import { isInPieces, isLater } from "../call/served.ts";
import { cutText, type Piece } from "../call/values.ts";
import { lostError, type MessageError, MillraceError } from "../error.ts";
import { layout } from "../memory/layout.ts";
import type { Port } from "../port/port.ts";
import { agentMechanism, type Mechanism } from "../wait/mechanism.ts";
import type { WorkGauge } from "./work_gauge.ts";
import { Line, type LineUser } from "./worker_line.ts";
import type { ListReader } from "./task_list.ts";
import type { Handler } from "./types.ts";

/** Milliseconds of tasks in one turn, before other events of the loop get their turn. */
const TURN_MS = 1;
/** The pool is rung at once after a task that took more milliseconds than this. */
const LONG_MS = 0.2;
const GIVEN_UP = "The task was given up";

/**
 * Rings the pool once for all tasks of a turn. A ring is a system call, and a pool that is woken
 * for each task of 10 µs handles each answer separately (measured: Node 24). While a long turn
 * lasts, the pool looks for answers by itself: see `Place`.
 */
export class LateRings {
  /** The mechanism for the worker's port, whose rings are held back. */
  readonly mechanism: Mechanism;
  /** Whether rings wait for `flush`. */
  isHolding = false;
  readonly #agent = agentMechanism();
  #words: Int32Array | undefined;
  #index = 0;

  /** Makes a mechanism that rings at once, except while `isHolding`. */
  constructor() {
    const agent = this.#agent;
    this.mechanism = {
      ...agent,
      notify: (words, index) => {
        if (!this.isHolding || (this.#words && this.#index !== index)) {
          return agent.notify(words, index);
        }
        this.#words = words;
        this.#index = index;
      },
    };
  }

  /** Rings, if a ring was held back. */
  flush(): void {
    const words = this.#words;
    if (!words) return;
    this.#words = undefined;
    this.#agent.notify(words, this.#index);
  }
}

/** A task in its worker, until it is answered. */
class WorkerTask implements CallContext {
  readonly isNotice = false;
  readonly number: number;
  readonly value: unknown;
  /** Undefined if there is no handler of that name. */
  readonly handler: Handler | undefined;
  readonly name: string;
  isGivenUp = false;
  #abort: AbortController | undefined;

  constructor(number: number, name: string, value: unknown, handler: Handler | undefined) {
    this.number = number;
    this.name = name;
    this.value = value;
    this.handler = handler;
  }

  get signal(): AbortSignal {
    this.#abort ??= new AbortController(); // created only if the handler asks for the signal
    if (this.isGivenUp) this.giveUp();
    return this.#abort.signal;
  }

  /** Aborts the handler's signal, because the task was given up. Runs application code. */
  giveUp(): void {
    this.isGivenUp = true;
    this.#abort?.abort(new CallError("call.cancelled", GIVEN_UP));
  }
}

/** Runs the tasks of a worker: its end of a line. */
export class TaskRunner implements LineUser {
  readonly width = 2;
  readonly #line: Line;
  readonly #gauge: WorkGauge;
  readonly #rings: LateRings;
  readonly #concurrency: number;
  readonly #handlers: ReadonlyMap<string, Handler>;
  /** The tasks that wait, from index `#first` on; and, below, those whose results come later. */
  readonly #waiting: WorkerTask[] = [];
  #first = 0;
  /**
   * The name and handler of the task that arrived last. A task with the same name leaves it out.
   */
  #name = "";
  #handler: Handler | undefined;
  readonly #running = new Set<WorkerTask>();
  /**
   * The task that is handled now. One shared function calls it: a closure for each task took part
   * of the time of a short one.
   */
  #current: WorkerTask | undefined;
  readonly #handle = () => this.#current!.handler!(this.#current!.value, this.#current!);
  /** The number of tasks that have ended in this turn, and the milliseconds that they took. */
  #endedCount = 0;
  #takenMs = 0;

  /** Begins to take tasks from a port, whose mechanism must be that of `rings`. */
  constructor(
    port: Port<unknown>,
    gauge: WorkGauge,
    rings: LateRings,
    concurrency: number,
    handlers: ReadonlyMap<string, Handler>,
    maxMessageSize: number | undefined,
  ) {
    this.#gauge = gauge;
    this.#rings = rings;
    this.#concurrency = concurrency;
    this.#handlers = handlers;
    this.#line = new Line(port, this, maxMessageSize);
    this.#line.keeps = true;
  }

  get isDue(): boolean {
    return this.#first < this.#waiting.length && this.#running.size < this.#concurrency;
  }

  take(number: number, list: ListReader): void {
    const name = list.read();
    if (name !== undefined && name !== this.#name) {
      if (typeof name !== "string") throw lostError("call.form", "it is no task");
      this.#name = name;
      this.#handler = this.#handlers.get(name);
    }
    this.#waiting.push(new WorkerTask(number, this.#name, list.read(), this.#handler));
  }

  takeMarked(number: number): void {
    this.#giveUp(number);
  }

  lose(number: number, isMarked: boolean, error: MessageError): void {
    // A cancelled message was never given as a task.
    if (isMarked || error.code === "message.cancelled") return;
    this.#gauge.begin(number);
    this.#fail(number, error.code, error.message, undefined);
  }

  finish(): void {
    this.#waiting.length = this.#first = 0;
    for (const task of this.#running) task.giveUp();
  }

  go(): void {
    const rings = this.#rings;
    rings.isHolding = true;
    try {
      const began = now();
      for (let time = began; this.isDue && time - began < TURN_MS;) {
        const before = time;
        time = this.#begin(this.#shift(), before);
        if (time - before > LONG_MS) this.#report();
      }
    } finally {
      rings.isHolding = false;
      this.#report();
    }
  }

  #shift(): WorkerTask {
    const waiting = this.#waiting;
    const task = waiting[this.#first++]!;
    if (this.#first === waiting.length) waiting.length = this.#first = 0;
    return task;
  }

  /** Updates the gauge, and rings for the results written so far. */
  #report(): void {
    if (this.#endedCount > 0) this.#gauge.end(this.#takenMs, this.#endedCount);
    this.#endedCount = this.#takenMs = 0;
    this.#rings.flush();
  }

  /**
   * Begins a task at the time `began`. Returns the time at which it ended, or gave the thread free.
   */
  #begin(task: WorkerTask, began: number): number {
    const { number, handler } = task;
    if (!this.#gauge.begin(number) || task.isGivenUp) {
      this.#fail(number, "call.cancelled", GIVEN_UP, undefined);
      return began;
    }
    if (!handler) {
      this.#fail(number, "call.method", task.name, undefined);
      return began;
    }
    this.#current = task;
    let result: unknown;
    let isThrown = false;
    try {
      result = runWith(task, this.#handle);
      // Inside the `try`, because looking for a `then` may run application code as well.
      if (isLater(result)) {
        this.#running.add(task);
        // Of what a `then` of its own may do, a promise takes the first settlement, and no throw.
        new Promise((resolve) => resolve(result)).then(
          (value) => this.#conclude(task, began, false, value),
          (error) => this.#conclude(task, began, true, error),
        );
        return now();
      }
    } catch (error) {
      isThrown = true;
      result = error;
    }
    const ended = now();
    this.#endedCount++;
    this.#takenMs += ended - began;
    this.#answer(task, isThrown, result);
    return ended;
  }

  /** Answers a task whose result came later. */
  #conclude(task: WorkerTask, began: number, isThrown: boolean, result: unknown): void {
    this.#running.delete(task);
    this.#gauge.end(now() - began);
    this.#answer(task, isThrown, result);
    if (this.isDue) this.#line.poll();
  }

  #answer(task: WorkerTask, isThrown: boolean, result: unknown): void {
    const { number } = task;
    if (isThrown) return this.#fail(number, nameOf(result), textOf(result), result);
    if (task.isGivenUp && result === undefined) {
      return this.#fail(number, "call.cancelled", GIVEN_UP, undefined);
    }
    // To look into the result, and to encode it, may run application code.
    let part;
    try {
      if (isInPieces(result)) {
        return this.#fail(number, "call.items", "A task has one result", undefined);
      }
    } catch (error) {
      return this.#fail(number, nameOf(error), textOf(error), error);
    }
    try {
      part = this.#line.encode(result);
    } catch (error) {
      return this.#fail(number, "call.result", textOf(error), undefined);
    }
    try {
      this.#line.add(number, undefined, part);
      this.#line.flush();
    } catch (error) {
      if (!(error instanceof MillraceError)) throw error; // a MillraceError: the pool is gone
    }
  }

  #fail(number: number, name: string, text: string, error: unknown): void {
    const short = cutText(name, layout.CALL_NAME_SIZE_MAX) || "Error";
    let data: Piece | undefined;
    if (error !== undefined) data = dataOf(error, this.#line.outgoing);
    try {
      this.#line.sendFailure(number, [short, cutText(text, layout.CALL_TEXT_SIZE_MAX)], data);
    } catch (error) {
      if (!(error instanceof MillraceError)) throw error; // a MillraceError: the pool is gone
    }
  }

  #giveUp(number: number): void {
    for (let index = this.#first; index < this.#waiting.length; index++) {
      const task = this.#waiting[index]!;
      if (task.number === number) task.isGivenUp = true;
    }
    for (const task of this.#running) {
      if (task.number === number) task.giveUp();
    }
  }
}
