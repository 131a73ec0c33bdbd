/**
 * What differs between the places where JavaScript runs.
 *
 * @module
 */
import type { Gear, Order, Report } from "./peer.ts";
import type { StartOrder, StartReport } from "./start_program.ts";
import type { StartNote } from "./start_worker.ts";
import type { Note } from "./web_worker.ts";

/** A thread that plays one role after the other, and sleeps on its event loop in between. */
export interface Player {
  play(order: Order, gear: Gear): Promise<Report>;
  /** Ends the thread. */
  close(): void;
}

/** A worker that has nothing in it but the program of `start`. */
export interface Starter {
  /** Has it done once; gives up after so many milliseconds. */
  run(order: StartOrder, transfer: readonly Transferable[], ms: number): Promise<StartReport>;
  close(): void;
}

/** A place: Deno, Node or Chromium. The same object is made in the main thread and in workers. */
export interface Place {
  readonly name: "deno" | "node" | "chromium";
  readonly version: string;
  /** Starts a worker. Main thread only. */
  startPlayer(): Player;
  /** Starts a worker for `start`. Main thread only. */
  startStarter(): Starter;
  /** Has that done in a process of its own; the times in milliseconds. Not in a page. */
  startProcess?(order: StartOrder, ms: number): Promise<Record<string, number>>;
  /** The place of a module of our npm package. */
  packageUrl(file: string): string;
  /** The place of a module that is a worker of its own, for peers that start one. */
  moduleUrl(name: string): string;
  /** The bytes of a WebAssembly module; main thread only. */
  readWasm(name: string): Promise<Uint8Array<ArrayBuffer>>;
  /** Bytes of this thread's heap that are in use; `undefined` where that cannot be told. */
  heapUsed(): number | undefined;
  /** Milliseconds of processor time that this whole process has had; `undefined` as above. */
  processorTime(): number | undefined;
  /** The bytes of bundles with parts of the npm package, where they can be made. */
  measureSizes?(): Promise<Record<string, number>>;
  /** The folder of `sab-message-port`, if one was given. */
  readonly sabMessagePort: string | undefined;
}

/** Collects garbage where the place was started so that it can. */
export function collectGarbage(): boolean {
  const { gc } = globalThis as { gc?: () => void };
  gc?.();
  return gc !== undefined;
}

/** Starts a worker of this module. */
export function startWebPlayer(url: string | URL): Player {
  const worker = new Worker(url, { type: "module" });
  return {
    play: (order: Order, gear: Gear) =>
      new Promise<Report>((resolve, reject) => {
        worker.onmessage = ({ data }: MessageEvent<Note>) => {
          if ("report" in data) resolve(data.report);
          else reject(new Error(`In role ${order.role}: ${data.error}`));
        };
        worker.onerror = (event) => {
          event.preventDefault();
          reject(new Error(`In role ${order.role}: ${event.message}`));
        };
        worker.postMessage(order, [...gear.transfer ?? []]);
      }),
    close: () => worker.terminate(),
  };
}

/** Starts a worker of this module for `start`. */
export function startWebStarter(url: string | URL): Starter {
  const worker = new Worker(url, { type: "module" });
  return {
    run: (order, transfer, ms) =>
      new Promise((resolve, reject) => {
        const timer = setTimeout(() => reject(lateError(order.what, ms)), ms);
        worker.onmessage = ({ data }: MessageEvent<StartNote>) => {
          clearTimeout(timer);
          if ("error" in data) reject(new Error(`In ${order.what}: ${data.error}`));
          else resolve(data);
        };
        worker.onerror = (event) => {
          event.preventDefault();
          clearTimeout(timer);
          reject(new Error(`In ${order.what}: ${event.message}`));
        };
        worker.postMessage(order, [...transfer]);
      }),
    close: () => worker.terminate(),
  };
}

/** What is said of a program that does not end. */
export function lateError(what: string, ms: number): Error {
  return new Error(`In ${what}: nothing came for ${ms} ms`);
}
