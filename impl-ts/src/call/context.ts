/**
 * What a method that is served can ask about the call that it serves.
 *
 * @module
 */

/**
 * About the call that a method serves.
 *
 * @example
 * ```ts
 * import { type CallContext, callContext } from "@millrace/millrace/call";
 *
 * // Rejects when nobody waits for the method any more.
 * function orStop({ signal }: CallContext): Promise<never> {
 *   return new Promise((_, reject) =>
 *     signal.addEventListener("abort", () => reject(signal.reason))
 *   );
 * }
 * console.log(callContext() === undefined, typeof orStop); // true function
 * ```
 */
export interface CallContext {
  /**
   * Aborts when the caller gives the call up: its deadline has passed, its own signal was aborted,
   * it has left the loop over the result; or when no answer can be written any more.
   */
  readonly signal: AbortSignal;
  /** Whether it is a notice, which nobody waits for. */
  readonly isNotice: boolean;
}

let current: CallContext | undefined;

/**
 * The call that the method on top of this thread's stack serves; undefined outside of one. To be
 * asked before the first `await` of the method, as what runs then may be anybody's.
 *
 * @example
 * ```ts
 * import { Port } from "@millrace/millrace";
 * import { callContext, remote, serve } from "@millrace/millrace/call";
 *
 * const api = {
 *   async load(url: string): Promise<string> {
 *     const { signal } = callContext()!;
 *     await new Promise((resolve) => signal.addEventListener("abort", resolve));
 *     return `${url} was not loaded`;
 *   },
 * };
 * using here = Port.create();
 * using there = Port.attach(here.memory); // usually in another thread
 * serve(there, api);
 * const call = remote<typeof api>(here).with({ timeout: 10 }).load("data:,");
 * console.log(await call.catch((error) => error.code)); // wait.timeout
 * ```
 */
export function callContext(): CallContext | undefined {
  return current;
}

/** Runs a method, or a step of one, with its context. */
export function runWith<R>(context: CallContext, work: () => R): R {
  const before = current;
  current = context;
  try {
    return work();
  } finally {
    current = before;
  }
}
