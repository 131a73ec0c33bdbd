/**
 * A task of a pool, and the queue of tasks that no worker has yet.
 *
 * @module
 */

import { now } from "../memory/clock.ts";
import type { Place } from "./place.ts";

/** The settling functions of the latest promise: a shared executor saves a closure a task. */
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
  /** How often the task may still be given to another worker after its worker has died. */
  retry: number;
  /** The time at which the task began to wait. */
  since = now();
  /** Whether its promise is settled, because the task is done or was given up. */
  isOver = false;
  /** Removes the listener from its signal. */
  release: (() => void) | undefined;
  /** The place that has the task, and the task's number there. */
  place: Place | undefined;
  number = 0;
  /** Its neighbours in the queue. */
  before: Task | undefined;
  after: Task | undefined;

  /** Makes a task that waits from now on. */
  constructor(name: string, value: unknown, retry: number) {
    this.name = name;
    this.value = value;
    this.retry = retry;
    this.promise = new Promise(keepSettlers);
    this.resolve = settlers.resolve;
    this.reject = settlers.reject;
  }
}

/** The tasks that wait, in order. */
export class TaskQueue {
  size = 0;
  #first: Task | undefined;
  #last: Task | undefined;

  /** The task at the front of the queue. */
  get first(): Task | undefined {
    return this.#first;
  }

  /** Adds a task at the end. */
  push(task: Task): void {
    this.#link(this.#last, task, undefined);
  }

  /** Puts tasks that workers had back in front of all others. */
  putBack(tasks: readonly Task[]): void {
    for (let index = tasks.length - 1; index >= 0; index--) {
      this.#link(undefined, tasks[index]!, this.#first);
    }
  }

  /** Takes the first task out. */
  shift(): Task | undefined {
    const task = this.#first;
    if (task) this.remove(task);
    return task;
  }

  /** Takes a task out, wherever it is. */
  remove(task: Task): void {
    const { before, after } = task;
    if (!before) this.#first = after;
    else before.after = after;
    if (!after) this.#last = before;
    else after.before = before;
    task.before = task.after = undefined;
    this.size--;
  }

  #link(before: Task | undefined, task: Task, after: Task | undefined): void {
    task.before = before;
    task.after = after;
    if (!before) this.#first = task;
    else before.after = task;
    if (!after) this.#last = task;
    else after.before = task;
    this.size++;
  }
}
