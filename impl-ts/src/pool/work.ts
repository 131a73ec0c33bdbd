/**
 * The worker's side of a pool.
 *
 * @module
 */

import type { CodecName } from "../codec/codec.ts";
import { requireOptions } from "../error.ts";
import { setTimeout } from "../memory/clock.ts";
import { Port } from "../port/port.ts";
import type { PortHandoff, PortOptions } from "../port/options.ts";
import { holdLife } from "../more/supervise.ts";
import { WorkGauge } from "./work_gauge.ts";
import { LateRings, TaskRunner } from "./runner.ts";
import type { Handlers, Work } from "./types.ts";

/** The name on the wire of a handler that was given without a name. */
export const ONLY = "run";

/** The message that a worker gets from its pool first. */
export interface Start {
  /** The worker's end of a port of the hub. */
  readonly handoff: PortHandoff;
  /** The name of the lock that the worker holds while it lives; see `holdLife`. */
  readonly lock: string;
  /** The memory of the gauge, in which the worker reports its progress. */
  readonly gauge: SharedArrayBuffer;
  /** How many tasks it runs at a time. */
  readonly concurrency: number;
}

/** The property by which that message is recognized. */
export const START_KEY = "millrace-pool";

/**
 * Options of `work`: how the worker reads its tasks.
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
 * Sets the handlers of a pool's tasks. The module that `Pool` starts in its workers calls it once,
 * and must not await anything before it. In any other thread, for instance in a test, it does
 * nothing.
 *
 * A handler gets the value of a task, and returns its result or a promise of it. Strings, bytes,
 * JSON with or without bytes in it, and `undefined` can be sent, and all that a codec encodes which
 * both sides have. If a handler throws, the task is rejected with the error's name, message, and
 * `data`, if it has such a property.
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
export function work<H extends Handlers, O extends WorkOptions = { codec?: CodecName }>(
  handlers: H,
  options?: O,
): Work<H, O extends { readonly codec?: CodecName | undefined } ? false : true> {
  const own: WorkOptions = options ?? {};
  requireOptions(own);
  hear((start) => {
    begin(start, handlers, own).catch((error) => {
      // In a browser, an unhandled rejection would not be reported to the pool; an error in a timer
      // is.
      setTimeout(() => {
        throw error;
      });
    });
  });
  const hasCodec = typeof own.codec === "object";
  return { handlers, hasCodec } as ReturnType<typeof work<H, O>>;
}

/** Attaches the port, and begins to take tasks. */
async function begin(start: Start, handlers: Handlers, options: WorkOptions): Promise<void> {
  await holdLife(start.lock);
  const rings = new LateRings();
  const { mechanism } = rings;
  const port = Port.from<unknown>(start.handoff, { ...options, mechanism, inboxCount: 0 });
  const named = typeof handlers === "function" ? { [ONLY]: handlers } : handlers;
  const methods = new Map(Object.entries(named));
  const gauge = new WorkGauge(start.gauge);
  new TaskRunner(port, gauge, rings, start.concurrency, methods, options.maxMessageSize);
}

/** The parts of Node's parent port that are used here. */
interface ParentPort {
  on(type: "message", listener: (data: unknown) => void): void;
  off(type: "message", listener: (data: unknown) => void): void;
}

/** Features that some runtimes have and others lack. */
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
  if (scope.addEventListener) {
    const listener = ({ data }: MessageEvent) => {
      const start = startOf(data);
      if (!start) return;
      scope.removeEventListener!("message", listener);
      take(start);
    };
    return scope.addEventListener("message", listener);
  }
  const parent = scope.process?.getBuiltinModule?.("node:worker_threads")?.parentPort;
  const listener = (data: unknown) => {
    const start = startOf(data);
    if (!start) return;
    parent!.off("message", listener);
    take(start);
  };
  parent?.on("message", listener);
}
