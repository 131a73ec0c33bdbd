/**
 * The worker's side of a pool.
 *
 * @module
 */

import { type CallContext, callContext } from "./call_context.ts";
import { CallError } from "./call_error.ts";
import { serve } from "./call_serve.ts";
import { Port, type PortOptions } from "./port.ts";
import type { PortHandoff } from "./port_handoff.ts";
import { holdLife } from "./supervise.ts";
import { WorkGauge } from "./worker_pool_gauge.ts";
import type { Handler, Handlers, Work } from "./worker_pool_types.ts";

/** The name on the wire of the handler that has none. */
export const ONLY = "run";

/** What a worker gets from its pool before all else. */
export interface Start {
  /** Its end of a port of the hub. */
  readonly handoff: PortHandoff;
  /** The name of its life; see `holdLife`. */
  readonly lock: string;
  /** What it says of its work. */
  readonly gauge: SharedArrayBuffer;
  /** Tasks that it runs at a time. */
  readonly concurrency: number;
}

const GIVEN_UP = "The task was given up before it began";

/** What a message must have to be that. */
export const START_KEY = "millrace-pool";

/**
 * How a module of work reads its tasks.
 *
 * @example
 * ```ts
 * import { cbor } from "@millrace/millrace/cbor";
 * import { work, type WorkOptions } from "@millrace/millrace/pool";
 *
 * // In a worker; the pool has the same codec.
 * const options: WorkOptions = { codec: cbor };
 * export default work((names: Set<string>) => names.size, options);
 * ```
 */
export type WorkOptions = Pick<
  PortOptions<unknown, unknown>,
  "codec" | "codecs" | "maxMessageSize"
>;

/**
 * Says what the tasks of a pool are handled by. To be called once by the module that `Pool` starts
 * in its workers, without anything to wait for before it; in any other thread, a test's for
 * instance, it does nothing.
 *
 * A handler gets the value of a task, and returns its result or a promise of it. Strings, bytes,
 * JSON and `undefined` cross, and what a codec carries that both sides have. What it throws rejects
 * the task, with name, message, and `data`, if the error has such a property.
 *
 * @example
 * ```ts
 * // worker.ts
 * import { work } from "@millrace/millrace/pool";
 *
 * export default work({
 *   sizeOf: (text: string) => new TextEncoder().encode(text).length,
 *   load: async (url: string, { signal }) => await (await fetch(url, { signal })).text(),
 * });
 *
 * // main.ts: const pool = new Pool<typeof import("./worker.ts").default>(url);
 * // await pool.run("text", { name: "sizeOf" });
 * ```
 */
export function work<H extends Handlers>(handlers: H, options: WorkOptions = {}): Work<H> {
  hear((start) => {
    begin(start, handlers, options).catch((error) => {
      // In a browser, a rejection that nobody handles would not be told to the pool.
      setTimeout(() => {
        throw error;
      });
    });
  });
  return { handlers };
}

/** Takes up the work. */
async function begin(start: Start, handlers: Handlers, options: WorkOptions): Promise<void> {
  await holdLife(start.lock);
  const port = Port.from<unknown>(start.handoff, options);
  const turns = new Turns(new WorkGauge(start.gauge), start.concurrency);
  const named = typeof handlers === "function" ? { [ONLY]: handlers } : handlers;
  const methods = Object.entries(named).map(([name, handler]) => [
    name,
    (number: number, value: unknown) => turns.take(number, value, handler),
  ]);
  serve(port, Object.fromEntries(methods));
}

/** One that has come and waits for its turn. */
interface Waiting {
  readonly number: number;
  readonly value: unknown;
  readonly handler: Handler;
  readonly context: CallContext;
  readonly resolve: (result: unknown) => void;
  readonly reject: (error: unknown) => void;
}

/** Has tasks begin in the order in which they came, so many at a time. */
class Turns {
  readonly #gauge: WorkGauge;
  readonly #concurrency: number;
  readonly #waiting: Waiting[] = [];
  #runningCount = 0;

  constructor(gauge: WorkGauge, concurrency: number) {
    this.#gauge = gauge;
    this.#concurrency = concurrency;
  }

  /** Handles a task, now or in its turn. */
  take(number: number, value: unknown, handler: Handler): unknown {
    const context = callContext()!;
    if (this.#waiting.length === 0 && this.#runningCount < this.#concurrency) {
      return this.#run(number, value, handler, context);
    }
    return new Promise((resolve, reject) => {
      this.#waiting.push({ number, value, handler, context, resolve, reject });
    });
  }

  #run(number: number, value: unknown, handler: Handler, context: CallContext): unknown {
    if (!this.#gauge.begin(number)) throw new CallError("call.cancelled", GIVEN_UP);
    const began = performance.now();
    this.#runningCount++;
    let isLater = false;
    try {
      const result = handler(value, context);
      isLater = typeof (result as PromiseLike<unknown> | undefined)?.then === "function";
      if (!isLater) return result;
      return Promise.resolve(result).finally(() => this.#end(began));
    } finally {
      if (!isLater) this.#end(began);
    }
  }

  #end(began: number): void {
    this.#gauge.end(performance.now() - began);
    this.#runningCount--;
    // Behind the answer of this one.
    if (this.#waiting.length > 0) Promise.resolve().then(() => this.#runWaiting());
  }

  #runWaiting(): void {
    while (this.#runningCount < this.#concurrency && this.#waiting.length > 0) this.#runNext();
  }

  #runNext(): void {
    const { number, value, handler, context, resolve, reject } = this.#waiting.shift()!;
    if (context.signal.aborted) {
      this.#gauge.begin(number);
      return reject(new CallError("call.cancelled", GIVEN_UP));
    }
    try {
      resolve(this.#run(number, value, handler, context));
    } catch (error) {
      reject(error);
    }
  }
}

/** A port of Node's threads, as far as it matters here. */
interface ParentPort {
  on(type: "message", listener: (data: unknown) => void): void;
  off(type: "message", listener: (data: unknown) => void): void;
}

/** What some runtimes have and others lack. */
interface Scope {
  readonly Deno?: unknown;
  readonly Bun?: unknown;
  readonly process?: {
    getBuiltinModule?(name: "node:worker_threads"): { parentPort: ParentPort | null } | undefined;
  };
  addEventListener?(type: "message", listener: (event: MessageEvent) => void): void;
  removeEventListener?(type: "message", listener: (event: MessageEvent) => void): void;
}

/** Waits for the message with which a pool starts this worker. */
function hear(take: (start: Start) => void): void {
  const scope = globalThis as Scope;
  const startOf = (data: unknown) => (data as { [START_KEY]?: Start } | null)?.[START_KEY];
  if (scope.addEventListener !== undefined) {
    const listener = ({ data }: MessageEvent) => {
      const start = startOf(data);
      if (start === undefined) return;
      scope.removeEventListener!("message", listener);
      take(start);
    };
    return scope.addEventListener("message", listener);
  }
  const parent = scope.process?.getBuiltinModule?.("node:worker_threads")?.parentPort;
  const listener = (data: unknown) => {
    const start = startOf(data);
    if (start === undefined) return;
    parent!.off("message", listener);
    take(start);
  };
  parent?.on("message", listener);
}
