/**
 * Runs a task for each value of a source, and takes values only as there is room for them.
 *
 * @module
 */

/** The result of one value, or its failure. */
interface Slot {
  isDone: boolean;
  hasFailed: boolean;
  value: unknown;
}

/** How the values are run, and the limits of a flow. */
export interface Flow {
  readonly ordered: boolean;
  /** A signal that ends the loop with its reason. */
  readonly signal?: AbortSignal | undefined;
  /** The most values, at this moment, that may be taken while their results are not. */
  most(): number;
  /** Called when values begin, or cease, to wait in the source for lack of room. */
  hold(on: boolean): void;
  /** Runs the task of one value. */
  run(value: unknown): Running;
  /** Gives a task up if it is not done. */
  giveUp(running: Running, reason: unknown): void;
}

/** A value whose task is running. */
export interface Running {
  readonly promise: Promise<unknown>;
}

/**
 * Yields the results of a source's values. The source is asked only when there is room, and for one
 * value at a time. When the consumer leaves the loop, or a task fails, the source is closed, and
 * unfinished tasks are given up.
 */
export async function* flow(
  source: Iterable<unknown> | AsyncIterable<unknown>,
  options: Flow,
): AsyncGenerator<unknown, void, void> {
  const taker = new Taker(source, options);
  try {
    for (;;) {
      taker.fill();
      const slot = taker.next();
      if (!slot) {
        if (taker.isAtEnd) return;
        await taker.changed();
      } else if (slot.hasFailed) {
        throw slot.value;
      } else {
        yield slot.value;
      }
    }
  } finally {
    await taker.leave();
  }
}

/** Takes values from a source, and keeps their results until the loop takes them. */
class Taker {
  readonly #options: Flow;
  readonly #source: Iterator<unknown> | AsyncIterator<unknown>;
  readonly #running = new Set<Running>();
  /** In the order of the values, or, if unordered, in the order in which they were done. */
  readonly #slots: Slot[] = [];
  /** The number of values that were taken and whose results were not. */
  #count = 0;
  /** Whether an asynchronous source has been asked and has not answered. */
  #isAsking = false;
  #isOver = false;
  #isHolding = false;
  #error: { readonly reason: unknown } | undefined;
  #wake: (() => void) | undefined;

  constructor(source: Iterable<unknown> | AsyncIterable<unknown>, options: Flow) {
    this.#options = options;
    this.#source = Symbol.asyncIterator in source
      ? source[Symbol.asyncIterator]()
      : source[Symbol.iterator]();
    options.signal?.addEventListener("abort", this.#abort);
  }

  /** Whether no more results will come. */
  get isAtEnd(): boolean {
    return this.#isOver && this.#count === 0;
  }

  /** Takes as many values as there is room for. @throws the reason of the signal. */
  fill(): void {
    this.#options.signal?.throwIfAborted();
    while (!this.#isOver && !this.#isAsking && this.#count < this.#options.most()) {
      try {
        const step = this.#source.next();
        if (!("then" in step)) this.#take(step);
        else {
          this.#isAsking = true;
          step.then((result) => this.#take(result), (error) => this.#fail(error));
        }
      } catch (error) {
        this.#fail(error);
      }
    }
    this.#hold(!this.#isOver && !this.#isAsking);
  }

  /**
   * Takes the next result, if it is there, else returns undefined. @throws the error that ends the
   * loop.
   */
  next(): Slot | undefined {
    this.#options.signal?.throwIfAborted();
    const [first] = this.#slots;
    if (first?.isDone) {
      this.#count--;
      return this.#slots.shift();
    }
    // An error of the source comes after the results of the values that it has given.
    if (!this.#error || this.#count > 0) return undefined;
    throw this.#error.reason;
  }

  /** Resolves when there may be a new result. */
  changed(): Promise<void> {
    return new Promise((resolve) => this.#wake = resolve);
  }

  /** Gives up unfinished tasks, and closes the source; waits for it only if it can answer. */
  async leave(): Promise<void> {
    this.#options.signal?.removeEventListener("abort", this.#abort);
    this.#hold(false);
    this.#giveUp(new DOMException("The loop over the results was left", "AbortError"));
    if (this.#isOver) return;
    this.#isOver = true;
    // A generator answers only after what it was asked before, and nobody waits after an abort.
    if (this.#isAsking || this.#options.signal?.aborted) this.#close().catch(() => {});
    else await this.#close();
  }

  async #close(): Promise<void> {
    await this.#source.return?.();
  }

  #take(step: IteratorResult<unknown>): void {
    this.#isAsking = false;
    if (this.#isOver) return; // the loop was left meanwhile
    try {
      const { done = false, value } = step; // which may be anything
      if (done) this.#isOver = true;
      else this.#run(value);
    } catch (error) {
      return this.#fail(error);
    }
    this.#rouse();
  }

  #run(value: unknown): void {
    const slot: Slot = { isDone: false, hasFailed: false, value: undefined };
    this.#count++;
    if (this.#options.ordered) this.#slots.push(slot);
    const running = this.#options.run(value);
    this.#running.add(running);
    const finish = (result: unknown, hasFailed: boolean) => {
      this.#running.delete(running);
      slot.isDone = true;
      slot.hasFailed = hasFailed;
      slot.value = result;
      if (!this.#options.ordered) this.#slots.push(slot);
      this.#rouse();
    };
    running.promise.then((result) => finish(result, false), (error) => finish(error, true));
  }

  readonly #abort = (): void => {
    this.#giveUp(this.#options.signal!.reason);
    this.#rouse();
  };

  #giveUp(reason: unknown): void {
    for (const running of this.#running) this.#options.giveUp(running, reason);
  }

  #fail(reason: unknown): void {
    this.#isAsking = false;
    this.#isOver = true;
    this.#error = { reason };
    this.#rouse();
  }

  #hold(on: boolean): void {
    if (on !== this.#isHolding) this.#options.hold(on);
    this.#isHolding = on;
  }

  #rouse(): void {
    this.#wake?.();
    this.#wake = undefined;
  }
}
