/**
 * Cuts the payloads of a mailbox into parts, and joins them again. See `spec/mailbox.md`.
 *
 * @module
 */

import { copyOut, decodeBatch, NO_BYTES } from "../codec/codec.ts";
import { layout } from "../memory/layout.ts";
import type { MailboxSide } from "./side.ts";
import { lostError } from "../error.ts";

/** A payload that is being written. `next` is the first of its `count` parts that is unwritten. */
export interface Parts {
  source: Uint8Array;
  readonly size: number;
  readonly count: number;
  next: number;
}

/** A reader keeps at most this many bytes of memory for the next payload. */
const KEPT_SIZE = 64 * 1024;

/** Writes payloads, part by part. */
export class PartWriter {
  readonly side: MailboxSide;
  /** The payload of which some part is written, but not the last. */
  owed: Parts | undefined;
  /** Whether the payload that was begun last lies in memory of its own. */
  #isKept = true;

  constructor(side: MailboxSide) {
    this.side = side;
  }

  /**
   * Begins a payload. [mailbox.payload] The caller must `detach` it, unless it is `isKept` or it is
   * written before anything else is encoded.
   */
  begin(source: Uint8Array, isKept: boolean): Parts {
    this.#isKept = isKept;
    const size = source.length;
    return { source, size, count: Math.ceil(size / this.side.bytes.length), next: 0 };
  }

  /**
   * Copies the payload that was begun last out of memory that the next one may use.
   */
  detach(parts: Parts): void {
    if (!this.#isKept) parts.source = copyOut(parts.source, 0, parts.size);
    this.#isKept = true;
  }

  /**
   * Writes the next part if the byte area is free: of the payload that is owed, if there is one,
   * and otherwise of `due`. Returns whether all of both is written. [mailbox.write_all] It writes
   * at most one part, so that the caller can check its deadline between two parts.
   */
  advance(due: Parts | undefined): boolean {
    const { words, bytes } = this.side;
    const parts = this.owed ?? due;
    if (!parts) return true;
    if (!this.side.checkTurn()) return false; // [mailbox.write]
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
      this.side.checkTurn(); // throws, as the mailbox is closed
    }
    const done = parts.next === count;
    this.owed = done ? undefined : parts;
    return done && (!due || parts === due);
  }
}

/** Reads payloads, part by part. */
export class PartReader {
  readonly side: MailboxSide;
  readonly #limit: number;
  /** The payload in progress: its first `#size` bytes, its number of parts, and its next part. */
  #parts: Uint8Array = NO_BYTES;
  #size = 0;
  #count = 0;
  #next = 0;
  /** Whether the rest of that payload is dropped as it arrives. */
  #dropping = false;

  constructor(side: MailboxSide, limit: number) {
    this.side = side;
    this.#limit = limit;
  }

  /**
   * Takes the part that is there. Returns the messages of the payload if that part completes it.
   */
  take(): unknown[] | undefined {
    if (!this.side.checkTurn() || !this.#takePart()) return undefined;
    try {
      return decodeBatch(this.#parts.subarray(0, this.#size)); // [mailbox.bad_payload]
    } finally {
      this.drop();
    }
  }

  /** Forgets the parts collected so far. */
  drop(): void {
    this.#size = 0;
    if (this.#parts.length > KEPT_SIZE) this.#parts = NO_BYTES;
  }

  /**
   * Takes the part that is there. Returns whether it completes a payload that is to be delivered.
   */
  #takePart(): boolean {
    const { words } = this.side;
    const length = Atomics.load(words, layout.MAILBOX_LENGTH_WORD) >>> 0;
    const count = Atomics.load(words, layout.MAILBOX_PART_COUNT_WORD) >>> 0;
    const index = Atomics.load(words, layout.MAILBOX_PART_INDEX_WORD) >>> 0;
    // [mailbox.read_status] The original may be closing, and have written -1 into the words above.
    this.side.checkStatus(); // [mailbox.closed_part]
    this.#checkPart(length, count, index);
    const refused = !this.#dropping && !this.#collect(length); // [mailbox.copy]
    if (refused) this.drop();
    const dropped = this.#dropping ||= refused;
    const last = index + 1 === count;
    this.#count = count;
    this.#next = last ? 0 : index + 1;
    if (last) this.#dropping = false;
    // [mailbox.complete] If the mailbox was closed meanwhile, the next call finds that out.
    this.side.passTurn();
    if (refused) { // [mailbox.limit]
      throw lostError("message.size", "its payload is too large");
    }
    return last && !dropped;
  }

  /** Checks the three words of a part against the parts before. [mailbox.check] */
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

  /** Copies a part out. Returns false if the payload exceeds the limit or the available memory. */
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
      // Grows by doubling, whatever number of parts the peer announces: an announcement costs no
      // memory.
      const grown = new Uint8Array(Math.min(2 * size, this.#limit));
      grown.set(this.#parts.subarray(0, this.#size));
      this.#parts = grown;
      return true;
    } catch {
      return false;
    }
  }
}
