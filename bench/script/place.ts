/**
 * What differs between the places where JavaScript runs.
 *
 * @module
 */
import type { Gear, Order, Report } from "./peer.ts";
import type { StartOrder, StartReport } from "./start_program.ts";

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
