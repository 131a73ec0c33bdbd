/**
 * The caller's memory, into which messages are read. See `spec/pipe.md`.
 *
 * @module
 */

import { NO_WORDS } from "./codec.ts";

/** Largest array of which a view is kept for the next read. */
const KEPT_SIZE = 4096;

/** The array that was read into last, if it is small, and a view of its words. */
export class KeptTarget {
  #target: Uint8Array | undefined;
  #words: Int32Array = NO_WORDS;

  /** A view of the words of an array that the last read was into too, and is small; else none. */
  wordsOf(target: Uint8Array): Int32Array {
    if (target !== this.#target) {
      this.#target = target.length > KEPT_SIZE ? undefined : target;
      return this.#words = NO_WORDS;
    }
    // Memory that grows or shrinks changes the array, and a view of it, each in its own way.
    const { length, byteOffset } = target;
    if (this.#words.length !== length >> 2 && (byteOffset & 3) === 0) {
      this.#words = new Int32Array(target.buffer, byteOffset, length >> 2);
    }
    return this.#words;
  }
}
