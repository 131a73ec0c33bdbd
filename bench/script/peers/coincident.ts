/**
 * `coincident`: a worker that calls functions of the main thread, and blocks meanwhile; or is
 * called by it, by promises.
 *
 * @module
 */
import coincident from "coincident/main";
import { Control } from "../control.ts";
import { both, type CallEnd, type Order, type Peer, type Report } from "../peer.ts";
import type { Player } from "../place.ts";
import type { Note } from "../web_worker.ts";

/** What is used of a worker of the library. */
type Caller = Worker & { proxy: Record<string, (value: unknown) => unknown> };

/** The worker that was started last, where the main thread has an end of its own. */
let started: Promise<Caller> | undefined;

const peer: Peer = {
  decline({ name, ends, wait, pin, direction }, place) {
    if (place.name === "node") return "needs the workers of the web";
    if (name === "calls" && direction !== undefined) {
      if (ends !== "main-worker") return "between a worker and the main thread";
    } else {
      if (name !== "echo") return "only calls";
      if (ends !== "workers") return "only a worker can block, and only for the main thread";
    }
    return wait === "spin" && pin === "one-core" ? "does not spin" : undefined;
  },
  prepare: () => both(undefined),
  async open() {
    while (started === undefined) await new Promise((resolve) => setTimeout(resolve, 1));
    return new MainEnd(await started);
  },
  async startPlayer(place): Promise<Player> {
    const { Worker } = coincident() as unknown as { Worker: new (url: string) => Caller };
    const worker = new Worker(place.moduleUrl("coincident_worker"));
    worker.proxy.answer = (value) => value;
    // Orders and reports go beside the library: the first call shall be one of those that count.
    const next = () =>
      new Promise<Report>((resolve, reject) => {
        worker.onmessage = ({ data }: MessageEvent<Note>) => {
          if ("report" in data) resolve(data.report);
          else reject(new Error(data.error));
        };
      });
    // What is called before the worker has set it is an error there.
    started = next().then(() => worker);
    await started;
    return {
      async play(order: Order) {
        // The main thread waits for it where it plays as well.
        new Control(order.control).addHere();
        worker.postMessage(order);
        const report = await next();
        return { ...report, notes: [...report.notes ?? [], "a worker and the main thread"] };
      },
      close() {
        started = undefined;
        worker.terminate();
      },
    };
  },
  alone: ({ name }) => name !== "calls",
};

/** The peer of this file. */
export const peers = { "coincident": peer };

/** The end of the main thread, which gets promises. */
class MainEnd implements CallEnd {
  readonly kind = "calls";
  readonly blocks = false;
  readonly #proxy: Caller["proxy"];
  #left!: Promise<void>;

  constructor({ proxy }: Caller) {
    this.#proxy = proxy;
  }

  serve(ask: (number: number) => number): void {
    this.#left = new Promise((resolve) => {
      Object.assign(this.#proxy, { ask, leave: () => resolve() });
    });
  }

  ask(number: number): Promise<number> {
    return this.#proxy.ask!(number) as Promise<number>;
  }

  nest(number: number): Promise<number> {
    return this.#proxy.nest!(number) as Promise<number>;
  }

  rest(): Promise<void> {
    return this.#left;
  }

  leave(): Promise<unknown> {
    return this.#proxy.leave!(undefined) as Promise<unknown>;
  }

  close(): void {}
}
