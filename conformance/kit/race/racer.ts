/**
 * The kit's second thread: it acts on the memory of a testee while the testee is in a call, in
 * loops that nothing interrupts. What it is to do is an order of `orders.ts`.
 *
 * @module
 */

import { Trouble } from "../verdict.ts";
import type { Order } from "./orders.ts";

/** What the kit cannot do on this machine, or to this testee. */
export class Cannot extends Error {}

/** Memory, as another thread of the program comes to it. */
export type RaceMemory =
  | { buffer: ArrayBufferLike; offset: number; size: number }
  | { address: bigint; size: number };

/** What the thread is posted: an order, where, and the word by which it is stopped. */
export interface RaceJob {
  order: Order;
  memory: RaceMemory;
  stop: Int32Array;
}

/** An order that is being carried out. */
export interface Race {
  /** Settles when it is at work. */
  begun: Promise<void>;
  /** What it has found or counted, at its own end. */
  done: Promise<number[]>;
  /** Ends it, and gives the same. */
  stop(): Promise<number[]>;
}

/** A worker of the platform, as far as it is needed here. */
interface Thread {
  onmessage: ((event: MessageEvent) => void) | null;
  onerror: ((event: ErrorEvent) => void) | null;
  postMessage(message: unknown): void;
  terminate(): void;
}

/** Longer than any order takes, on a machine that does other things, too. */
const PATIENCE_MS = 30_000;

/** A thread for races, started when it is first needed. */
export class Racer {
  readonly #start: () => Thread;
  #thread: Thread | undefined;
  #last: Promise<unknown> = Promise.resolve();
  /** The words that stop the orders which may still be at work. */
  readonly #stops: Set<Int32Array> = new Set();

  constructor(start: () => Thread = startHere) {
    this.#start = start;
  }

  /** Has an order carried out, after the one before. */
  race(order: Order, memory: RaceMemory): Race {
    const thread = this.#thread ??= this.#start();
    const stop = new Int32Array(new SharedArrayBuffer(4));
    const begun = Promise.withResolvers<void>();
    const done = Promise.withResolvers<number[]>();
    const fail = (fact: string) => {
      const trouble = new Trouble("error", `the kit's own thread ${fact}`);
      begun.reject(trouble);
      done.reject(trouble);
    };
    for (const { promise } of [begun, done]) promise.catch(() => {}); // one of them is waited for
    this.#stops.add(stop);
    const isOver = () => this.#stops.delete(stop);
    done.promise.then(isOver, isOver);
    this.#last = this.#last.then(() => {
      const timer = setTimeout(() => fail("does not come back"), PATIENCE_MS);
      thread.onerror = (event) => {
        event.preventDefault();
        fail(`failed: ${event.message}`);
      };
      thread.onmessage = ({ data }) => {
        if ("cannot" in data) {
          clearTimeout(timer);
          for (const each of [begun, done]) each.reject(new Cannot(data.cannot));
        } else if ("found" in data) {
          clearTimeout(timer);
          done.resolve(data.found);
        } else begun.resolve();
      };
      thread.postMessage({ order, memory, stop } satisfies RaceJob);
      return done.promise.catch(() => {});
    });
    return {
      begun: begun.promise,
      done: done.promise,
      stop() {
        Atomics.store(stop, 0, 1);
        return done.promise;
      },
    };
  }

  /** Stops whatever is at work, and waits until nothing is: the memory goes. */
  async halt(): Promise<void> {
    for (const stop of this.#stops) Atomics.store(stop, 0, 1);
    await this.#last;
  }

  /** Ends the thread; the next order starts another. */
  end(): void {
    for (const stop of this.#stops) Atomics.store(stop, 0, 1);
    this.#thread?.terminate();
    this.#thread = undefined;
    this.#last = Promise.resolve();
  }
}

function startHere(): Thread {
  return new Worker(new URL("./racer_worker.ts", import.meta.url), { type: "module" });
}
