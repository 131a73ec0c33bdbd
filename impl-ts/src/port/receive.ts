/**
 * Waits, in a worker, for the end of a port that its parent hands over. See `spec/port.md`.
 *
 * @module
 */

import { requireOptions, throwCannot } from "../error.ts";
import { Port } from "./port.ts";
import { isPortHandoff, type PortOptions } from "./options.ts";
import type { AttachOptions } from "../memory/segment.ts";

/**
 * Where a handoff may come from: a `MessagePort`, or the global scope of a web worker.
 *
 * @example
 * ```ts
 * import { type HandoffSource, Port, receivePort } from "@millrace/millrace";
 *
 * const { port1, port2 } = new MessageChannel();
 * const source: HandoffSource = port2;
 * using here = Port.create<string>();
 * port1.postMessage(here.handoff());
 * using there = await receivePort<string>({ source });
 * there.write("hello");
 * console.log(here.read()); // "hello"
 * port1.close();
 * ```
 */
export interface HandoffSource {
  /** Adds a listener to what is posted. */
  addEventListener(type: "message", listener: (event: { data: unknown }) => void): void;
  /** Removes the listener. */
  removeEventListener(type: "message", listener: (event: { data: unknown }) => void): void;
  /** Starts the delivery of a `MessagePort`, which has this method. */
  start?(): void;
}

/**
 * Options of `receivePort`.
 *
 * @example
 * ```ts
 * import { Port, receivePort, type ReceivePortOptions } from "@millrace/millrace";
 *
 * const { port1, port2 } = new MessageChannel();
 * const options: ReceivePortOptions<string> = { source: port2, codec: "text" };
 * using here = Port.create<string>({ codec: "text" });
 * port1.postMessage(here.handoff());
 * using there = await receivePort<string>(options);
 * there.write("hello");
 * console.log(here.read()); // "hello"
 * port1.close();
 * ```
 */
export type ReceivePortOptions<In, Out = In> = PortOptions<In, Out> & AttachOptions & {
  readonly side?: undefined;
  /** Where the handoff comes from: by default, the parent of this worker. */
  readonly source?: HandoffSource | undefined;
  /** Ends the wait: the promise then rejects with the signal's reason. */
  readonly signal?: AbortSignal | undefined;
};

/**
 * Waits in a worker until its parent posts the handoff of a port, and makes the worker's end of
 * that port, alike in workers of the web, of Deno, of Bun and of Node. Call it before the first
 * `await` of the worker's module, since a message that nobody listens to yet may be lost. Other
 * messages are left to other listeners. In a worker that gets several handoffs, listen yourself,
 * and use `Port.from`.
 *
 * @throws {TypeError} as a rejection, if this thread is no worker and no source is given.
 * @throws {SegmentError} as a rejection, if that end is taken, or the memory is none of a port.
 *
 * @example
 * ```ts
 * import { Port, receivePort } from "@millrace/millrace";
 *
 * const { port1, port2 } = new MessageChannel(); // in a worker, its parent and itself
 * const here = Port.create<string, number>();
 * port1.postMessage(here.handoff());
 *
 * const there = await receivePort<number, string>({ source: port2 });
 * here.write(21);
 * console.log(2 * there.read()!); // 42
 * port1.close();
 * ```
 */
export function receivePort<In = unknown, Out = In>(
  options: ReceivePortOptions<In, Out> = {},
): Promise<Port<In, Out>> {
  return new Promise((resolve, reject) => {
    const { source, signal, ...others } = requireOptions(options);
    signal?.throwIfAborted();
    const from = source ?? parentOf(globalThis as Scope);
    const stop = () => {
      from.removeEventListener("message", take);
      signal?.removeEventListener("abort", abort);
    };
    const abort = () => {
      stop();
      reject(signal?.reason);
    };
    const take = ({ data }: { data: unknown }) => {
      if (!isPortHandoff(data)) return;
      stop();
      try {
        resolve(Port.from<In, Out>(data, others));
      } catch (error) {
        reject(error);
      }
    };
    from.addEventListener("message", take);
    signal?.addEventListener("abort", abort);
    from.start?.();
  });
}

/** The parts of the global scope that differ between runtimes. */
type Scope = Partial<HandoffSource> & {
  WorkerGlobalScope?: unknown;
  process?: { getBuiltinModule?(name: string): { parentPort: HandoffSource | null } | undefined };
};

/** Where the messages of this worker's parent arrive: the global scope itself, or a port. */
function parentOf(scope: Scope): HandoffSource {
  const isOfWeb = scope.WorkerGlobalScope !== undefined;
  const port = isOfWeb
    ? scope
    : scope.process?.getBuiltinModule?.("node:worker_threads")?.parentPort;
  if (port) return port as HandoffSource;
  throwCannot("receive port: this thread is no worker, and no source is given");
}
