/**
 * Keeps one testee running, and starts it again when it has broken down.
 *
 * @module
 */

import { Connection } from "./connection.ts";
import type { Link } from "./link.ts";

/** A place for one testee. */
export class Seat<L extends Link = Link> {
  readonly #start: () => L;
  #link: L | undefined;
  #connection: Connection | undefined;
  #starting: Promise<Connection> | undefined;

  constructor(start: () => L) {
    this.#start = start;
  }

  /** The link of the testee that runs. */
  get link(): L | undefined {
    return this.#link;
  }

  /** Starts the testee where it does not run. Throws `Trouble` where it will not. */
  async take(): Promise<Connection> {
    if (this.#connection !== undefined) return this.#connection;
    this.#starting ??= this.#open().finally(() => this.#starting = undefined);
    return await this.#starting;
  }

  /** Ends it; the next `take` starts another. */
  async kill(): Promise<void> {
    const link = this.#link;
    this.#connection = this.#link = undefined;
    await link?.kill();
  }

  async #open(): Promise<Connection> {
    this.#link = this.#start();
    return this.#connection = await Connection.start(this.#link);
  }
}
