/**
 * Lists of values, as which calls and their answers are written: codec `values`. See
 * `spec/call.md`.
 *
 * @module
 */

import {
  type AnyCodec,
  type CodecName,
  type CodecTable,
  copyOut,
  decodeForeign,
  decodeJson,
  decodeText,
  encodeBy,
  isWellFormed,
  NO_BYTES,
} from "../codec/codec.ts";
import { hasBytes, mayHide, mayHideAnywhere } from "../codec/loss.ts";
import { lostError, type MillraceError, throwCannot, throwRangeError } from "../error.ts";
import { layout } from "../memory/layout.ts";
import { isBytes, requireMemory } from "../memory/realm.ts";
import { MAX_JSON_SIZE } from "../pipe/options.ts";
import { type Send, setPayload } from "../pipe/outgoing.ts";
import { decodeFields, encodeFields } from "./fields.ts";

const HEADER_SIZE = layout.VALUES_HEADER_SIZE;
const ENTRY_SIZE = layout.VALUE_ENTRY_SIZE;
const ALIGN = layout.VALUES_ALIGN;
/** Texts up to so many characters are copied by a loop, which is faster than the platform's way. */
const SHORT_COUNT = 32;
const SCRATCH_SIZE = 4096;
/** Texts that came last, by their bytes: names come again and again, and need not be made anew. */
const KNOWN_COUNT = 64;
const knownTexts: string[] = [];
/** How deep bytes are looked for before a value is written as JSON. */
const LEVELS_BEFORE = 3;
/** Digits of an integer that a number surely holds, and the code of the first. */
const SAFE_DIGITS = 15;
const DIGIT_0 = 0x30;

let encoder: TextEncoder | undefined;
let scratch: Uint8Array | undefined;
/** The same, for the header and the entries. */
let scratchWords: Int32Array | undefined;
/** Its first bytes. Most lists are as long as the one before: the view is kept. */
let view: Uint8Array | undefined;

/** One value on its way out: a text, or bytes. */
export interface Piece {
  readonly code: number;
  readonly text: string;
  bytes: Uint8Array | undefined;
}

const ABSENT: Piece = { code: layout.CODEC_JSON, text: "", bytes: undefined };

/** How values that are neither strings nor bytes are written: what an end that writes has. */
export interface Manner {
  readonly codec: CodecName | AnyCodec;
  /** Looks at each value of JSON first. */
  readonly vet?: ((value: never) => void) | undefined;
}

/**
 * Writes a list of values: strings as text, bytes as they are, `undefined` as absent, and others by
 * the codec of the application's, if there is one, or as JSON, or, if JSON would lose bytes in
 * them, as CBOR. [call.values_encoded]
 *
 * @throws {TypeError} for a value that none of them can carry.
 */
export function encodeValues(
  values: readonly unknown[],
  manner: Manner,
  send: Send,
): void {
  if (values.length > layout.VALUES_COUNT_MAX) {
    throwRangeError(`Cannot write ${values.length} values: they are too many`);
  }
  // The application's own code may run here, and not after it: the scratch is the thread's.
  const pieces: Piece[] = [];
  for (const value of values) pieces.push(pieceOf(value, manner));
  writePieces(pieces, send);
}

/** Writes a list of texts, of which none has a lone surrogate, and a value after them. */
export function encodeTexts(texts: readonly string[], data: Piece | undefined, to: Send): void {
  const pieces = texts.map((text) => ({ code: layout.CODEC_TEXT, text, bytes: undefined }));
  writePieces(data === undefined ? pieces : [...pieces, data], to);
}

/** How a value is written. @throws {TypeError} if it cannot be. */
export function pieceOf(value: unknown, { codec, vet }: Manner): Piece {
  if (value === undefined) return ABSENT;
  if (typeof value === "string" && isWellFormed(value)) {
    return { code: layout.CODEC_TEXT, text: value, bytes: undefined };
  }
  if (isBytes(value)) {
    requireMemory(value);
    return { code: layout.CODEC_BYTES, text: "", bytes: value };
  }
  if (typeof codec !== "string" && typeof value !== "string") {
    const bytes = encodeBy(codec, value);
    requireMemory(bytes);
    return { code: codec.code, text: "", bytes: copyOut(bytes, 0, bytes.length) };
  }
  // As JSON has it, in a third of the time.
  const isNumber = typeof value === "number" && Number.isFinite(value);
  if (!isNumber) vet?.(value as never);
  // A few levels before, as many bytes would take long as JSON; all of it after, when it is known
  // that it does not contain itself.
  if (mayHide(value, LEVELS_BEFORE) && hasBytes(value)) return fieldsOf(value);
  const text = isNumber ? String(value) : JSON.stringify(value) as string | undefined;
  if (mayHideAnywhere(value) && hasBytes(value)) return fieldsOf(value);
  if (text !== undefined) return { code: layout.CODEC_JSON, text, bytes: undefined };
  throwCannot(`write ${typeof value}: no codec of a call can carry it`);
}

function fieldsOf(value: unknown): Piece {
  return { code: layout.CODEC_CBOR, text: "", bytes: encodeFields(value) };
}

/** Writes the list into the scratch where it surely fits, otherwise into fresh memory. */
export function writePieces(pieces: readonly Piece[], send: Send): void {
  const count = pieces.length;
  if (count === 0) return void setPayload(send, layout.CODEC_VALUES, NO_BYTES, true);
  const from = HEADER_SIZE + count * ENTRY_SIZE;
  let most = from;
  for (const { text, bytes } of pieces) most += 3 * text.length + (bytes?.length ?? 0) + ALIGN;
  if (most > SCRATCH_SIZE) {
    encoder ??= new TextEncoder();
    most = from;
    for (const piece of pieces) {
      if (piece !== ABSENT) piece.bytes ??= encoder.encode(piece.text);
      most += (piece.bytes?.length ?? 0) + ALIGN;
    }
  }
  const isKept = most > SCRATCH_SIZE;
  if (!isKept && scratch === undefined) {
    scratch = new Uint8Array(SCRATCH_SIZE);
    scratchWords = new Int32Array(scratch.buffer);
  }
  const target = isKept ? new Uint8Array(most) : scratch!;
  const words = isKept ? new Int32Array(target.buffer, 0, from >> 2) : scratchWords!;
  words[0] = count;
  words[1] = 0;
  let entry = HEADER_SIZE >> 2;
  let at = from;
  for (const { code, text, bytes } of pieces) {
    for (; at % ALIGN !== 0; at++) target[at] = 0;
    const size = bytes === undefined ? writeText(target, at, text) : bytes.length;
    if (bytes !== undefined) target.set(bytes, at);
    words[entry++] = size;
    words[entry++] = code;
    at += size;
  }
  if (!isKept && view?.length !== at) view = target.subarray(0, at);
  setPayload(send, layout.CODEC_VALUES, isKept ? target.subarray(0, at) : view!, isKept);
}

/** Writes a text as UTF-8, for which there is room. Returns its bytes. */
export function writeText(target: Uint8Array, at: number, text: string): number {
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

/**
 * A list as it has come, after all checks. [call.values_check]
 *
 * Its payload is private, and nothing of it is looked at twice that could change meanwhile.
 */
export class ValueList {
  readonly values: unknown[];
  readonly #payload: Uint8Array;

  /** Makes all checks. @throws {MessageError} of the first that fails. */
  constructor(payload: Uint8Array, table: CodecTable) {
    this.#payload = payload;
    const sizes = sizesOf(payload);
    const values: unknown[] = this.values = [];
    let entry = HEADER_SIZE + layout.VALUE_CODEC_OFFSET;
    let at = HEADER_SIZE + sizes.length * ENTRY_SIZE;
    for (const size of sizes) {
      at += -at & (ALIGN - 1);
      values.push(decodeValue(payload, at, size, payload[entry]!, table));
      at += size;
      entry += ENTRY_SIZE;
    }
  }

  /** Whether a value is a text of so many bytes. */
  isText(index: number, least: number, most: number): boolean {
    const entry = HEADER_SIZE + index * ENTRY_SIZE;
    const code = this.#payload[entry + layout.VALUE_CODEC_OFFSET];
    if (index >= this.values.length || code !== layout.CODEC_TEXT) return false;
    const size = word(this.#payload, entry);
    return size >= least && size <= most;
  }

  /** Whether the first value is a name. */
  get hasName(): boolean {
    return this.isText(0, 1, layout.CALL_NAME_SIZE_MAX);
  }
}

/** Checks header and entries, and returns the sizes of the values. */
function sizesOf(payload: Uint8Array): number[] {
  const { length } = payload;
  const sizes: number[] = [];
  if (length === 0) return sizes;
  if (length < HEADER_SIZE) throw badList("it is shorter than its header");
  const count = word(payload, 0);
  const end = HEADER_SIZE + count * ENTRY_SIZE;
  if (count < 1 || count > layout.VALUES_COUNT_MAX || word(payload, 4) !== 0 || end > length) {
    throw badList(`it has ${count} values`);
  }
  let at = end;
  for (let entry = HEADER_SIZE; entry < end; entry += ENTRY_SIZE) {
    const codeWord = word(payload, entry + layout.VALUE_CODEC_OFFSET);
    const isList = codeWord === layout.CODEC_JSON_BATCH || codeWord === layout.CODEC_VALUES;
    const size = word(payload, entry);
    at += (-at & (ALIGN - 1)) + size; // below 2^53: nothing overflows
    if (codeWord > 0xff || isList || at > length) throw badList("a value of it cannot be");
    sizes.push(size);
  }
  if (at !== length) throw badList("it goes on after the last value");
  return sizes;
}

/** Decodes one value of a list. @throws {MessageError} if it cannot be. */
export function decodeValue(
  payload: Uint8Array,
  at: number,
  size: number,
  code: number,
  table: CodecTable,
): unknown {
  if (code === layout.CODEC_BYTES) return copyOut(payload, at, size);
  if (code === layout.CODEC_CBOR && !table?.has(code)) {
    return decodeFields(payload.subarray(at, at + size));
  }
  if (code !== layout.CODEC_TEXT && code !== layout.CODEC_JSON) {
    return decodeForeign(copyOut(payload, at, size), code, table);
  }
  const isText = code === layout.CODEC_TEXT;
  if (!isText && size === 0) return undefined;
  const integer = isText ? undefined : shortInteger(payload, at, size);
  if (integer !== undefined) return integer;
  if (!isText && size > MAX_JSON_SIZE) {
    throw lostError("message.size", `JSON in it has ${size} bytes`);
  }
  const text = shortText(payload, at, size);
  if (text === undefined) {
    const bytes = payload.subarray(at, at + size);
    return isText ? decodeText(bytes) : decodeJson(bytes);
  }
  if (isText) return text;
  try {
    return JSON.parse(text);
  } catch (cause) {
    throw lostError("message.json", "a value of it is not JSON", { cause });
  }
}

/** A short text of ASCII; undefined for any other. */
function shortText(payload: Uint8Array, at: number, size: number): string | undefined {
  if (size > SHORT_COUNT) return undefined;
  let hash = size;
  for (let index = at; index < at + size; index++) {
    const unit = payload[index]!;
    if (unit >= 0x80) return undefined;
    hash = (hash * 31 + unit) | 0;
  }
  const place = hash & (KNOWN_COUNT - 1);
  const known = knownTexts[place];
  if (known !== undefined && isTextAt(known, payload, at, size)) return known;
  let text = "";
  for (let index = at; index < at + size; index++) text += String.fromCharCode(payload[index]!);
  knownTexts[place] = text;
  return text;
}

function isTextAt(text: string, payload: Uint8Array, at: number, size: number): boolean {
  if (text.length !== size) return false;
  for (let index = 0; index < size; index++) {
    if (text.charCodeAt(index) !== payload[at + index]) return false;
  }
  return true;
}

/** What is an integer of a few digits, and nothing else, in JSON. */
function shortInteger(payload: Uint8Array, at: number, size: number): number | undefined {
  if (size === 0 || size > SAFE_DIGITS) return undefined;
  if (size > 1 && payload[at] === DIGIT_0) return undefined;
  let integer = 0;
  for (let index = at; index < at + size; index++) {
    const digit = payload[index]! - DIGIT_0;
    if (digit < 0 || digit > 9) return undefined;
    integer = 10 * integer + digit;
  }
  return integer;
}

function word(bytes: Uint8Array, at: number): number {
  return (bytes[at]! | bytes[at + 1]! << 8 | bytes[at + 2]! << 16 | bytes[at + 3]! << 24) >>> 0;
}

function badList(why: string): MillraceError {
  return lostError("message.values", `its list is none: ${why}`);
}

/** The beginning of a text that has so many bytes at most, cut at a character. */
export function cutText(text: string, most: number): string {
  const whole = isWellFormed(text) ? text : text.replace(/\p{Surrogate}/gu, "\ufffd");
  if (whole.length * 3 <= most) return whole;
  encoder ??= new TextEncoder();
  const { read } = encoder.encodeInto(whole, new Uint8Array(most));
  return whole.slice(0, read);
}
