/**
 * Why a pool has not run a task, as an error.
 *
 * @module
 */

import { MillraceError } from "./error.ts";

/**
 * What a `PoolError` tells.
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
 * A task was not run to its end: its worker died of it (`pool.died`), no worker can be started
 * (`pool.start`), the pool was aborted (`pool.aborted`), or closed before (`pool.closed`). What the
 * handler throws is a `CallError`.
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
  /** The name of the class. */
  override name = "PoolError";

  /** Makes the error. */
  constructor(code: PoolReason, message: string, options?: ErrorOptions) {
    super(code, message, options);
  }
}
