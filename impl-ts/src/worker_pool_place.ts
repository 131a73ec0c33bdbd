/**
 * The place of one worker in a pool: its end of the hub, what it was given, and what becomes of
 * that. When a worker is gone, the next one has the same place.
 *
 * @module
 */

import { CallError } from "./call_error.ts";
import { CallLayer } from "./call_layer.ts";
import { MillraceError } from "./error.ts";
import { vacatePeer } from "./pipe_vacate.ts";
import type { Port } from "./port.ts";
import type { WorkerEnd } from "./supervise.ts";
import { unref } from "./wait_task.ts";
import { GAUGE_SIZE, GaugeReader, hasBegun, numberBehind } from "./worker_pool_gauge.ts";
import { arrival, Life, type WorkSource } from "./worker_pool_life.ts";
import { aheadOf } from "./worker_pool_size.ts";
import type { Task } from "./worker_pool_task.ts";
import type { WorkerStats } from "./worker_pool_types.ts";

/** Milliseconds between two turns of a timer that does nothing. */
const STAY_MS = 0x3fffffff;
/** What tells that a worker is lost, and not that its task has failed. */
const LOST = /^(peer|pipe|ring|frame|segment)\.|^call\.ended$/;

/** What a place needs of its pool. */
export interface PlaceOwner {
  readonly source: WorkSource;
  readonly concurrency: number;
  readonly ahead: number | undefined;
  readonly grace: number;
  readonly startTimeout: number;
  /** A worker has come. */
  comeTo(place: Place): void;
  /** A task is answered. */
  takeAnswer(task: Task, hasFailed: boolean, value: unknown): void;
  /** The worker is lost, and with it these tasks, of which some had begun. */
  takeLost(begun: readonly Task[], others: readonly Task[], cause: unknown): void;
  /** There is no worker any more. `hasCome`: there was one; `hasDied`: nobody wanted that. */
  leave(hasCome: boolean, hasDied: boolean, end: WorkerEnd): void;
  /** Makes a port in memory of its own, for one that cannot be given back. */
  replacePort(): Port<unknown>;
}

/** One of the places of a pool. */
export class Place {
  state: WorkerStats["state"] = "none";
  /** Tasks that it has, in the order in which they were given. */
  readonly given: Set<Task> = new Set();
  done = 0;
  generation = 0;
  /** Since when it has nothing to do. */
  idleSince = 0;
  readonly #owner: PlaceOwner;
  #port: Port<unknown>;
  #layer: CallLayer;
  #memory!: SharedArrayBuffer;
  #gauge!: GaugeReader;
  #life: Life | undefined;
  /** Whether its worker was to end. */
  #isEnded = false;
  /** The number of the last task that was given. */
  #number = 0;
  /** Tasks of a worker that is lost. */
  #lost: Task[] = [];

  /** Makes a place without a worker. */
  constructor(owner: PlaceOwner, port: Port<unknown>) {
    this.#owner = owner;
    this.#port = port;
    this.#layer = CallLayer.of(port);
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
    this.lose();
  }

  /** Ends a worker of which nothing more can come, whatever it does. */
  lose(): void {
    if (this.state === "starting" || this.state === "ready") this.state = "ending";
    this.#life?.end();
  }

  /** Gives it a task. False: its worker is lost, which it is about to find. */
  give(task: Task): boolean {
    task.place = this;
    task.number = this.#number = numberBehind(this.#number);
    try {
      const values = [task.number, task.value];
      task.call = this.#layer.caller.call(task.name, values, false, false);
    } catch (error) {
      if (isLost(error)) return false;
      this.#owner.takeAnswer(task, true, error);
      return true;
    }
    if (this.given.size === 0) this.#layer.hold();
    this.given.add(task);
    if (task.call.isOver) this.#takeAnswer(task);
    else task.call.changed = () => this.#takeAnswer(task);
    return true;
  }

  /** Has its worker know that nobody waits for a task, whose place it has until it is answered. */
  giveUp(task: Task): void {
    const { grace } = this.#owner;
    this.#layer.caller.tell(task.call!, new CallError("call.cancelled", "The task was given up"));
    if (grace === Infinity || !this.given.has(task)) return;
    const end = () => {
      if (this.given.has(task)) this.lose();
    };
    unref(setTimeout(end, grace));
  }

  #takeAnswer(task: Task): void {
    const { hasFailed, error, value } = task.call!;
    this.given.delete(task);
    if (this.given.size === 0) this.#layer.letGo();
    if (hasFailed && isLost(error)) return this.#takeLost(task, error);
    this.done++;
    this.#gauge.look();
    this.#owner.takeAnswer(task, hasFailed, hasFailed ? error : value);
  }

  /** Sorts the tasks of a worker that is lost, when all of them are known. */
  #takeLost(task: Task, cause: unknown): void {
    this.#lost.push(task);
    if (this.given.size > 0) return;
    this.lose();
    const lost = this.#lost;
    this.#lost = [];
    const last = this.#gauge.seal();
    const begun = lost.filter(({ number }) => hasBegun(number, last));
    const others = lost.filter(({ number }) => !hasBegun(number, last));
    this.#owner.takeLost(begun, others, cause);
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
      this.#layer = CallLayer.of(this.#port);
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
