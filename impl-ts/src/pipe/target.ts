/**
 * The caller's memory, into which messages are read. See `spec/pipe.md`.
 *
 * @module
 */

import { NO_WORDS } from "../codec/codec.ts";

/** The largest array, in bytes, of which a view is kept for the next read. */
const KEPT_SIZE = 4096;

/** The array that was last read into, if it is small, and a view of it as words. */
export class KeptTarget {
  #target: Uint8Array | undefined;
  #words: Int32Array = NO_WORDS;

  /** Returns `target` as words, if it is small and the last read was into it too; else no words. */
  wordsOf(target: Uint8Array): Int32Array {
    if (target !== this.#target) {
      this.#target = target.length > KEPT_SIZE ? undefined : target;
      return this.#words = NO_WORDS;
    }
    // If the memory grows or shrinks, the array and a view of it change in different ways.
    const { length, byteOffset } = target;
    if (this.#words.length !== length >> 2 && (byteOffset & 3) === 0) {
      this.#words = new Int32Array(target.buffer, byteOffset, length >> 2);
    }
    return this.#words;
  }
}
