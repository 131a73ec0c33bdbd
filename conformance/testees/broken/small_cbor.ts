/**
 * The small port: a payload of codec `cbor` as a value, by appendix C of RFC 8949 and the tags of
 * `spec/codec.md`.
 *
 * @module
 */

import { has } from "./faults.ts";

// The small port: what texts and numbers of codec `cbor` are made of.

/** The least character that takes so many bytes after the first. */
const LEAST = [0, 0x80, 0x800, 0x10000];
const CHARACTER_MAX = 0x10ffff;

/** Whether bytes are UTF-8 as RFC 3629 has it. */
function isUtf8(bytes: Uint8Array): boolean {
  if (has("cbor_utf8_unchecked")) return true;
  for (let at = 0; at < bytes.length;) {
    const first = bytes[at++]!;
    if (first < 0x80) continue;
    if (first < 0xc0 || first >= 0xf8) return false;
    const more = first < 0xe0 ? 1 : first < 0xf0 ? 2 : 3;
    let character = first & 0x3f >> more;
    for (let count = 0; count < more; count++) {
      const next = bytes[at++] ?? 0;
      if (next >> 6 !== 2) return false;
      character = character << 6 | next & 0x3f;
    }
    if (character < LEAST[more]! && !has("cbor_utf8_overlong")) return false;
    if (character >> 11 === 0xd800 >> 11 && !has("cbor_utf8_surrogate")) return false;
    if (character > CHARACTER_MAX && !has("cbor_utf8_beyond")) return false;
  }
  return true;
}

const DATE = /^\d{4}-(\d\d)-(\d\d)[Tt](\d\d):(\d\d):(\d\d)(?:\.\d+)?(?:[Zz]|[+-]\d\d:\d\d)$/;

/** Whether a text is a date as RFC 3339 writes it. */
function isDateText(text: string): boolean {
  const parts = DATE.exec(text)?.slice(1).map(Number);
  if (parts === undefined) return false;
  const [month, day, hour, minute, second] = parts as [number, number, number, number, number];
  const isDay = month >= 1 && month <= 12 && day >= 1 && day <= 31;
  return isDay && hour < 24 && minute < 60 && second < 60;
}

/** The float of these sixteen bits. */
function decodeHalf(bits: number): number {
  const [exponent, fraction] = [bits >> 10 & 31, bits & 1023];
  const sign = bits & 0x8000 ? -1 : 1;
  if (exponent === 31) return fraction === 0 ? sign * Infinity : NaN;
  // Without an exponent, there is no leading 1.
  if (exponent === 0) return has("cbor_half_zero") ? sign * 0 : sign * fraction * 2 ** -24;
  return sign * (1024 + fraction) * 2 ** (exponent - 25);
}

/** The same elements, the bytes of each the other way round. */
function swapped(bytes: Uint8Array, size: number): Uint8Array {
  return bytes.map((_, at) => bytes[at - at % size + size - 1 - at % size]!);
}

/** A value. One to which others refer is one and the same object in all its places. */
export type Item =
  /** One of any size stands in bytes after a tag. */
  | { is: "integer"; value: bigint; isBig?: true }
  | { is: "float"; value: number }
  /** `false`, `true`, `null` and `undefined`, by their numbers. */
  | { is: "word"; value: bigint }
  | { is: "bytes"; value: Uint8Array; inParts: boolean }
  | { is: "text"; value: string; inParts: boolean }
  /** The items of a map are keys and values in turn. */
  | { is: "array" | "map"; items: Item[] }
  | { is: "tagged"; tag: number; item: Item }
  | Shared;

/** What a tag 28 makes; it has no item while that is being read. */
interface Shared {
  is: "shared";
  item: Item | undefined;
}

/** No item of CBOR that a reader may take. */
export class CborError extends Error {}

const DEPTH_MAX = 1024;
const BREAK = 0xff;
const [BYTES, TEXT, ARRAY, MAP, TAG] = [2, 3, 4, 5, 6];
const [BIG, BIG_NEGATIVE, CLASS, SHARE, REFER] = [2, 3, 27, 28, 29];
const [SET, KEYED, PATTERN, CBOR] = [258, 259, 21066, 55799];
/** The tags of RFC 8746 lie from 64 on: in bits, a float (16), signed (8), little-endian (4). */
const [TYPED, FLOAT, LITTLE] = [64, 16, 4];
/** The bits of such a tag for what nobody has: a second kind of `int8`, floats of 16 bytes. */
const NOT_TYPED = [76, 83, 87];
/** The last simple value that has a meaning. */
const UNDEFINED = 23n;

/** Reads a payload. Throws `CborError` where it is to be dropped. [codec.bad_cbor] */
export function readCbor(payload: Uint8Array): Item {
  const reader = new CborReader(payload);
  if (payload.length === 0 && has("cbor_empty")) return { is: "word", value: UNDEFINED };
  const item = reader.item(0);
  demand(reader.rest === 0 || has("cbor_behind"), "something stands behind the item");
  demand(reader.isComplete, "no tag 28 has this number");
  return item;
}

class CborReader {
  readonly #bytes: Uint8Array;
  readonly #shared: Shared[] = [];
  /** The largest number that was referred to before it was there, by a port with a fault. */
  #later = -1;
  #at = 0;

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
  }

  get isComplete(): boolean {
    return this.#later < this.#shared.length;
  }

  /** Bytes that are left. */
  get rest(): number {
    return this.#bytes.length - this.#at;
  }

  /** The next item, with so many arrays, maps and tags around it. */
  item(depth: number): Item {
    const item = this.#next(depth, has("cbor_break_in_tag"));
    return item ?? { is: "word", value: UNDEFINED };
  }

  /** The same, or nothing for a break, where one may stand. */
  #next(depth: number, mayBreak: boolean): Item | undefined {
    const first = this.#byte();
    if (first === BREAK) {
      demand(mayBreak, "a break that ends nothing");
      return undefined;
    }
    demand(depth <= mostAround(), "it is too deep");
    const [major, info] = [first >> 5, first & 31];
    const argument = this.#argument(info, major);
    switch (major) {
      case 0:
        return { is: "integer", value: argument! };
      case 1:
        return { is: "integer", value: (has("cbor_negative") ? 0n : -1n) - argument! };
      case BYTES:
      case TEXT:
        return this.#string(major, argument);
      case ARRAY:
      case MAP:
        return { is: major === MAP ? "map" : "array", items: this.#items(major, argument, depth) };
      case TAG:
        return this.#tag(argument!, info, has("cbor_depth_tags") ? depth - 1 : depth);
      default:
        return simple(info, argument!);
    }
  }

  #byte(): number {
    return this.#take(1n)[0]!;
  }

  #take(size: bigint): Uint8Array {
    // [codec.cbor_memory] Looked at before anything is made of that size.
    if (has("cbor_memory")) new Uint8Array(Number(size));
    demand(size <= BigInt(this.rest), "it ends too early");
    return this.#bytes.slice(this.#at, this.#at += Number(size));
  }

  /** What a head says: a value or a length; nothing for a length that is not known. */
  #argument(info: number, major: number): bigint | undefined {
    if (info < 24) return BigInt(info);
    const isString = major === BYTES || major === TEXT;
    if (info === 31 && (isString || major === ARRAY || major === MAP)) return undefined;
    if (info === 31 && has("cbor_indefinite_any")) return 0n;
    if (info >= 28 && has("cbor_reserved")) return 0n;
    demand(info < 28, "a head of which nobody knows the meaning");
    const bytes = this.#take(1n << BigInt(info - 24));
    const value = bytes.reduce((sum, byte) => sum << 8n | BigInt(byte), 0n);
    if (major < BYTES && has("cbor_integer_signed")) return BigInt.asIntN(8 * bytes.length, value);
    const isCut = major === TAG ? has("cbor_tag_wraps") : major < TAG && has("cbor_length_wraps");
    return isCut && major >= BYTES ? BigInt.asUintN(32, value) : value;
  }

  #string(major: number, size: bigint | undefined): Item {
    const parts = size === undefined ? this.#parts(major) : [this.#take(size)];
    const value = joined(parts);
    const inParts = size === undefined;
    if (major === BYTES) return { is: "bytes", value, inParts };
    // [codec.cbor] All texts: each part is one.
    const texts = has("cbor_utf8_joined") ? [value] : parts;
    demand(texts.every(isUtf8), "a text that is no UTF-8");
    return { is: "text", value: new TextDecoder("utf-8", utf8Options()).decode(value), inParts };
  }

  /** Strings up to a break, each of a known length and of the same type. */
  #parts(major: number): Uint8Array[] {
    const parts: Uint8Array[] = [];
    for (;;) {
      const first = this.#byte();
      if (first === BREAK) return parts;
      demand(first >> 5 === major || has("cbor_part_type"), "a part of another type");
      const size = this.#argument(first & 31, major);
      demand(size !== undefined || has("cbor_part_nested"), "parts within a part");
      parts.push(...(size === undefined ? this.#parts(major) : [this.#take(size)]));
    }
  }

  #items(major: number, count: bigint | undefined, depth: number): Item[] {
    demand(depth < mostAround() || !has("cbor_depth_empty"), "it is too deep");
    const inner = major === MAP && has("cbor_depth_maps") ? depth : depth + 1;
    const items: Item[] = [];
    const whole = count === undefined ? Infinity : Number(count) * (major === MAP ? 2 : 1);
    while (items.length < whole) {
      const isKey = major === ARRAY || items.length % 2 === 0 || has("cbor_break_in_pair");
      const item = this.#next(inner, whole === Infinity ? isKey : has("cbor_break_anywhere"));
      if (item === undefined) break;
      items.push(item);
    }
    return items;
  }

  #tag(tag: bigint, info: number, depth: number): Item {
    demand(info === 24 || tag > 255n || info < 24 || !has("cbor_tag_long"), "a tag in a long form");
    if (tag === BigInt(SHARE)) return this.#share(depth + 1);
    const item = this.item(depth + 1);
    const number = Number(tag);
    demand(!("inParts" in item && item.inParts && has("cbor_tag_parts")), "a tag around parts");
    if (number === REFER) return this.#refer(item);
    // [codec.bad_cbor]
    const looked = has("cbor_tag_between") ? within(item) : item;
    demand(fits(number, looked), `tag ${tag} is not known, or is around something else`);
    if (number === BIG || number === BIG_NEGATIVE) {
      return { is: "integer", value: big(tag, item), isBig: true };
    }
    return number >= TYPED && number < TYPED + 24
      ? littleTyped(number, item)
      : { is: "tagged", tag: number, item };
  }

  /** [codec.cbor_shared] Its number is how many have begun before. */
  #share(depth: number): Item {
    const shared: Shared = { is: "shared", item: undefined };
    if (!has("cbor_shared_as_they_end")) this.#shared.push(shared);
    const item = this.item(depth);
    if (has("cbor_shared_as_they_end")) this.#shared.push(shared);
    const isShared = bare(item).is === "shared";
    demand(!isShared || has("cbor_shared_twice"), "a tag 28 around what is shared");
    shared.item = item;
    return shared;
  }

  #refer(number: Item): Item {
    const isIndex = isNumber(number) && (number.is === "integer" || has("cbor_refer_float"));
    demand(isIndex, "a tag 29 around something else");
    const index = Number(number.value) - (has("cbor_shared_from_one") ? 1 : 0);
    const shared = this.#shared[has("cbor_refer_wraps") ? index >>> 0 : index];
    const isLater = shared === undefined && has("cbor_refer_later");
    if (isLater) this.#later = Math.max(this.#later, index);
    if (isLater || shared === undefined && has("cbor_refer_none")) {
      return { is: "word", value: UNDEFINED };
    }
    demand(shared !== undefined, "no tag 28 before it has this number");
    return has("cbor_shared_copied") ? shared.item ?? shared : shared;
  }
}

/** How many arrays, maps and tags may be around an item. */
function mostAround(): number {
  return DEPTH_MAX + (has("cbor_depth_more") ? 1 : has("cbor_depth_less") ? -1 : 0);
}

/** A float, by its bits, or a word. */
function simple(info: number, argument: bigint): Item {
  const view = new DataView(new ArrayBuffer(8));
  view.setBigUint64(0, argument);
  switch (info) {
    case 25:
      return { is: "float", value: decodeHalf(view.getUint16(6)) };
    case 26:
      return { is: "float", value: view.getFloat32(4) };
    case 27:
      return { is: "float", value: view.getFloat64(0) };
  }
  // Those below 32 have one byte.
  demand(info < 24 || argument >= 32n || has("cbor_simple_form"), "a simple value in two bytes");
  const isKnown = argument >= 20n && argument <= UNDEFINED;
  if (!isKnown && has("cbor_simple_any")) return { is: "word", value: UNDEFINED };
  demand(isKnown, "a simple value without a meaning");
  return { is: "word", value: argument };
}

/** Whether an item is what the table of the chapter has around this tag. [codec.cbor_tags] */
function fits(tag: number, item: Item): boolean {
  switch (tag) {
    case 0:
      return item.is === "text" && (has("cbor_date_any") || isDateText(item.value));
    case 1:
      return isNumber(item) || item.is === "word" && has("cbor_date_word");
    case BIG:
    case BIG_NEGATIVE:
      return item.is === "bytes" || item.is === "text" && has("cbor_big_text");
    case CLASS:
      return item.is === "array" &&
        (isOf(item.items[0], "text") || item.items.length === 0 && has("cbor_class_empty") ||
          isOf(item.items[0], "bytes") && has("cbor_class_bytes"));
    case SET:
      return item.is === "array" || item.is === "map" && has("cbor_set_any");
    case KEYED:
      return item.is === "map";
    case PATTERN:
      return isPattern(item);
    case CBOR:
      return true;
  }
  const isTyped = tag >= TYPED && tag < TYPED + 24;
  if (!isTyped) return has("cbor_tag_any");
  if (NOT_TYPED.includes(tag) && !has("cbor_typed_range")) return false;
  if (item.is === "text" && has("cbor_typed_text")) return true;
  return item.is === "bytes" && (item.value.length % sizeIn(tag) === 0 || has("cbor_typed_cut"));
}

/** An item without any tags around it. */
function within(item: Item): Item {
  return item.is === "tagged" || item.is === "shared" && item.item ? within(item.item!) : item;
}

/** An item without the tags that say only that it is CBOR. */
function bare(item: Item): Item {
  return item.is === "tagged" && item.tag === CBOR ? bare(item.item) : item;
}

function isOf(item: Item | undefined, is: Item["is"]): boolean {
  return item !== undefined && bare(item).is === is;
}

/** Whether an item is a number without a tag. */
function isNumber(item: Item): item is Item & { is: "integer" | "float" } {
  return item.is === "integer" && (!item.isBig || has("cbor_number_big")) || item.is === "float";
}

function isPattern(item: Item): boolean {
  if (item.is === "text") return true;
  if (item.is !== "array" || item.items.length === 0) return false;
  const isShort = item.items.length <= 2 || has("cbor_pattern_long");
  const checked = has("cbor_pattern_flags") ? item.items.slice(0, 1) : item.items;
  return isShort && checked.every((each) => isOf(each, "text"));
}

/** Bytes of an element: the two lowest bits say it, of a float one step more. */
function sizeIn(tag: number): number {
  return 1 << (tag & 3) + (tag & FLOAT ? 1 : 0);
}

/** An array of numbers in the order of bytes that this port has. */
function littleTyped(tag: number, item: Item): Item {
  const size = sizeIn(tag);
  if (size === 1 || (tag & LITTLE) !== 0) return { is: "tagged", tag, item };
  const value = item.is === "bytes" && !has("cbor_typed_order")
    ? swapped(item.value, size)
    : joined(item.is === "bytes" ? [item.value] : []);
  return { is: "tagged", tag: tag + LITTLE, item: { is: "bytes", value, inParts: false } };
}

function big(tag: bigint, item: Item): bigint {
  const bytes = item.is === "bytes" ? item.value : new Uint8Array(0);
  const value = bytes.reduce((sum, byte) => sum << 8n | BigInt(byte), 0n);
  if (tag === BigInt(BIG)) return value;
  return (has("cbor_big_negative") ? 0n : -1n) - value;
}

function joined(parts: Uint8Array[]): Uint8Array {
  const whole = new Uint8Array(parts.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}

/** U+FEFF at the start of a text is a character like any other. */
function utf8Options() {
  return { ignoreBOM: !has("cbor_bom") };
}

function demand(good: boolean, fact: string): asserts good {
  if (!good) throw new CborError(fact);
}

// The small port: a value as a payload of codec `cbor`.

const [INTEGER, NEGATIVE] = [0, 1];
const FLOAT64 = 0xfb;
const WORDS = 0xe0;
const TOO_LARGE = 1n << 64n;

/** Writes a value: every head in as few bytes as it takes, every float in eight. [codec.cbor] */
export function writeCbor(item: Item): Uint8Array {
  const bytes: number[] = [];
  const numbers = new Map<Shared, number>();
  write(item, { bytes, numbers });
  return Uint8Array.from(bytes);
}

interface Output {
  bytes: number[];
  /** What others may refer to, and its number. */
  numbers: Map<Shared, number>;
}

function write(item: Item, output: Output): void {
  const { bytes } = output;
  switch (item.is) {
    case "integer":
      return integer(item.value, bytes);
    case "float":
      bytes.push(FLOAT64, ...float64(has("cbor_write_zero") ? item.value + 0 : item.value));
      return;
    case "word":
      bytes.push(WORDS + Number(item.value));
      return;
    case "bytes":
      return string(BYTES, item.value, item.value.length, bytes);
    case "text": {
      const text = new TextEncoder().encode(item.value);
      const size = has("cbor_write_units") ? item.value.length : text.length;
      return string(TEXT, text, size, bytes);
    }
    case "array":
    case "map": {
      const { is, items } = item;
      const count = is === "map" && !has("cbor_write_halves") ? items.length >> 1 : items.length;
      head(is === "map" ? MAP : ARRAY, BigInt(count), bytes);
      for (const each of items) write(each, output);
      return;
    }
    case "tagged": {
      const isLeft = item.tag === SET ? has("cbor_write_sets") : item.tag === KEYED &&
        has("cbor_write_maps");
      if (!isLeft) head(TAG, BigInt(item.tag), bytes);
      return write(item.item, output);
    }
    case "shared":
      return shared(item, output);
  }
}

/** [codec.cbor_shared] The first time as it is; a reference from then on, within itself as well. */
function shared(item: Shared, output: Output): void {
  const { bytes, numbers } = output;
  const number = numbers.get(item);
  if (number !== undefined) {
    head(TAG, BigInt(REFER), bytes);
    head(INTEGER, BigInt(number), bytes);
    return;
  }
  numbers.set(item, numbers.size + (has("cbor_write_from_one") ? 1 : 0));
  head(TAG, BigInt(SHARE), bytes);
  write(item.item!, output);
}

function integer(value: bigint, bytes: number[]): void {
  const isNegative = value < 0n;
  const rest = isNegative ? -1n - value : value;
  if (rest < TOO_LARGE) return head(isNegative ? NEGATIVE : INTEGER, rest, bytes);
  head(TAG, BigInt(isNegative ? BIG_NEGATIVE : BIG), bytes);
  const digits = rest.toString(16);
  const even = digits.padStart(digits.length + digits.length % 2, "0");
  const all = even.match(/../g)!.map((each) => parseInt(each, 16));
  string(BYTES, Uint8Array.from(all), all.length, bytes);
}

function string(major: number, content: Uint8Array, size: number, bytes: number[]): void {
  head(major, BigInt(size), bytes);
  for (const byte of content) bytes.push(byte);
}

function head(major: number, argument: bigint, bytes: number[]): void {
  const most = has("cbor_write_head") ? 24n : 23n;
  if (argument <= most) {
    bytes.push(major << 5 | Number(argument));
    return;
  }
  const size = argument < 1n << 8n ? 1 : argument < 1n << 16n ? 2 : argument < 1n << 32n ? 4 : 8;
  bytes.push(major << 5 | 24 + Math.log2(size));
  for (let at = size - 1; at >= 0; at--) bytes.push(Number(argument >> BigInt(8 * at) & 255n));
}

function float64(value: number): Uint8Array {
  const bytes = new Uint8Array(8);
  new DataView(bytes.buffer).setFloat64(0, value);
  return bytes;
}
