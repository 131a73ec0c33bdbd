/**
 * One call that is served: its context, and the steps of a result in several pieces. See
 * `spec/call.md`.
 *
 * @module
 */

import type { CallContext } from "./context.ts";
import { CallError } from "./error.ts";
import { layout } from "../memory/layout.ts";

/** What a generator is to whoever takes its items. */
export interface Steps {
  next(): unknown;
  return?(value?: unknown): unknown;
}

/** A call, or a notice, from its arrival until its answer is in the ring. */
export class Served implements CallContext {
  /** 0 for a notice. */
  readonly id: number;
  /** Its list of values, until it begins; and how many bytes that has. */
  payload: Uint8Array;
  readonly size: number;
  hasBegun = false;
  /** Whether it was given up. */
  isTold = false;
  /** Whether it was answered, or cannot be any more. */
  isDone = false;
  /** What gives the items, how many may be written, and whether one is asked for. */
  steps: Steps | undefined;
  room: number = layout.CALL_WINDOW;
  isStepping = false;
  /** Whether it is seen to that it goes on, and whether an item is accepted and not in the ring. */
  isStepDue = false;
  isPlacing = false;
  /** An item for which there is no room yet. */
  next: { readonly value: unknown } | undefined;
  /** Counts what its method, or a step, has left for later, and that it has come. */
  turn = 0;
  #abort: AbortController | undefined;

  /** Makes one that has arrived. */
  constructor(id: number, payload: Uint8Array) {
    this.id = id;
    this.payload = payload;
    this.size = payload.length;
  }

  get isNotice(): boolean {
    return this.id === 0;
  }

  get signal(): AbortSignal {
    // Mostly nobody asks for it.
    this.#abort ??= new AbortController();
    if (this.isTold) this.tell();
    return this.#abort.signal;
  }

  /** Has its method know that it was given up. Runs code of the application's. */
  tell(): void {
    this.isTold = true;
    this.#abort?.abort(new CallError("call.cancelled", "The call was given up by its caller"));
  }
}

/** Whether a result is to be sent in pieces: what a generator gives, and what streams are. */
export function isInPieces(value: unknown): value is object {
  if (!value || typeof value !== "object") return false;
  const { next } = value as { next?: unknown };
  return Symbol.asyncIterator in value || (typeof next === "function" && Symbol.iterator in value);
}

/** What gives the pieces of such a result. */
export function stepsOf(value: object): Steps {
  const later = value as { [Symbol.asyncIterator]?: () => Steps };
  return later[Symbol.asyncIterator]?.() ?? value as Steps;
}

/** Whether a value comes later. */
export function isLater(value: unknown): value is PromiseLike<unknown> {
  return !!value && typeof value === "object" &&
    typeof (value as { then?: unknown }).then === "function";
}
