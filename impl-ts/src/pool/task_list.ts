/**
 * Lists of tasks and of results, which are the messages of a line between a pool and a worker.
 * Their bytes are lists of values as calls use them, codec `values`; see `spec/call.md`.
 *
 * The items of a list have consecutive numbers. Each item has a fixed number of values that both
 * ends know, for instance the name of a handler and a value. A single item is a list of one.
 *
 * @module
 */

import {
  decodeValue,
  type Manner,
  type Piece,
  pieceOf,
  writePieces,
  writeText,
} from "../call/values.ts";
import { type CodecTable, NO_BYTES } from "../codec/codec.ts";
import { NO_WORDS } from "../codec/payload.ts";
import { lostError } from "../error.ts";
import { layout } from "../memory/layout.ts";
import { type Send, setPayload } from "../pipe/outgoing.ts";

const HEADER_SIZE = layout.VALUES_HEADER_SIZE;
const ENTRY_SIZE = layout.VALUE_ENTRY_SIZE;
const ALIGN = layout.VALUES_ALIGN;
const COUNT_MAX = layout.VALUES_COUNT_MAX;
const CODEC_JSON = layout.CODEC_JSON;
const CODEC_WORD = layout.VALUE_CODEC_OFFSET >> 2;
/** Where the values of a list are gathered: after room for the largest header that it may get. */
const VALUES_OFFSET = HEADER_SIZE + COUNT_MAX * ENTRY_SIZE;
/** For lists of one item up to this size, one view of each size is kept. */
const KEPT_VIEW_SIZE = 64;
const DIGIT_0 = 0x30;

/**
 * The most bytes of a list with several items; an item that takes more is sent alone. So a list is
 * no more work for one worker than so many bytes of small tasks, and its copy stays in the
 * processor's cache.
 */
export const LIST_SIZE = 4096;

/** A value that has been looked at: to write it runs no application code. */
export type Part = number | undefined | Piece;

/**
 * Looks at a value, and prepares it for writing. May run application code.
 *
 * @throws {TypeError} if the value cannot be encoded.
 */
export function partOf(value: unknown, manner: Manner): Part {
  if (value === undefined || isUint32(value)) return value;
  return pieceOf(value, manner);
}

function isUint32(value: unknown): value is number {
  return typeof value === "number" && value >>> 0 === value;
}

/** Builds the lists that one end of a line writes. */
export class ListWriter {
  /** The number of values in the list. */
  #count = 0;
  /** The most bytes of the list; and the offset at which its last value ends. */
  readonly #most: number;
  #at = VALUES_OFFSET;
  /** Allocated for the first list. */
  #bytes = NO_BYTES;
  #words: Int32Array = NO_WORDS;
  readonly #entries: number[] = [];
  readonly #views: Uint8Array[] = [];

  /** Makes a writer with an empty list, for messages of at most `most` bytes. */
  constructor(most: number) {
    this.#most = Math.min(LIST_SIZE, most);
  }

  /** Whether the list has no values. */
  get isEmpty(): boolean {
    return this.#count === 0;
  }

  /** Whether there is certainly room for `count` more values of `size` bytes in total. */
  hasRoom(count: number, size: number): boolean {
    const after = this.#count + count;
    const all = HEADER_SIZE + after * ENTRY_SIZE + this.#at - VALUES_OFFSET + count * ALIGN + size;
    return after <= COUNT_MAX && all <= this.#most;
  }

  /** Adds a value, for which there must be room. */
  add(part: Part): void {
    if (this.#bytes.length === 0) {
      this.#bytes = new Uint8Array(VALUES_OFFSET + LIST_SIZE);
      this.#words = new Int32Array(this.#bytes.buffer);
    }
    const bytes = this.#bytes;
    let at = this.#at;
    for (; at % ALIGN !== 0; at++) bytes[at] = 0;
    const entry = this.#count++ << 1;
    let code = CODEC_JSON;
    let size = 0;
    if (typeof part === "number") size = writeDigits(bytes, at, part);
    else if (part) {
      code = part.code;
      size = writePiece(bytes, at, part);
    }
    this.#entries[entry] = size;
    this.#entries[entry + 1] = code;
    this.#at = at + size;
  }

  /**
   * Makes the list the payload of a message, which is valid until the next `add`, and begins a new
   * list.
   */
  take(send: Send): void {
    const from = VALUES_OFFSET - HEADER_SIZE - this.#count * ENTRY_SIZE;
    const size = this.#at - from;
    const words = this.#words;
    let word = from >> 2;
    words[word++] = this.#count;
    words[word++] = 0;
    const end = this.#count << 1;
    for (let index = 0; index < end; index++) words[word++] = this.#entries[index]!;
    const isOne = this.#count === 1 && size <= KEPT_VIEW_SIZE;
    const view = isOne
      ? this.#views[size] ??= this.#bytes.subarray(from, from + size)
      : this.#bytes.subarray(from, from + size);
    setPayload(send, layout.CODEC_VALUES, view, false);
    this.#count = 0;
    this.#at = VALUES_OFFSET;
  }
}

/** The most bytes that a value may take when it is written. */
export function sizeOf(part: Part): number {
  if (part === undefined) return 0;
  if (typeof part === "number") return 10;
  return part.bytes ? part.bytes.length : 3 * part.text.length;
}

/** Encodes an item that is too large for a list with others. */
export function writeAlone(parts: readonly Part[], send: Send): void {
  writePieces(parts.map(pieceOfPart), send);
}

function pieceOfPart(part: Part): Piece {
  if (typeof part === "object") return part;
  return { code: CODEC_JSON, text: part === undefined ? "" : String(part), bytes: undefined };
}

function writePiece(target: Uint8Array, at: number, { text, bytes }: Piece): number {
  if (!bytes) return writeText(target, at, text);
  target.set(bytes, at);
  return bytes.length;
}

/** Writes an integer from 0 to 2^32 - 1 as JSON. Returns its number of digits. */
function writeDigits(target: Uint8Array, at: number, integer: number): number {
  let size = 1;
  for (let left = integer; left > 9; size++) left = Math.floor(left / 10);
  for (let to = at + size - 1, left = integer; to >= at; to--) {
    const tens = Math.floor(left / 10);
    target[to] = DIGIT_0 + left - 10 * tens;
    left = tens;
  }
  return size;
}

/** Throws if an item, or a marked message, has more bytes than the limit. [pipe.limit] */
export function requireSize(size: number, limit: number): void {
  if (size <= limit) return;
  throw lostError("message.size", `it has ${size} bytes, and maxMessageSize is ${limit}`);
}

/** Reads the lists that one end of a line receives. One object reads all lists of that end. */
export class ListReader {
  /** The number of items in the list. */
  itemCount = 0;
  readonly #width: number;
  readonly #limit: number;
  readonly #table: CodecTable;
  #bytes = NO_BYTES;
  #words: Int32Array = NO_WORDS;
  /** The index of the next value, and the offset at which the value before it ends. */
  #next = 0;
  #at = 0;
  /** The offset at which the values of the item begin. */
  #itemAt = 0;

  /** Makes a reader for items of `width` values, and of at most `limit` bytes as a list of one. */
  constructor(width: number, limit: number, table: CodecTable) {
    this.#width = width;
    this.#limit = limit;
    this.#table = table;
  }

  /**
   * Begins to read a list in private memory. Checks its header and all its entries.
   *
   * @throws {MessageError} for the first check that fails. [call.values_check]
   */
  open(bytes: Uint8Array, words: Int32Array, size: number): void {
    const count = size < HEADER_SIZE ? 0 : words[0]!;
    const end = HEADER_SIZE + count * ENTRY_SIZE;
    const isHeader = count >= 1 && count <= COUNT_MAX && words[1] === 0 && end <= size;
    if (!isHeader || count % this.#width !== 0) throw lostError("message.values", "it is no list");
    let at = end;
    for (let word = HEADER_SIZE >> 2; word < end >> 2; word += ENTRY_SIZE >> 2) {
      const code = words[word + CODEC_WORD]! >>> 0;
      const isList = code === layout.CODEC_JSON_BATCH || code === layout.CODEC_VALUES;
      at += (-at & (ALIGN - 1)) + (words[word]! >>> 0); // stays below 2^53: no overflow
      if (code > 0xff || isList || at > size) {
        throw lostError("message.values", "a value cannot be");
      }
    }
    if (at !== size) throw lostError("message.values", "something stands after it");
    this.itemCount = count / this.#width;
    this.#bytes = bytes;
    this.#words = words;
    this.#next = 0;
    this.#at = end;
  }

  /** Goes to an item; the values before it may have been read or not. */
  goTo(item: number): void {
    while (this.#next < item * this.#width) this.#pass();
    this.#itemAt = this.#at + (-this.#at & (ALIGN - 1));
  }

  /**
   * Reads the next value of the item. @throws {MessageError} if it cannot be read or is too large.
   */
  read(): unknown {
    const entry = (HEADER_SIZE >> 2) + this.#next * (ENTRY_SIZE >> 2);
    const size = this.#words[entry]! >>> 0;
    const at = this.#pass();
    // [pipe.limit] With its last value, the size that the item would have as a list of one is
    // known.
    if (this.#next % this.#width === 0) this.#checkSize();
    return decodeValue(this.#bytes, at, size, this.#words[entry + CODEC_WORD]!, this.#table);
  }

  /** Skips the next value, and returns the offset at which it begins. */
  #pass(): number {
    const entry = (HEADER_SIZE >> 2) + this.#next * (ENTRY_SIZE >> 2);
    const at = this.#at + (-this.#at & (ALIGN - 1));
    this.#at = at + (this.#words[entry]! >>> 0);
    this.#next++;
    return at;
  }

  #checkSize(): void {
    requireSize(HEADER_SIZE + this.#width * ENTRY_SIZE + this.#at - this.#itemAt, this.#limit);
  }
}
