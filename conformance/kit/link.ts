/**
 * The way to one testee and back: commands go out, replies come in, and somebody may pull the plug.
 *
 * @module
 */

import { Connection } from "./connection.ts";
import { Trouble } from "./verdict.ts";

/** Where commands go and replies come from. */
export interface Link {
  /** Of a testee that is a process of its own: that, and its first thread. */
  readonly pid?: number;
  send(command: object): void | Promise<void>;
  /** The next reply as an object. Throws `Trouble` where it does not come, or is none. */
  next(timeoutMs: number): Promise<unknown>;
  /** What the testee has printed beside its replies, the end of it. */
  notes(): string;
  /** Ends the testee at once, and waits until it is gone. */
  kill(): Promise<void>;
}

/** Replies that came and were not asked for yet, and why there will be no more. */
export class Inbox<T> {
  readonly #items: T[] = [];
  #trouble: Trouble | undefined;
  #wake: (() => void) | undefined;

  /** How many wait to be taken. */
  get count(): number {
    return this.#items.length;
  }

  add(item: T): void {
    this.#items.push(item);
    this.#wake?.();
  }

  /** Nothing more comes; what came before is still handed out. The first reason counts. */
  end(trouble: Trouble): void {
    this.#trouble ??= trouble;
    this.#wake?.();
  }

  /** Takes one, or waits for it. */
  async take(timeoutMs: number): Promise<T> {
    const deadline = performance.now() + timeoutMs;
    for (;;) {
      if (this.#items.length > 0) return this.#items.shift()!;
      if (this.#trouble !== undefined) throw this.#trouble;
      const left = deadline - performance.now();
      if (left <= 0) {
        throw new Trouble("timeout", `no reply within ${(timeoutMs / 1000).toFixed(1)} s`);
      }
      let timer: ReturnType<typeof setTimeout> | undefined;
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
        timer = setTimeout(resolve, left);
      });
      clearTimeout(timer);
      this.#wake = undefined;
    }
  }
}

// Keeps one testee running, and starts it again when it has broken down.

/** A place for one testee. */
export class Seat<L extends Link = Link> {
  readonly #start: () => L;
  #link: L | undefined;
  #connection: Connection | undefined;
  #starting: Promise<Connection> | undefined;

  constructor(start: () => L) {
    this.#start = start;
  }

  /** The link of the testee that runs. */
  get link(): L | undefined {
    return this.#link;
  }

  /** Starts the testee where it does not run. Throws `Trouble` where it will not. */
  async take(): Promise<Connection> {
    if (this.#connection !== undefined) return this.#connection;
    this.#starting ??= this.#open().finally(() => this.#starting = undefined);
    return await this.#starting;
  }

  /** Ends it; the next `take` starts another. */
  async kill(): Promise<void> {
    const link = this.#link;
    this.#connection = this.#link = undefined;
    await link?.kill();
  }

  async #open(): Promise<Connection> {
    this.#link = this.#start();
    return this.#connection = await Connection.start(this.#link);
  }
}
