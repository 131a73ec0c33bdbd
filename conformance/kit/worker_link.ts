/**
 * A testee in a worker of this process, or in this very thread.
 *
 * @module
 */

import { type Adapter, Server, type Shared } from "../testees/server.ts";
import { Inbox, type Link } from "./link.ts";
import { Trouble } from "./verdict.ts";

/** A worker that speaks the protocol in objects. */
export class WorkerLink implements Link {
  readonly #worker: Worker;
  readonly #replies = new Inbox<unknown>();
  readonly #ready = Promise.withResolvers<void>();
  #notes = "";

  /** Starts a worker, and posts to it what `first` gives. */
  constructor(url: URL, first?: () => Promise<object>) {
    this.#worker = new Worker(url, { type: "module" });
    this.#worker.onmessage = async ({ data }) => {
      if (data?.ready !== true) return this.#replies.add(data);
      if (first !== undefined) this.#worker.postMessage(await first());
      this.#ready.resolve();
    };
    this.#worker.onerror = (event) => {
      event.preventDefault();
      this.#notes += event.message;
      this.#replies.end(new Trouble("error", `the worker failed: ${event.message}`));
      this.#ready.resolve();
    };
  }

  /** Hands over memory, which commands then name. */
  async share(memory: object): Promise<void> {
    await this.#ready.promise;
    this.#worker.postMessage(memory);
  }

  async send(command: object): Promise<void> {
    // What is posted before the worker listens can be lost.
    await this.#ready.promise;
    this.#worker.postMessage(command);
  }

  async next(timeoutMs: number): Promise<unknown> {
    return await this.#replies.take(timeoutMs);
  }

  notes(): string {
    return this.#notes;
  }

  /** A worker that is blocked in a call ends when that call's time is up. */
  kill(): Promise<void> {
    this.#worker.terminate();
    this.#replies.end(new Trouble("error", "the worker was terminated"));
    return Promise.resolve();
  }
}

/** A testee in this thread; what goes over it is still what goes over a line. */
export class LocalLink implements Link {
  readonly #server: Server;
  #reply: Promise<unknown> = Promise.resolve();

  constructor(adapter: Adapter) {
    this.#server = new Server(adapter);
  }

  share(memory: Shared): void {
    this.#server.share(memory);
  }

  send(command: object): void {
    const reply = this.#server.answer(JSON.parse(JSON.stringify(command)));
    this.#reply = reply.catch((error) => {
      throw new Trouble("error", String((error as Error).stack));
    });
  }

  async next(): Promise<unknown> {
    return JSON.parse(JSON.stringify(await this.#reply));
  }

  notes(): string {
    return "";
  }

  kill(): Promise<void> {
    return Promise.resolve();
  }
}
