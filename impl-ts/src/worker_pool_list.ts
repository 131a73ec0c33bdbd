/**
 * Lists of tasks, and of results: what the messages of a line between a pool and a worker hold. As
 * bytes, they are lists of values as calls have them, codec `values`; see `spec/call.md`.
 *
 * The items of a list are numbered one behind the other. An item is as many values as both ends
 * know, the name of its handler and a value for instance. One alone is a list of one.
 *
 * @module
 */

import { decodeValue, type Manner, type Piece, pieceOf, writePieces } from "./call_values.ts";
import type { CodecTable, Payload } from "./codec.ts";
import { NO_BYTES, NO_WORDS, takeBytes } from "./codec.ts";
import { lost } from "./error.ts";
import * as layout from "./layout.ts";

const HEADER_SIZE = layout.VALUES_HEADER_SIZE;
const ENTRY_SIZE = layout.VALUE_ENTRY_SIZE;
const ALIGN = layout.VALUES_ALIGN;
const COUNT_MAX = layout.VALUES_COUNT_MAX;
const CODEC_JSON = layout.CODEC_JSON;
const CODEC_WORD = layout.VALUE_CODEC_OFFSET >> 2;
/** Where the values of a list are gathered: behind the largest header that they may get. */
const VALUES_OFFSET = HEADER_SIZE + COUNT_MAX * ENTRY_SIZE;
/** Lists up to so many bytes are seen through views that are kept, of each size. */
const KEPT_VIEW_SIZE = 64;
const DIGIT_0 = 0x30;
/** Texts up to so many characters are copied by a loop: see `call_values.ts`. */
const SHORT_COUNT = 32;

/**
 * Most bytes of a list of several items. What takes more goes alone. A list is no longer work for
 * one worker than so many small tasks are, and its copy stays in the cache of a processor.
 */
export const LIST_SIZE = 4096;

/** A value that was looked at, behind which no code of the application's runs any more. */
export type Part = number | undefined | Piece;

/**
 * Looks at a value. May run the application's code.
 *
 * @throws {TypeError} if it cannot be carried.
 */
export function partOf(value: unknown, manner: Manner): Part {
  if (value === undefined || isDigits(value)) return value;
  return pieceOf(value, manner);
}

function isDigits(value: unknown): value is number {
  return typeof value === "number" && value >>> 0 === value;
}

/** The list that is being written on one end of a line. */
export class ListWriter {
  /** Values that are in it. */
  #count = 0;
  /** Most bytes of it; and where the next value begins, behind zeros up to its alignment. */
  readonly #most: number;
  #at = VALUES_OFFSET;
  /** Made when the first list is. */
  #bytes = NO_BYTES;
  #words: Int32Array = NO_WORDS;
  readonly #entries: number[] = [];
  readonly #views: Uint8Array[] = [];

  /** Makes one without a value, for messages of so many bytes at most. */
  constructor(most: number) {
    this.#most = Math.min(LIST_SIZE, most);
  }

  /** Whether there is nothing in it. */
  get isEmpty(): boolean {
    return this.#count === 0;
  }

  /** Whether there surely is room for so many values behind those in it, of so many bytes. */
  hasRoom(count: number, size: number): boolean {
    const after = this.#count + count;
    const all = HEADER_SIZE + after * ENTRY_SIZE + this.#at - VALUES_OFFSET + count * ALIGN + size;
    return after <= COUNT_MAX && all <= this.#most;
  }

  /** Adds a value, for which there is room. */
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
    else if (part !== undefined) {
      code = part.code;
      size = writePiece(bytes, at, part);
    }
    this.#entries[entry] = size;
    this.#entries[entry + 1] = code;
    this.#at = at + size;
  }

  /** Hands the list out, as a payload that lasts until something is added; and begins anew. */
  take(payload: Payload): void {
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
    takeBytes(view, layout.CODEC_VALUES, payload, false);
    this.#count = 0;
    this.#at = VALUES_OFFSET;
  }
}

/** The most bytes that a value may take. */
export function sizeOf(part: Part): number {
  if (part === undefined) return 0;
  if (typeof part === "number") return 10;
  return part.bytes === undefined ? 3 * part.text.length : part.bytes.length;
}

/** Writes an item that is too large for a list with others. */
export function writeAlone(parts: readonly Part[], payload: Payload): void {
  writePieces(parts.map(pieceOfPart), payload);
}

function pieceOfPart(part: Part): Piece {
  if (typeof part === "object") return part;
  return { code: CODEC_JSON, text: part === undefined ? "" : String(part), bytes: undefined };
}

let encoder: TextEncoder | undefined;

function writePiece(target: Uint8Array, at: number, { text, bytes }: Piece): number {
  if (bytes !== undefined) {
    target.set(bytes, at);
    return bytes.length;
  }
  const { length } = text;
  if (length <= SHORT_COUNT) {
    let index = 0;
    for (; index < length; index++) {
      const unit = text.charCodeAt(index);
      if (unit >= 0x80) break;
      target[at + index] = unit;
    }
    if (index === length) return length;
  }
  encoder ??= new TextEncoder();
  return encoder.encodeInto(text, target.subarray(at)).written;
}

/** Writes an integer from 0 below 2^32, as JSON has it. */
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

/** Throws for more bytes than an item, or a message that is no list, may have. [pipe.limit] */
export function requireSize(size: number, limit: number): void {
  if (size <= limit) return;
  throw lost("message.size", `it has ${size} bytes, and maxMessageSize is ${limit}`);
}

/** The list that is being read on one end of a line. One object for all lists of that end. */
export class ListReader {
  /** Items of the list. */
  itemCount = 0;
  readonly #width: number;
  readonly #limit: number;
  readonly #table: CodecTable;
  #bytes = NO_BYTES;
  #words: Int32Array = NO_WORDS;
  /** The next value, and where the one before it ends. */
  #next = 0;
  #at = 0;
  /** Where the values of the item begin. */
  #itemAt = 0;

  /** For items of so many values, and of so many bytes at most as a list of one. */
  constructor(width: number, limit: number, table: CodecTable) {
    this.#width = width;
    this.#limit = limit;
    this.#table = table;
  }

  /**
   * Begins to read a list, of private memory. Checks its header and all entries.
   *
   * @throws {MessageError} of the first check that fails. [call.values_check]
   */
  open(bytes: Uint8Array, words: Int32Array, size: number): void {
    const count = size < HEADER_SIZE ? 0 : words[0]!;
    const end = HEADER_SIZE + count * ENTRY_SIZE;
    const isHeader = count >= 1 && count <= COUNT_MAX && words[1] === 0 && end <= size;
    if (!isHeader || count % this.#width !== 0) throw lost("message.values", "it is no list");
    let at = end;
    for (let word = HEADER_SIZE >> 2; word < end >> 2; word += ENTRY_SIZE >> 2) {
      const code = words[word + CODEC_WORD]! >>> 0;
      const isList = code === layout.CODEC_JSON_BATCH || code === layout.CODEC_VALUES;
      at += (-at & (ALIGN - 1)) + (words[word]! >>> 0); // below 2^53: nothing overflows
      if (code > 0xff || isList || at > size) throw lost("message.values", "a value cannot be");
    }
    if (at !== size) throw lost("message.values", "something stands behind it");
    this.itemCount = count / this.#width;
    this.#bytes = bytes;
    this.#words = words;
    this.#next = 0;
    this.#at = end;
  }

  /** Goes to an item, of which the values before were read, or passed over. */
  goTo(item: number): void {
    while (this.#next < item * this.#width) this.#pass();
    this.#itemAt = this.#at + (-this.#at & (ALIGN - 1));
  }

  /** The next value of the item. @throws {MessageError} if it cannot be read, or is too large. */
  read(): unknown {
    const entry = (HEADER_SIZE >> 2) + this.#next * (ENTRY_SIZE >> 2);
    const size = this.#words[entry]! >>> 0;
    const at = this.#pass();
    // [pipe.limit] Of the last value it is known how large the item would be alone.
    if (this.#next % this.#width === 0) this.#checkSize();
    return decodeValue(this.#bytes, at, size, this.#words[entry + CODEC_WORD]!, this.#table);
  }

  /** Passes over the next value, and returns where it begins. */
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
