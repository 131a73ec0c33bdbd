/**
 * What a scenario may use besides the library: nothing that only one place has.
 *
 * @module
 */
import { MillraceError, type ReasonCode } from "millrace";
import type { WorkerLike } from "millrace/supervise";

/** What a scenario's `main.ts` gets: the place it plays in. */
export interface Stage {
  /**
   * Starts the scenario's worker. Its function is called once, with the first message posted to
   * the actor.
   */
  start(): Actor;
  /**
   * Starts the scenario's `alone.ts`, a worker with nothing of the stage in it. With data, it is
   * started with that as its `workerData`; undefined if workers of this place have none.
   */
  startAlone(data?: unknown): Lonely | undefined;
  /** The address of the scenario's `processor.ts`, in a page. */
  readonly processor?: string;
}

/** A worker that runs a scenario's `alone.ts`. */
export interface Lonely {
  postMessage(message: unknown): void;
  terminate(): unknown;
}

/** The scenario's worker, seen from the main thread. */
export interface Actor {
  /** What the worker's function returned, at last; rejects with what it threw. */
  readonly result: Promise<unknown>;
  /** Sends the message that starts the worker's function. */
  postMessage(message: unknown, transfer?: Transferable[]): void;
  /** Ends the worker from outside, wherever it stands. */
  terminate(): void;
  /** The worker itself, as this place has it. */
  readonly worker: WorkerLike;
}

/** The default export of `main.ts`. The scenario fails if it throws. */
export type MainPart = (stage: Stage) => void | Promise<void>;

/** The default export of `worker.ts`. */
export type WorkerPart<Given> = (given: Given) => unknown;

/**
 * The default export of `processor.ts`: it is called once, with what the node was given, and what
 * it returns for each block of samples, which must be filled, until that returns a value. All of
 * that is in the scope of an audio worklet, which has no timers, no text and no clock.
 */
export type ProcessorPart<Given> = (given: Given) => (samples: Float32Array) => unknown;

/** A scenario may fake these. */
const { setTimeout, clearTimeout } = globalThis;

/** Bounds every wait of a scenario: only one that hangs gets there. */
export const WAIT = { timeout: 10_000 } as const;

/** Bounds a wait that has no timeout of its own. */
export function within<T>(promise: Promise<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error("It did not come in time")), WAIT.timeout);
    promise.finally(() => clearTimeout(timer)).then(resolve, reject);
  });
}

/** Fails unless both are the same values; typed arrays count as what they hold. */
export function assertEquals(actual: unknown, expected: unknown): void {
  const [got, wanted] = [show(actual), show(expected)];
  if (got !== wanted) throw new Error(`Expected ${wanted}, got ${got}`);
}

/** Fails unless the call throws, or rejects with, an error of this code; returns the error. */
export async function assertFails(
  code: ReasonCode,
  call: () => unknown,
): Promise<MillraceError> {
  let value: unknown;
  try {
    value = await call();
  } catch (error) {
    if (error instanceof MillraceError && error.code === code) return error;
    throw new Error(`Expected ${code}, got ${error}`, { cause: error });
  }
  throw new Error(`Expected ${code}, got the value ${show(value)}`);
}

/** Enough for what scenarios compare. `undefined` and views are no JSON. */
function show(value: unknown): string {
  return JSON.stringify(value, (_key, part) => {
    if (part === undefined) return "<undefined>";
    return ArrayBuffer.isView(part) ? `<bytes ${new Uint8Array(part.buffer)}>` : part;
  });
}
