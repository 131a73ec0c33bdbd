/**
 * Who has rung an endpoint, so that one with many peers looks at those alone. See `spec/wait.md`,
 * "Which ring rang".
 *
 * @module
 */

import * as layout from "./layout.ts";
import type { Segment } from "./segment.ts";
import type { Waitable } from "./wait.ts";

/** The bits of one record that were taken out of it, for one who looks. */
export class Rung {
  readonly #words: Int32Array;
  readonly #first: number;
  readonly #bits: Int32Array;

  /** For the record of one endpoint; bits of such as the segment does not have mean nobody. */
  constructor({ records, endpointCount }: Segment, index: number) {
    this.#words = records;
    this.#first = index * (layout.ENDPOINT_RECORD_SIZE >> 2) + layout.ENDPOINT_RUNG_WORD;
    this.#bits = new Int32Array(Math.ceil(endpointCount / 32));
  }

  /** Takes the bits, behind a load of the bell. [wait.rung_take] */
  take(): void {
    const words = this.#words;
    for (let index = 0; index < this.#bits.length; index++) {
      const at = this.#first + index;
      // Most are 0, which a load finds out for less.
      this.#bits[index] = Atomics.load(words, at) === 0 ? 0 : Atomics.exchange(words, at, 0);
    }
  }

  /** Whether an endpoint was among those that rang. */
  has(endpoint: number): boolean {
    return (this.#bits[endpoint >> 5]! & (1 << (endpoint & 31))) !== 0;
  }

  /** Whether what is waited for may have come, or its peer's state have changed. */
  names({ peer, parts }: Waitable): boolean {
    return parts === undefined ? this.has(peer) : parts.some((part) => this.names(part));
  }
}
