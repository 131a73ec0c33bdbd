/**
 * The error of a pool that has not run a task.
 *
 * @module
 */

import { MillraceError } from "../error.ts";

/**
 * The codes of a `PoolError`.
 *
 * @example
 * ```ts
 * import type { PoolReason } from "@millrace/millrace/pool";
 *
 * const mayTryAgain: PoolReason[] = ["pool.died"];
 * console.log(mayTryAgain.length); // 1
 * ```
 */
export type PoolReason = "pool.start" | "pool.died" | "pool.closed" | "pool.aborted";

/**
 * A task was not run to its end: its worker died while it ran (`pool.died`), no worker can be
 * started (`pool.start`), the pool was aborted (`pool.aborted`), or the pool was closed before
 * (`pool.closed`). An error that the handler throws becomes a `CallError` instead.
 *
 * @example
 * ```ts
 * import { Pool, PoolError } from "@millrace/millrace/pool";
 *
 * const source = "throw new Error('not today')";
 * const url = URL.createObjectURL(new Blob([source], { type: "text/javascript" }));
 * const pool = new Pool(url, { most: 1 });
 * const error = await pool.run(1).catch((error) => error);
 * console.log(error instanceof PoolError && error.code); // pool.start
 * await pool.close();
 * ```
 */
export class PoolError extends MillraceError {
  /** The name, which a bundler would shorten. @internal */
  static override readonly name: string = "PoolError";

  /** The name of the class. */
  override name = "PoolError";

  /** Makes the error for one of these codes. */
  constructor(code: PoolReason, message: string, options?: ErrorOptions) {
    super(code, message, options);
  }
}
