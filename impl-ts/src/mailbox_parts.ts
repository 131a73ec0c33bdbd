/**
 * Payloads of a mailbox, cut into parts and put together again. See `spec/mailbox.md`.
 *
 * @module
 */

import { copyOut, decodeBatch, encodeBatch, makePayload, NO_BYTES } from "./codec.ts";
import { MessageError } from "./error.ts";
import * as layout from "./layout.ts";
import type { MailboxSide } from "./mailbox_side.ts";

/** A payload on its way, in parts of which `next` is the first that is not written. */
export interface Parts {
  source: Uint8Array;
  readonly size: number;
  readonly count: number;
  next: number;
}

/** A reader keeps this much memory for the next payload. */
const KEPT_SIZE = 64 * 1024;

/** Writes payloads, part by part. */
export class PartWriter {
  readonly side: MailboxSide;
  /** A payload of which a part is written, but not all. */
  owed: Parts | undefined;
  /** Whether the payload that was encoded last lies in memory of its own. */
  #isKept = true;

  constructor(side: MailboxSide) {
    this.side = side;
  }

  /**
   * Makes one payload of values of JSON, one at least. [mailbox.payload] `detach` it, unless all of
   * it is written before anything else is encoded.
   */
  encode(values: readonly unknown[]): Parts {
    const encoded = makePayload();
    encodeBatch(values, encoded);
    const { source, size, isKept } = encoded;
    this.#isKept = isKept;
    return { source, size, count: Math.ceil(size / this.side.bytes.length), next: 0 };
  }

  /** Copies the payload that was encoded last out of memory that is used again. */
  detach(parts: Parts): void {
    if (!this.#isKept) parts.source = copyOut(parts.source, 0, parts.size);
    this.#isKept = true;
  }

  /**
   * Writes the next part if the byte area is free, and returns whether the payload is complete.
   * One part at most: the caller looks at its deadline in between.
   */
  advance(parts: Parts): boolean {
    const { words, bytes } = this.side;
    if (!this.side.hasTurn()) return false; // [mailbox.write]
    const { source, size, count, next } = parts;
    const from = next * bytes.length; // [mailbox.full_parts]
    const part = source.subarray(from, Math.min(from + bytes.length, size));
    bytes.set(part);
    // [mailbox.metadata] [mailbox.parts]
    Atomics.store(words, layout.MAILBOX_PART_COUNT_WORD, count);
    Atomics.store(words, layout.MAILBOX_PART_INDEX_WORD, next);
    Atomics.store(words, layout.MAILBOX_LENGTH_WORD, part.length);
    parts.next++;
    if (!this.side.passTurn()) {
      this.owed = undefined;
      this.side.hasTurn(); // throws: it is closed
    }
    const done = parts.next === count;
    this.owed = done ? undefined : parts;
    return done;
  }
}

/** Reads payloads, part by part. */
export class PartReader {
  readonly side: MailboxSide;
  readonly #limit: number;
  /** The payload in progress: its first `#size` bytes, how many parts it has, and the next one. */
  #parts: Uint8Array = NO_BYTES;
  #size = 0;
  #count = 0;
  #next = 0;
  /** Whether the rest of that payload is dropped. */
  #dropping = false;

  constructor(side: MailboxSide, limit: number) {
    this.side = side;
    this.#limit = limit;
  }

  /** Takes the part that is there, and returns the messages of the payload that it completes. */
  take(): unknown[] | undefined {
    if (!this.side.hasTurn() || !this.#takePart()) return undefined;
    try {
      return decodeBatch(this.#parts.subarray(0, this.#size)); // [mailbox.bad_payload]
    } finally {
      this.drop();
    }
  }

  /** Forgets the parts that have come. */
  drop(): void {
    this.#size = 0;
    if (this.#parts.length > KEPT_SIZE) this.#parts = NO_BYTES;
  }

  /** Takes the part that is there, and returns whether it completes a payload. */
  #takePart(): boolean {
    const { words } = this.side;
    const length = Atomics.load(words, layout.MAILBOX_LENGTH_WORD) >>> 0;
    const count = Atomics.load(words, layout.MAILBOX_PART_COUNT_WORD) >>> 0;
    const index = Atomics.load(words, layout.MAILBOX_PART_INDEX_WORD) >>> 0;
    // [mailbox.read_status] The original may have closed, and written -1 into the words above.
    this.side.checkStatus(); // [mailbox.closed_part]
    this.#checkPart(length, count, index);
    const refused = !this.#dropping && !this.#collect(length); // [mailbox.copy]
    if (refused) this.drop();
    const dropped = this.#dropping ||= refused;
    const last = index + 1 === count;
    this.#count = count;
    this.#next = last ? 0 : index + 1;
    if (last) this.#dropping = false;
    // [mailbox.complete] A close that came meanwhile is found by the next call.
    this.side.passTurn();
    if (refused) { // [mailbox.limit]
      throw new MessageError("message.size", "Cannot read message: its payload is too large");
    }
    return last && !dropped;
  }

  /** [mailbox.check] */
  #checkPart(length: number, count: number, index: number): void {
    const { bytes } = this.side;
    if (length < 1 || length > bytes.length) {
      throw this.side.fail("mailbox.length", `a part of ${length} bytes`);
    }
    const counted = count >= 1 && count <= layout.MAILBOX_PART_COUNT_MAX;
    const isNext = index === this.#next && index < count;
    if (!counted || !isNext || (this.#next > 0 && count !== this.#count)) {
      const due = this.#next > 0 ? `${this.#next} of ${this.#count}` : "0";
      throw this.side.fail("mailbox.part", `part ${index} of ${count}, not ${due}`);
    }
  }

  /** Copies a part out. False if the payload is too large for the limit, or for the memory. */
  #collect(length: number): boolean {
    const size = this.#size + length;
    if (size > this.#limit || !this.#reserve(size)) return false;
    this.#parts.set(this.side.bytes.subarray(0, length), this.#size);
    this.#size = size;
    return true;
  }

  #reserve(size: number): boolean {
    if (size <= this.#parts.length) return true;
    try {
      // Twice as much as there is, whatever number of parts the peer announces: that costs nothing.
      const grown = new Uint8Array(Math.min(2 * size, this.#limit));
      grown.set(this.#parts.subarray(0, this.#size));
      this.#parts = grown;
      return true;
    } catch {
      return false;
    }
  }
}
