/**
 * The worker's side of a pool.
 *
 * @module
 */

import { Port, type PortOptions } from "./port.ts";
import type { PortHandoff } from "./port_handoff.ts";
import { holdLife } from "./supervise.ts";
import { WorkGauge } from "./worker_pool_gauge.ts";
import { LateRings, Turns } from "./worker_pool_turns.ts";
import type { Handlers, Work } from "./worker_pool_types.ts";

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
  const rings = new LateRings();
  const { mechanism } = rings;
  const port = Port.from<unknown>(start.handoff, { ...options, mechanism });
  const named = typeof handlers === "function" ? { [ONLY]: handlers } : handlers;
  const methods = new Map(Object.entries(named));
  const gauge = new WorkGauge(start.gauge);
  new Turns(port, gauge, rings, start.concurrency, methods, options.maxMessageSize);
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
