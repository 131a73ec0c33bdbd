/**
 * The place of one worker in a pool: its end of the hub, what it was given, and what becomes of
 * that. When a worker is gone, the next one has the same place.
 *
 * @module
 */

import { errorOf } from "./call_caller.ts";
import { CallError } from "./call_error.ts";
import { MessageError, MillraceError } from "./error.ts";
import { vacatePeer } from "./pipe_vacate.ts";
import type { Port } from "./port.ts";
import type { WorkerEnd } from "./supervise.ts";
import { unref } from "./wait_task.ts";
import { GAUGE_SIZE, GaugeReader, hasBegun, numberBehind } from "./worker_pool_gauge.ts";
import { arrival, Life, type WorkSource } from "./worker_pool_life.ts";
import { Line, type Party } from "./worker_pool_line.ts";
import type { ListReader } from "./worker_pool_list.ts";
import { aheadOf } from "./worker_pool_size.ts";
import type { Task } from "./worker_pool_task.ts";
import type { WorkerStats } from "./worker_pool_types.ts";

/** Milliseconds between two turns of a timer that does nothing. */
const STAY_MS = 0x3fffffff;
/** Milliseconds for which the process lives on behind the last answer. */
const LINGER_MS = 10;
/**
 * Milliseconds between two looks for answers of which no ring has come: a worker that handles many
 * short tasks rings behind a millisecond of them, and not before a long one in their midst has
 * ended. Behind so many looks that have found nothing, there is a longer time between two: a worker
 * that begins late, since it was kept from its processor, holds results back as well.
 */
const LOOK_MS = 2;
const LOOK_COUNT = 4;
const LOOK_LATER_MS = 20;
/** What tells that a worker is lost, and not that its task has failed. */
const LOST = /^(peer|pipe|ring|frame|segment)\.|^call\.ended$/;

/** What a place needs of its pool. */
export interface PlaceOwner {
  readonly source: WorkSource;
  readonly concurrency: number;
  readonly ahead: number | undefined;
  readonly grace: number;
  readonly startTimeout: number;
  readonly maxMessageSize: number | undefined;
  /** A worker has come. */
  comeTo(place: Place): void;
  /** A task is answered. */
  takeAnswer(task: Task, hasFailed: boolean, value: unknown): void;
  /** Some are: it has room for more. */
  goOn(place: Place): void;
  /** The worker is lost, and with it these tasks, of which some had begun. */
  takeLost(begun: readonly Task[], others: readonly Task[], cause: unknown): void;
  /** There is no worker any more. `hasCome`: there was one; `hasDied`: nobody wanted that. */
  leave(hasCome: boolean, hasDied: boolean, end: WorkerEnd): void;
  /** Makes a port in memory of its own, for one that cannot be given back. */
  replacePort(): Port<unknown>;
}

/** One of the places of a pool. */
export class Place implements Party {
  state: WorkerStats["state"] = "none";
  /** Tasks that it has, by their numbers, in the order in which they were given. */
  readonly given: Map<number, Task> = new Map();
  readonly isDue = false;
  readonly width = 1;
  done = 0;
  generation = 0;
  /** Since when it has nothing to do. */
  idleSince = 0;
  readonly #owner: PlaceOwner;
  #port: Port<unknown>;
  #line: Line;
  #memory!: SharedArrayBuffer;
  #gauge!: GaugeReader;
  #life: Life | undefined;
  /** Whether its worker was to end. */
  #isEnded = false;
  /** The number of the last task that was given. */
  #number = 0;
  /** Ends the stay of the process; and looks for answers, so many times more at short intervals. */
  #linger: unknown;
  #looking: unknown;
  #looksLeft = 0;

  /** Makes a place without a worker. */
  constructor(owner: PlaceOwner, port: Port<unknown>) {
    this.#owner = owner;
    this.#port = port;
    this.#line = new Line(port, this, owner.maxMessageSize);
    this.#measureAnew();
  }

  /** Milliseconds that a task has taken lately; 0 before the first. */
  get service(): number {
    return this.#gauge.service;
  }

  /** How many more tasks it may have. */
  get room(): number {
    if (this.state !== "ready") return 0;
    return this.most - this.given.size;
  }

  /** How many tasks it may have. */
  get most(): number {
    const { ahead = aheadOf(this.#gauge.service), concurrency } = this.#owner;
    return concurrency + ahead;
  }

  /** Starts a worker, and goes with it until it is gone. */
  async start(): Promise<void> {
    this.state = "starting";
    this.#isEnded = false;
    // Behind the end of a worker nothing else keeps the process until the next one is there.
    const stay = setInterval(() => {}, STAY_MS);
    let hasCome = false;
    let end: WorkerEnd;
    try {
      const { source, concurrency, startTimeout } = this.#owner;
      const life = this.#life = new Life(source, this.#port, {
        gauge: this.#memory,
        concurrency,
      });
      hasCome = await arrival(this.#port, life, startTimeout);
      if (hasCome) {
        this.state = "ready";
        this.#owner.comeTo(this);
      } else life.end();
      end = await life.failed;
    } catch (cause) {
      end = { signal: "error", cause, marked: false };
    }
    this.state = "ending";
    await this.#leave();
    clearInterval(stay);
    this.state = "none";
    this.#owner.leave(hasCome, !this.#isEnded, end);
  }

  /** Ends its worker, if there is one. */
  end(): void {
    this.#isEnded = true;
    this.endNow();
  }

  /** Ends a worker of which nothing more can come, whatever it does. */
  endNow(): void {
    if (this.state === "starting" || this.state === "ready") this.state = "ending";
    this.#life?.end();
  }

  /**
   * Gives it a task, which its worker gets with all others at the next `flush`. False: its worker
   * is lost, which it is about to find.
   */
  give(task: Task): boolean {
    task.place = this;
    const number = task.number = numberBehind(this.#number);
    try {
      this.#line.add(number, task.name, task.value);
    } catch (error) {
      if (isLost(error)) return false;
      this.#owner.takeAnswer(task, true, error);
      return true;
    }
    this.#number = number;
    this.given.set(number, task);
    return true;
  }

  /** Has its worker get what was given since. */
  flush(): void {
    if (this.given.size === 0) return;
    try {
      this.#line.flush();
    } catch (error) {
      if (!isLost(error)) throw error;
      return this.endNow(); // behind which `finish` sorts what was given
    }
    if (this.#linger !== undefined || !this.#line.keeps) this.#hold();
    if (this.given.size > 1) this.#lookLater();
  }

  /** Has its worker know that nobody waits for a task, whose place it has until it is answered. */
  giveUp(task: Task): void {
    const { grace } = this.#owner;
    const has = () => this.given.get(task.number) === task;
    if (!has()) return;
    try {
      this.#line.sendMark(task.number);
    } catch (error) {
      if (!isLost(error)) throw error;
    }
    if (grace === Infinity) return;
    const end = () => {
      if (has()) this.endNow();
    };
    unref(setTimeout(end, grace));
  }

  take(number: number, list: ListReader): void {
    this.#takeAnswer(number, false, list.read());
  }

  takeMarked(number: number, values: unknown[]): void {
    const [name, text] = values;
    if (typeof name !== "string" || typeof text !== "string" || values.length > 3) {
      throw new MessageError("call.form", "Cannot read answer: it is none");
    }
    this.#takeAnswer(number, true, errorOf(values));
  }

  /** [call.bad_answer] */
  lose(number: number, _: boolean, { code, message, cause }: MessageError): void {
    this.#takeAnswer(number, true, new CallError(code, message, { cause }));
  }

  go(): void {
    this.#gauge.look();
    this.#owner.goOn(this);
    if (this.given.size === 0) this.#letGo();
    else this.#lookLater();
  }

  /** Sorts the tasks of a worker that is lost. */
  finish(cause: MillraceError): void {
    clearTimeout(this.#linger as number);
    clearTimeout(this.#looking as number);
    this.#linger = this.#looking = undefined;
    this.#line.keeps = false;
    if (this.given.size === 0) return;
    const lost = [...this.given.values()];
    this.given.clear();
    this.endNow();
    const last = this.#gauge.seal();
    const begun = lost.filter(({ number }) => hasBegun(number, last));
    const others = lost.filter(({ number }) => !hasBegun(number, last));
    this.#owner.takeLost(begun, others, cause);
  }

  #takeAnswer(number: number, hasFailed: boolean, value: unknown): void {
    const task = this.given.get(number);
    if (task === undefined) return; // no answer, or one too many
    this.given.delete(number);
    this.done++;
    this.#owner.takeAnswer(task, hasFailed, value);
  }

  /** The process lives for what was given. */
  #hold(): void {
    clearTimeout(this.#linger as number);
    this.#linger = undefined;
    this.#line.keeps = true;
  }

  /** A program that runs one task after the other does not turn that on and off each time. */
  #letGo(): void {
    this.#linger ??= setTimeout(() => {
      this.#linger = undefined;
      if (this.given.size === 0) this.#line.keeps = false;
    }, LINGER_MS);
  }

  /** Looks for answers after a while, and as long as there is a task without one. */
  #lookLater(looksLeft = LOOK_COUNT): void {
    this.#looksLeft = looksLeft;
    this.#looking ??= setTimeout(() => {
      this.#looking = undefined;
      if (this.given.size === 0) return;
      this.#line.look();
      this.#lookLater(Math.max(0, this.#looksLeft - 1));
    }, looksLeft > 0 ? LOOK_MS : LOOK_LATER_MS);
  }

  /** Waits until nothing is left of the worker, and gives its endpoint back. */
  async #leave(): Promise<void> {
    const life = this.#life;
    if (life === undefined) return; // it was never made
    this.#life = undefined;
    await this.#port.closed; // what it had published is read, and its calls have ended
    if (await life.gone()) {
      // [segment.vacate_dead]
      if (!this.#port.reader.inlet.link.closed) vacatePeer(this.#port);
      this.#gauge.open(this.#number);
    } else {
      this.#port = this.#owner.replacePort();
      this.#line = new Line(this.#port, this, this.#owner.maxMessageSize);
      this.#measureAnew(); // the other one may still write there
    }
    this.generation++;
  }

  #measureAnew(): void {
    this.#memory = new SharedArrayBuffer(GAUGE_SIZE);
    this.#gauge = new GaugeReader(this.#memory);
    this.#number = 0;
  }
}

/** Whether a call has ended because its worker is lost. */
function isLost(error: unknown): boolean {
  return error instanceof MillraceError && LOST.test(error.code);
}
