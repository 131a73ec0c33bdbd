/**
 * A task of a pool, and the queue of those that no worker has yet.
 *
 * @module
 */

import type { Place } from "./worker_pool_place.ts";

/** What settles the promise that was made last: a function that keeps it is not made for each. */
const settlers = { resolve: (_: unknown): void => {}, reject: (_: unknown): void => {} };

function keepSettlers(resolve: (result: unknown) => void, reject: (error: unknown) => void): void {
  settlers.resolve = resolve;
  settlers.reject = reject;
}

/** One task, until its promise is settled and no worker has it any more. */
export class Task {
  readonly name: string;
  readonly value: unknown;
  readonly promise: Promise<unknown>;
  readonly resolve: (result: unknown) => void;
  readonly reject: (error: unknown) => void;
  /** How often it may still be given to another worker. */
  retry: number;
  /** When it began to wait. */
  since = performance.now();
  /** Whether its promise is settled: it was given up, or is done. */
  isOver = false;
  /** Ends the listening to its signal. */
  release: (() => void) | undefined;
  /** The worker that has it, and its number there. */
  place: Place | undefined;
  number = 0;
  /** Its neighbours in the queue. */
  before: Task | undefined;
  after: Task | undefined;

  /** Makes a task that waits. */
  constructor(name: string, value: unknown, retry: number) {
    this.name = name;
    this.value = value;
    this.retry = retry;
    this.promise = new Promise(keepSettlers);
    this.resolve = settlers.resolve;
    this.reject = settlers.reject;
  }
}

/** Tasks in their order. */
export class TaskQueue {
  size = 0;
  #first: Task | undefined;
  #last: Task | undefined;

  /** The one that waits for the longest time. */
  get first(): Task | undefined {
    return this.#first;
  }

  /** Adds one behind all others. */
  push(task: Task): void {
    this.#link(this.#last, task, undefined);
  }

  /** Puts some, which workers had, before all others. */
  putBack(tasks: readonly Task[]): void {
    for (let index = tasks.length - 1; index >= 0; index--) {
      this.#link(undefined, tasks[index]!, this.#first);
    }
  }

  /** Takes the first one out. */
  shift(): Task | undefined {
    const task = this.#first;
    if (task !== undefined) this.remove(task);
    return task;
  }

  /** Takes one out. */
  remove(task: Task): void {
    const { before, after } = task;
    if (before === undefined) this.#first = after;
    else before.after = after;
    if (after === undefined) this.#last = before;
    else after.before = before;
    task.before = task.after = undefined;
    this.size--;
  }

  #link(before: Task | undefined, task: Task, after: Task | undefined): void {
    task.before = before;
    task.after = after;
    if (before === undefined) this.#first = task;
    else before.after = task;
    if (after === undefined) this.#last = task;
    else after.before = task;
    this.size++;
  }
}
