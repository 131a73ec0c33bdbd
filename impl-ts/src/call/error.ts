/**
 * How a call fails that was made, as an error. See `spec/call.md`.
 *
 * @module
 */

import { MillraceError, type ReasonCode } from "../error.ts";

/**
 * What a `CallError` has beside its code and its text.
 *
 * @example
 * ```ts
 * import { CallError, type CallErrorOptions } from "@millrace/millrace/call";
 *
 * const options: CallErrorOptions = { name: "RangeError", data: { most: 7 } };
 * console.log(new CallError("call.thrown", "too many", options).data); // { most: 7 }
 * ```
 */
export interface CallErrorOptions extends ErrorOptions {
  /** The name of the error that the method threw. */
  readonly name?: string | undefined;
  /** What crosses beside it: any value that a call can carry. */
  readonly data?: unknown;
}

/**
 * A call has failed: codes `call.*`, and `message.*` where the call, or its answer, was no good.
 *
 * With `call.thrown` the method has thrown: `name` is the name of its error, `message` the text,
 * and `data` what that had as its property `data`. Of any other code, the name is `CallError`. A
 * method throws one with `call.arguments` to refuse what it was given.
 *
 * @example
 * ```ts
 * import { Port } from "@millrace/millrace";
 * import { CallError, remote, serve } from "@millrace/millrace/call";
 *
 * const api = {
 *   divide(a: number, b: number) {
 *     if (b === 0) throw new RangeError("by nothing");
 *     return a / b;
 *   },
 * };
 * using here = Port.create();
 * using there = Port.attach(here.memory); // usually in another thread
 * serve(there, api);
 * const error = await remote<typeof api>(here).divide(1, 0).catch((error) => error);
 * console.log(error instanceof CallError); // true
 * console.log(error.code, error.name, error.message); // call.thrown RangeError by nothing
 * ```
 */
export class CallError extends MillraceError {
  /** The name, which a bundler would shorten. @internal */
  static override readonly name: string = "CallError";

  /** The name of the error on the other side, if a method has thrown it; or else of the class. */
  declare name: string;
  /** The name that came with the error: that of the method's error, or a code. */
  declare readonly remoteName: string | undefined;
  /** What came beside it. */
  declare readonly data: unknown;

  /** Makes an error with a code and a text, which is its message as it stands. */
  constructor(code: ReasonCode, text: string, options: CallErrorOptions = {}) {
    super(code, text, options);
    this.message = text;
    this.remoteName = options.name;
    this.name = code === "call.thrown" && options.name || "CallError";
    this.data = options.data;
  }
}
