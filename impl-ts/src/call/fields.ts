/**
 * Values of JSON that have bytes in them, which JSON cannot carry. A list of values carries such a
 * value as CBOR, which has byte strings. Only the part of CBOR that JSON needs is written and read
 * here: an application that needs all of it has the codec `cbor`. See `spec/call.md`.
 *
 * @module
 */

import { copyOut, decodeText, isWellFormed } from "../codec/codec.ts";
import { isLost, refuseParts } from "../codec/loss.ts";
import { lostError, throwCannot, throwRangeError } from "../error.ts";
import { layout } from "../memory/layout.ts";
import { classOf, isBytes, requireMemory } from "../memory/realm.ts";

/** The major types of CBOR. */
const enum Major {
  POSITIVE,
  NEGATIVE,
  BYTES,
  TEXT,
  LIST,
  MAP,
  OTHER = 7,
}

/** What else there is: by the number in its head, except for the first byte of a double. */
const enum Other {
  FALSE = 20,
  TRUE = 21,
  NULL = 22,
  DOUBLE = 0xfb,
}

const enum Count {
  /** From here on, the number in a head says how many bytes the count after it has. */
  SIZES = 24,
  /** Lists, maps and bytes cost as much memory as so many numbers. */
  WEIGHT = 4,
  /** What a value may weigh: as much as the default limit of JSON allows. */
  MOST = 4 * 1024 * 1024,
}

const PROTO = "__proto__";

/**
 * Encodes a value as JSON has it, except that bytes stay bytes. Returns undefined if JSON has
 * nothing of it.
 *
 * @throws {TypeError} for what cannot be carried.
 */
export function encodeFields(given: unknown): Uint8Array | undefined {
  const encoder = new TextEncoder();
  let bytes = new Uint8Array(1024);
  let at = 0;

  /** Makes room for so many bytes. */
  const reserve = (size: number) => {
    const before = bytes;
    if (at + size <= before.length) return;
    bytes = new Uint8Array(2 * (at + size));
    bytes.set(before);
  };

  /** Writes the head of an item, as long as that of an item with the number `most`. */
  const head = (major: number, count: number, most = count) => {
    const size = most < Count.SIZES ? 0 : most < 2 ** 8 ? 1 : most < 2 ** 16 ? 2 : 4;
    reserve(5);
    bytes[at++] = major << 5 | (size === 0 ? count : Count.SIZES + (size >> 1));
    for (let shift = 8 * (size - 1); shift >= 0; shift -= 8) bytes[at++] = count >>> shift;
  };

  const put = (major: number, content: Uint8Array) => {
    requireMemory(content);
    head(major, content.length);
    reserve(content.length);
    bytes.set(content, at);
    at += content.length;
  };

  const putText = (text: string) => {
    if (!isWellFormed(text)) throwCannot("write message: a text beside bytes has a lone surrogate");
    put(Major.TEXT, encoder.encode(text));
  };

  /** Writes a value; false if JSON leaves it out. */
  const item = (given: unknown, key: string, depth: number): boolean => {
    const value = plainOf(given, key);
    if (typeof value === "string") putText(value);
    else if (typeof value === "boolean") head(Major.OTHER, value ? Other.TRUE : Other.FALSE);
    else if (value === null || typeof value === "number" && !Number.isFinite(value)) {
      head(Major.OTHER, Other.NULL);
    } else if (typeof value === "number") {
      if (value >>> 0 === value) head(Major.POSITIVE, value);
      else if (~value >>> 0 === -1 - value) head(Major.NEGATIVE, -1 - value);
      else {
        reserve(9);
        bytes[at] = Other.DOUBLE;
        new DataView(bytes.buffer).setFloat64(at + 1, value);
        at += 9;
      }
    } else if (isBytes(value)) put(Major.BYTES, value);
    else if (typeof value === "object") holder(value, depth + 1);
    else if (typeof value === "bigint") {
      throwCannot("write message: JSON cannot carry a BigInt; the codec cbor can");
    } else return false;
    return true;
  };

  const holder = (value: object, depth: number) => {
    if (depth > layout.CBOR_DEPTH_MAX) throwCannot("write message: it is nested too deeply");
    if (isLost(value)) refuseParts(value); // made by a `toJSON`
    if (Array.isArray(value)) {
      head(Major.LIST, value.length);
      for (let index = 0; index < value.length; index++) {
        if (!item(value[index], `${index}`, depth)) head(Major.OTHER, Other.NULL);
      }
      return;
    }
    const keys = Object.keys(value);
    const start = at;
    // As long as it may become: some fields may be left out.
    head(Major.MAP, keys.length);
    let count = 0;
    for (const key of keys) {
      if (key === PROTO) throwCannot(`write message: it has a property ${PROTO} beside bytes`);
      const before = at;
      putText(key);
      if (item((value as Record<string, unknown>)[key], key, depth)) count++;
      else at = before;
    }
    const end = at;
    at = start;
    head(Major.MAP, count, keys.length);
    at = end;
  };

  return item(given, "", 0) ? bytes.subarray(0, at) : undefined;
}

/** What JSON takes for a value: what its `toJSON` gives, or what a `Number` object holds. */
function plainOf(given: unknown, key: string): unknown {
  if (typeof given !== "object" && typeof given !== "bigint" || given === null) return given;
  const { toJSON } = given as { toJSON?: (key: string) => unknown };
  const isOwn = typeof toJSON === "function" && !isBytes(given);
  const value = isOwn ? toJSON.call(given, key) : given;
  if (typeof value !== "object" || value === null) return value;
  return /^(Number|String|Boolean|BigInt)$/.test(classOf(value)) ? value.valueOf() : value;
}

/**
 * Decodes a value that was written like that.
 *
 * @throws {MessageError} `message.codec` if it is anything else.
 */
export function decodeFields(payload: Uint8Array): unknown {
  const { length } = payload;
  const view = new DataView(payload.buffer, payload.byteOffset, length);
  let at = 0;
  let left: number = Count.MOST;

  const take = (size: number) => {
    const from = at;
    at += size;
    demand(at <= length, "end");
    return payload.subarray(from, at);
  };

  /** Counts what a value weighs, of which so many bytes at least must still come. */
  const spend = (weight: number, size: number) => {
    left -= weight;
    demand(left >= 0 && size <= length - at, "size");
  };

  const item = (depth: number): unknown => {
    const head = view.getUint8(at++);
    const major = head >> 5;
    const info = head & 0x1f;
    if (head === Other.DOUBLE) {
      at += 8;
      return view.getFloat64(at - 8);
    }
    if (major === Major.OTHER) {
      demand(info >= Other.FALSE && info <= Other.NULL, "value");
      return [false, true, null][info - Other.FALSE];
    }
    let count = info;
    if (info >= Count.SIZES) {
      const size = 1 << (info - Count.SIZES);
      demand(size <= 4, "count");
      count = 0;
      for (const byte of take(size)) count = count * 256 + byte;
    }
    if (major === Major.POSITIVE) return count;
    if (major === Major.NEGATIVE) return -1 - count;
    if (major === Major.TEXT) return decodeText(take(count));
    spend(Count.WEIGHT, 0);
    if (major === Major.BYTES) return copyOut(take(count), 0, count);
    demand(depth < layout.CBOR_DEPTH_MAX, "depth");
    if (major === Major.LIST) {
      const list: unknown[] = [];
      for (spend(count, count); list.length < count;) list.push(item(depth + 1));
      return list;
    }
    demand(major === Major.MAP, "type");
    const map: Record<string, unknown> = {};
    for (spend(2 * count, 2 * count); count > 0; count--) {
      const key = item(layout.CBOR_DEPTH_MAX);
      demand(typeof key === "string" && key !== PROTO, "key");
      map[key as string] = item(depth + 1);
    }
    return map;
  };

  try {
    const value = item(0);
    demand(at === length, "end");
    return value;
  } catch (cause) {
    throw lostError("message.codec", "its CBOR is not JSON with bytes", { cause });
  }
}

function demand(isSo: boolean, what: string): void {
  if (!isSo) throwRangeError(`its ${what} is wrong`);
}
