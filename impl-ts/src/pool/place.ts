/**
 * The place of one worker in a pool: its port of the hub, the tasks that it was given, and what
 * becomes of them. When a worker is gone, the next one takes the same place.
 *
 * @module
 */

import { clearInterval, clearTimeout, setInterval, setTimeout } from "../memory/clock.ts";
import { errorOf } from "../call/caller.ts";
import { CallError } from "../call/error.ts";
import { lostError, type MessageError, MillraceError } from "../error.ts";
import { revive } from "../more/revive.ts";
import type { Port } from "../port/port.ts";
import type { WorkerEnd } from "../more/supervise.ts";
import { TIMER_MAX_MS, unref } from "../wait/loop.ts";
import { GAUGE_SIZE, GaugeReader, hasBegun, numberAfter } from "./work_gauge.ts";
import { arrival, Life, type WorkSource } from "./worker_life.ts";
import { Line, type LineUser } from "./worker_line.ts";
import type { ListReader } from "./task_list.ts";
import { aheadOf } from "./size.ts";
import type { Task } from "./task.ts";
import type { WorkerStats } from "./types.ts";

/** The period in milliseconds of a timer that only keeps the process alive. */
const STAY_MS = 0x3fffffff;
/** Milliseconds for which the process is kept alive after the last answer. */
const LINGER_MS = 10;
/**
 * Milliseconds between two looks for answers for which no ring has come. A worker that handles many
 * short tasks rings once a millisecond; if a long task comes among them, it rings only after that
 * one. After `LOOK_COUNT` looks that have found nothing, the looks are further apart. A worker that
 * begins late, because it had to wait for a processor, holds results back as well.
 */
const LOOK_MS = 2;
const LOOK_COUNT = 4;
const LOOK_LATER_MS = 20;
/** The codes of errors which tell that the worker is lost, and not that a task has failed. */
const LOST = /^(peer|pipe|ring|frame|segment)\.|^call\.ended$/;

/** What a place needs from its pool. */
export interface PlaceOwner {
  readonly source: WorkSource;
  readonly concurrency: number;
  readonly ahead: number | undefined;
  readonly grace: number;
  readonly startTimeout: number;
  readonly maxMessageSize: number | undefined;
  /** A worker has started, and attached its port. */
  workerReady(place: Place): void;
  /** A task was answered. */
  takeAnswer(task: Task, hasFailed: boolean, value: unknown): void;
  /** Some tasks were answered: the worker has room for more. */
  giveMore(place: Place): void;
  /** The worker is lost with these tasks; the tasks of the first list had begun. */
  takeLost(begun: readonly Task[], others: readonly Task[], cause: unknown): void;
  /** The worker is gone. `hasCome`: it had started; `hasDied`: the pool had not ended it. */
  workerGone(hasCome: boolean, hasDied: boolean, end: WorkerEnd): void;
  /** Makes a port in memory of its own, in place of one whose endpoint cannot be given back. */
  replacePort(): Port<unknown>;
}

/** One of the places of a pool. */
export class Place implements LineUser {
  state: WorkerStats["state"] = "none";
  /** The tasks that the worker has, by their numbers, in the order in which they were given. */
  readonly given: Map<number, Task> = new Map();
  readonly isDue = false;
  readonly width = 1;
  done = 0;
  generation = 0;
  /** The time since which the worker has had no task. */
  idleSince = 0;
  readonly #owner: PlaceOwner;
  #port: Port<unknown>;
  #line: Line;
  #memory!: SharedArrayBuffer;
  #gauge!: GaugeReader;
  #life: Life | undefined;
  /** Whether the pool has ended the worker. */
  #isEnded = false;
  /** The number of the last task that was given. */
  #number = 0;
  /**
   * The timer that lets the process end; the timer of the next look; and the looks left at the
   * short interval.
   */
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

  /** Recent mean time of a task in milliseconds; 0 before the first. */
  get service(): number {
    return this.#gauge.service;
  }

  /** How many more tasks the worker may have now. */
  get room(): number {
    if (this.state !== "ready") return 0;
    return this.capacity - this.given.size;
  }

  /** The most tasks that the worker may have. */
  get capacity(): number {
    const { ahead = aheadOf(this.#gauge.service), concurrency } = this.#owner;
    return concurrency + ahead;
  }

  /** Starts a worker, and follows it until it is gone. */
  async start(): Promise<void> {
    this.state = "starting";
    this.#isEnded = false;
    // Between the end of a worker and the start of the next, only this timer keeps the process
    // alive.
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
        this.#owner.workerReady(this);
      } else life.end();
      end = await life.failed;
    } catch (cause) {
      end = { signal: "error", cause, marked: false };
    }
    this.state = "ending";
    await this.#vacate();
    clearInterval(stay);
    this.state = "none";
    this.#owner.workerGone(hasCome, !this.#isEnded, end);
  }

  /** Ends the worker, if there is one. */
  end(): void {
    this.#isEnded = true;
    this.endNow();
  }

  /** Ends a worker from which no answer can come any more. This counts as the worker's death. */
  endNow(): void {
    if (this.state === "starting" || this.state === "ready") this.state = "ending";
    this.#life?.end();
  }

  /**
   * Gives a task to the worker, which gets it with all others at the next `flush`. Returns false if
   * the worker is lost, which this place will soon learn.
   */
  give(task: Task): boolean {
    task.place = this;
    const number = task.number = numberAfter(this.#number);
    let part;
    try {
      part = this.#line.encode(task.value);
    } catch (error) {
      // Whatever the value's own code throws, which says nothing of the worker.
      this.#owner.takeAnswer(task, true, error);
      return true;
    }
    try {
      this.#line.add(number, task.name, part);
    } catch (error) {
      if (isLost(error)) return false;
      this.#owner.takeAnswer(task, true, error);
      return true;
    }
    this.#number = number;
    this.given.set(number, task);
    return true;
  }

  /** Sends the tasks that were given since the last `flush`. */
  flush(): void {
    if (this.given.size === 0) return;
    try {
      this.#line.flush();
    } catch (error) {
      if (!isLost(error)) throw error;
      return this.endNow(); // then `finish` sorts the tasks that were given
    }
    if (this.#linger !== undefined || !this.#line.keeps) this.#hold();
    if (this.given.size > 1) this.#lookLater();
  }

  /** Tells the worker that a task is given up. The task keeps its place until it is answered. */
  giveUp(task: Task): void {
    const { grace } = this.#owner;
    const has = () => this.given.get(task.number) === task;
    if (!has()) return;
    try {
      this.#line.sendMark(task.number);
    } catch (error) {
      if (!isLost(error)) throw error;
    }
    if (grace > TIMER_MAX_MS) return; // as good as no limit
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
      throw lostError("call.form", "it is no answer");
    }
    this.#takeAnswer(number, true, errorOf(values, this.given.get(number)?.name ?? ""));
  }

  /** Fails the task whose answer was dropped. [call.bad_answer] */
  lose(number: number, _: boolean, { code, message, cause }: MessageError): void {
    this.#takeAnswer(number, true, new CallError(code, message, { cause }));
  }

  go(): void {
    this.#gauge.update();
    this.#owner.giveMore(this);
    if (this.given.size === 0) this.#letGo();
    else this.#lookLater();
  }

  /** Sorts the tasks of a lost worker. */
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
    if (!task) return; // no task has this number, or it was answered before
    this.given.delete(number);
    this.done++;
    this.#owner.takeAnswer(task, hasFailed, value);
  }

  /** Keeps the process alive for the tasks that were given. */
  #hold(): void {
    clearTimeout(this.#linger as number);
    this.#linger = undefined;
    this.#line.keeps = true;
  }

  /** Delayed, so that tasks run one after another do not switch this on and off each time. */
  #letGo(): void {
    this.#linger ??= setTimeout(() => {
      this.#linger = undefined;
      if (this.given.size === 0) this.#line.keeps = false;
    }, LINGER_MS);
  }

  /** Looks for answers after a while, and again as long as any task has no answer. */
  #lookLater(looksLeft = LOOK_COUNT): void {
    this.#looksLeft = looksLeft;
    this.#looking ??= setTimeout(() => {
      this.#looking = undefined;
      if (this.given.size === 0) return;
      this.#line.poll();
      this.#lookLater(Math.max(0, this.#looksLeft - 1));
    }, looksLeft > 0 ? LOOK_MS : LOOK_LATER_MS);
  }

  /** Waits until the worker is gone, and gives its endpoint back. */
  async #vacate(): Promise<void> {
    const life = this.#life;
    if (!life) return; // the worker could not be created
    this.#life = undefined;
    await this.#line.closed; // all that the worker published is read, and its tasks are sorted
    if (await life.gone()) {
      // [segment.vacate_dead]
      if (!this.#port.link.isClosed) this.#take(revive(this.#port));
      this.#gauge.open(this.#number);
    } else {
      this.#take(this.#owner.replacePort());
      this.#measureAnew(); // the old worker may still write into the old gauge
    }
    this.generation++;
  }

  /** Goes on with another port. */
  #take(port: Port<unknown>): void {
    this.#port = port;
    this.#line = new Line(port, this, this.#owner.maxMessageSize);
  }

  #measureAnew(): void {
    this.#memory = new SharedArrayBuffer(GAUGE_SIZE);
    this.#gauge = new GaugeReader(this.#memory);
    this.#number = 0;
  }
}

/** Whether an error says that the worker is lost. */
function isLost(error: unknown): boolean {
  return error instanceof MillraceError && LOST.test(error.code);
}
