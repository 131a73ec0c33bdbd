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
  decodeText,
  encodeBy,
  isWellFormed,
  NO_BYTES,
  parseJson,
} from "../codec/codec.ts";
import { hasBytes, mayHide, mayHideAnywhere } from "../codec/loss.ts";
import { lostError, throwCannot, throwRangeError } from "../error.ts";
import { layout } from "../memory/layout.ts";
import { isBytes, requireMemory } from "../memory/realm.ts";
import { MAX_JSON_SIZE } from "../pipe/options.ts";
import { makeSend, type Outgoing, type Send, setPayload, whileEncoding } from "../pipe/outgoing.ts";
import { decodeFields, encodeFields } from "./fields.ts";

const HEADER_SIZE = layout.VALUES_HEADER_SIZE;
const ENTRY_SIZE = layout.VALUE_ENTRY_SIZE;
const ALIGN = layout.VALUES_ALIGN;
const enum Limit {
  /** Texts up to so many characters are copied by a loop, which is faster than the platform. */
  SHORT_COUNT = 32,
  SCRATCH_SIZE = 4096,
  /** So many texts are kept by their bytes. */
  KNOWN_COUNT = 64,
  /** How deep bytes are looked for before a value is written as JSON. */
  LEVELS_BEFORE = 3,
  /** Digits of an integer that a number surely holds, and the code of the first. */
  SAFE_DIGITS = 15,
  DIGIT_0 = 0x30,
}

/** Texts that came last: names come again and again, and need not be made anew. */
const knownTexts: string[] = [];
let encoder: TextEncoder | undefined;
const textEncoder = (): TextEncoder => encoder ??= new TextEncoder();

/** Memory for lists. */
interface Target {
  readonly bytes: Uint8Array;
  /** The same, for the header and the entries. */
  readonly words: Int32Array;
  /** Its first bytes. Most lists are as long as the one before: the view is kept. */
  view?: Uint8Array;
}

/** That of short lists, which is used again. */
let scratch: Target | undefined;

function makeTarget(size: number): Target {
  const words = new Int32Array(Math.ceil(size / 4));
  return { bytes: new Uint8Array(words.buffer), words };
}

/** One value on its way out: a text that is short, or bytes. */
export interface Piece {
  readonly code: number;
  readonly text: string;
  readonly bytes: Uint8Array | undefined;
}

const ABSENT: Piece = { code: layout.CODEC_JSON, text: "", bytes: undefined };

/** A piece of a text without lone surrogates. Of one that is long, its size should be known. */
const ofText = (code: number, text: string): Piece =>
  text.length > Limit.SCRATCH_SIZE
    ? ofBytes(code, textEncoder().encode(text))
    : { code, text, bytes: undefined };

const ofBytes = (code: number, bytes: Uint8Array): Piece => ({ code, text: "", bytes });

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

/** Makes the message of a list of values. The application's own code may run meanwhile. */
export function sendOf(out: Outgoing, kind: number, values: readonly unknown[]): Send {
  const send = makeSend(kind);
  whileEncoding(out, () => encodeValues(values, out, send));
  return send;
}

/** Writes a list of texts, of which none has a lone surrogate, and a value after them. */
export function encodeTexts(texts: readonly string[], data: Piece | undefined, to: Send): void {
  const pieces = texts.map((text) => ofText(layout.CODEC_TEXT, text));
  writePieces(data === undefined ? pieces : [...pieces, data], to);
}

/** How a value is written. @throws {TypeError} if it cannot be. */
export function pieceOf(value: unknown, { codec, vet }: Manner): Piece {
  if (value === undefined) return ABSENT;
  if (typeof value === "string" && isWellFormed(value)) return ofText(layout.CODEC_TEXT, value);
  if (isBytes(value)) {
    requireMemory(value);
    return ofBytes(layout.CODEC_BYTES, value);
  }
  if (typeof codec !== "string" && typeof value !== "string") {
    const bytes = encodeBy(codec, value);
    requireMemory(bytes);
    return ofBytes(codec.code, copyOut(bytes, 0, bytes.length));
  }
  // As JSON has it, in a third of the time.
  const isNumber = typeof value === "number" && Number.isFinite(value);
  if (!isNumber) vet?.(value as never);
  // A few levels before, as many bytes would take long as JSON; all of it after, when it is known
  // that it does not contain itself.
  let hasFields = mayHide(value, Limit.LEVELS_BEFORE) && hasBytes(value);
  let text: string | undefined;
  if (!hasFields) {
    text = isNumber ? String(value) : JSON.stringify(value);
    hasFields = mayHideAnywhere(value) && hasBytes(value);
  }
  const fields = hasFields && encodeFields(value);
  if (fields) return ofBytes(layout.CODEC_CBOR, fields);
  if (text !== undefined) return ofText(layout.CODEC_JSON, text);
  throwCannot(`write ${typeof value}: no codec of a call can carry it`);
}

/** Writes the list into the scratch where it surely fits, otherwise into fresh memory. */
export function writePieces(pieces: readonly Piece[], send: Send): void {
  const count = pieces.length;
  if (count === 0) return void setPayload(send, layout.CODEC_VALUES, NO_BYTES, true);
  const from = HEADER_SIZE + count * ENTRY_SIZE;
  let most = from;
  for (const { text, bytes } of pieces) most += 3 * text.length + (bytes?.length ?? 0) + ALIGN;
  const isKept = most > Limit.SCRATCH_SIZE;
  const target = isKept ? makeTarget(most) : scratch ??= makeTarget(Limit.SCRATCH_SIZE);
  const { bytes: all, words } = target;
  words[0] = count;
  words[1] = 0;
  let entry = HEADER_SIZE >> 2;
  let at = from;
  for (const { code, text, bytes } of pieces) {
    for (; at % ALIGN !== 0; at++) all[at] = 0;
    if (bytes) all.set(bytes, at);
    const size = bytes ? bytes.length : writeText(all, at, text);
    words[entry++] = size;
    words[entry++] = code;
    at += size;
  }
  if (target.view?.length !== at) target.view = all.subarray(0, at);
  setPayload(send, layout.CODEC_VALUES, target.view, isKept);
}

/** Writes a text as UTF-8, for which there is room. Returns its bytes. */
export function writeText(target: Uint8Array, at: number, text: string): number {
  const { length } = text;
  if (length <= Limit.SHORT_COUNT) {
    let index = 0;
    for (; index < length; index++) {
      const unit = text.charCodeAt(index);
      if (unit >= 0x80) break;
      target[at + index] = unit;
    }
    if (index === length) return length;
  }
  return textEncoder().encodeInto(text, target.subarray(at)).written;
}

/** A list as it has come: its values, and of each that is written as a text how many bytes. */
export interface ValueList {
  readonly values: unknown[];
  readonly textSizes: (number | undefined)[];
}

/**
 * Makes all checks of a list, and decodes it. Its payload is private, and cannot change meanwhile.
 * [call.values_check]
 *
 * @throws {MessageError} of the first check that fails.
 */
export function readValues(payload: Uint8Array, table: CodecTable): ValueList {
  const { length } = payload;
  const values: unknown[] = [];
  const textSizes: (number | undefined)[] = [];
  if (length === 0) return { values, textSizes };
  const count = word(payload, 0);
  const end = HEADER_SIZE + count * ENTRY_SIZE;
  const isCount = count >= 1 && count <= layout.VALUES_COUNT_MAX;
  refuse(!isCount || word(payload, 4) !== 0 || end > length);
  let at = end;
  for (let entry = HEADER_SIZE; entry < end; entry += ENTRY_SIZE) {
    const code = word(payload, entry + layout.VALUE_CODEC_OFFSET);
    at += (-at & (ALIGN - 1)) + word(payload, entry); // below 2^53: nothing overflows
    const isList = code === layout.CODEC_JSON_BATCH || code === layout.CODEC_VALUES;
    refuse(code > 0xff || isList || at > length);
  }
  refuse(at !== length);
  at = end;
  for (let entry = HEADER_SIZE; entry < end; entry += ENTRY_SIZE) {
    const code = payload[entry + layout.VALUE_CODEC_OFFSET]!;
    const size = word(payload, entry);
    at += -at & (ALIGN - 1);
    values.push(decodeValue(payload, at, size, code, table));
    textSizes.push(code === layout.CODEC_TEXT ? size : undefined);
    at += size;
  }
  return { values, textSizes };
}

/** Whether the first value of a list is a name. */
export const hasName = ({ textSizes: [size = 0] }: ValueList): boolean =>
  size >= 1 && size <= layout.CALL_NAME_SIZE_MAX;

/** Decodes one value of a list. @throws {MessageError} if it cannot be. */
export function decodeValue(
  payload: Uint8Array,
  at: number,
  size: number,
  code: number,
  table: CodecTable,
): unknown {
  if (code === layout.CODEC_BYTES) return copyOut(payload, at, size);
  if (code === layout.CODEC_CBOR && !table?.[code]) {
    return decodeFields(payload.subarray(at, at + size));
  }
  if (code !== layout.CODEC_TEXT && code !== layout.CODEC_JSON) {
    return decodeForeign(copyOut(payload, at, size), code, table);
  }
  const isJson = code === layout.CODEC_JSON;
  if (isJson) {
    if (size === 0) return undefined;
    const integer = shortInteger(payload, at, size);
    if (integer !== undefined) return integer;
    if (size > MAX_JSON_SIZE) throw lostError("message.size", `JSON in it has ${size} bytes`);
  }
  const text = shortText(payload, at, size) ?? decodeText(payload.subarray(at, at + size));
  return isJson ? parseJson(text) : text;
}

/** A short text of ASCII; undefined for any other. */
function shortText(payload: Uint8Array, at: number, size: number): string | undefined {
  if (size > Limit.SHORT_COUNT) return undefined;
  let hash = size;
  for (let index = at; index < at + size; index++) {
    const unit = payload[index]!;
    if (unit >= 0x80) return undefined;
    hash = (hash * 31 + unit) | 0;
  }
  const place = hash & (Limit.KNOWN_COUNT - 1);
  const known = knownTexts[place];
  for (let index = 0; known?.length === size; index++) {
    if (index === size) return known;
    if (known.charCodeAt(index) !== payload[at + index]) break;
  }
  let text = "";
  for (let index = at; index < at + size; index++) text += String.fromCharCode(payload[index]!);
  knownTexts[place] = text;
  return text;
}

/** What is an integer of a few digits, and nothing else, in JSON. */
function shortInteger(payload: Uint8Array, at: number, size: number): number | undefined {
  if (size === 0 || size > Limit.SAFE_DIGITS) return undefined;
  if (size > 1 && payload[at] === Limit.DIGIT_0) return undefined;
  let integer = 0;
  for (let index = at; index < at + size; index++) {
    const digit = payload[index]! - Limit.DIGIT_0;
    if (digit < 0 || digit > 9) return undefined;
    integer = 10 * integer + digit;
  }
  return integer;
}

function word(bytes: Uint8Array, at: number): number {
  return (bytes[at]! | bytes[at + 1]! << 8 | bytes[at + 2]! << 16 | bytes[at + 3]! << 24) >>> 0;
}

function refuse(isWrong: boolean): void {
  if (isWrong) throw lostError("message.values", "its list of values is malformed");
}

/** The beginning of a text that has so many bytes at most, cut at a character. */
export function cutText(text: string, most: number): string {
  const whole = isWellFormed(text) ? text : text.replace(/\p{Surrogate}/gu, "\ufffd");
  if (whole.length * 3 <= most) return whole;
  const { read } = textEncoder().encodeInto(whole, new Uint8Array(most));
  return whole.slice(0, read);
}
