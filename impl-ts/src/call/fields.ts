/**
 * Values of JSON that have bytes in them, which JSON cannot carry. A list of values carries such a
 * value as CBOR, which has byte strings. Only the part of CBOR that JSON needs is written and read
 * here: an application that needs all of it has the codec `cbor`. See `spec/call.md`.
 *
 * @module
 */

import { copyOut, decodeText, isWellFormed } from "../codec/codec.ts";
import { isLost, refuseParts } from "../codec/loss.ts";
import { lostError, throwCannot } from "../error.ts";
import { layout } from "../memory/layout.ts";
import { classOf, isBytes, requireMemory } from "../memory/realm.ts";

/** The major types of CBOR. */
const [POSITIVE, NEGATIVE, BYTES, TEXT, LIST, MAP, OTHER] = [0, 1, 2, 3, 4, 5, 7];
const [FALSE, TRUE, NULL, DOUBLE] = [0xf4, 0xf5, 0xf6, 0xfb];
const BREAK_INFO = 24;
/** Lists, maps and bytes cost as much memory as so many numbers. */
const WEIGHT = 4;
/** What a value may weigh: as much as the default limit of JSON allows. */
const MOST = 4 * 1024 * 1024;
const PROTO = "__proto__";

/** Encodes a value as JSON has it, except that bytes stay bytes. @throws {TypeError} */
export function encodeFields(value: unknown): Uint8Array {
  const encoder = new Encoder();
  if (encoder.item(value, "", 0)) return encoder.written();
  throwCannot(`write ${typeof value}: no codec of a call can carry it`);
}

class Encoder {
  #bytes = new Uint8Array(1024);
  #at = 0;
  readonly #texts = new TextEncoder();

  written(): Uint8Array {
    return this.#bytes.subarray(0, this.#at);
  }

  /** Writes a value; false if JSON leaves it out. */
  item(given: unknown, key: string, depth: number): boolean {
    const value = plainOf(given, key);
    switch (typeof value) {
      case "string":
        this.#text(value);
        return true;
      case "number":
        this.#number(value);
        return true;
      case "boolean":
        this.#byte(value ? TRUE : FALSE);
        return true;
      case "object":
        if (value === null) this.#byte(NULL);
        else if (isBytes(value)) this.#put(BYTES, value);
        else this.#holder(value, depth + 1);
        return true;
      case "bigint":
        throwCannot("write message: JSON cannot carry a BigInt; the codec cbor can");
    }
    return false;
  }

  #holder(value: object, depth: number): void {
    if (depth > layout.CBOR_DEPTH_MAX) throwCannot("write message: it is nested too deeply");
    if (isLost(value)) refuseParts(value, isLost); // made by a `toJSON`
    if (Array.isArray(value)) {
      this.#head(LIST, value.length);
      for (let index = 0; index < value.length; index++) {
        if (!this.item(value[index], `${index}`, depth)) this.#byte(NULL);
      }
      return;
    }
    const keys = Object.keys(value);
    const head = this.#at;
    // As long as it may become: some fields may be left out.
    this.#head(MAP, keys.length);
    let count = 0;
    for (const key of keys) {
      if (key === PROTO) throwCannot(`write message: it has a property ${PROTO} beside bytes`);
      const before = this.#at;
      this.#text(key);
      if (this.item((value as Record<string, unknown>)[key], key, depth)) count++;
      else this.#at = before;
    }
    const end = this.#at;
    this.#at = head;
    this.#head(MAP, count, keys.length);
    this.#at = end;
  }

  #text(text: string): void {
    if (!isWellFormed(text)) throwCannot("write message: a text beside bytes has a lone surrogate");
    const size = 3 * text.length;
    this.#reserve(size + 5);
    const head = this.#at;
    this.#head(TEXT, size);
    const { written } = this.#texts.encodeInto(text, this.#bytes.subarray(this.#at));
    const end = this.#at + written;
    this.#at = head;
    this.#head(TEXT, written, size);
    this.#at = end;
  }

  #put(major: number, bytes: Uint8Array): void {
    requireMemory(bytes);
    this.#head(major, bytes.length);
    this.#reserve(bytes.length);
    this.#bytes.set(bytes, this.#at);
    this.#at += bytes.length;
  }

  #number(value: number): void {
    if (!Number.isFinite(value)) return this.#byte(NULL);
    if (value >>> 0 === value) return this.#head(POSITIVE, value);
    if (~value >>> 0 === -1 - value) return this.#head(NEGATIVE, -1 - value);
    this.#byte(DOUBLE);
    this.#reserve(8);
    new DataView(this.#bytes.buffer).setFloat64(this.#at, value);
    this.#at += 8;
  }

  /** Writes the head of an item, as long as that of an item with the number `most`. */
  #head(major: number, count: number, most = count): void {
    this.#reserve(5);
    const size = most < BREAK_INFO ? 0 : most < 2 ** 8 ? 1 : most < 2 ** 16 ? 2 : 4;
    const info = size === 0 ? count : BREAK_INFO + (size >> 1);
    this.#bytes[this.#at++] = major << 5 | info;
    for (let shift = 8 * (size - 1); shift >= 0; shift -= 8) {
      this.#bytes[this.#at++] = count >>> shift;
    }
  }

  #byte(byte: number): void {
    this.#reserve(1);
    this.#bytes[this.#at++] = byte;
  }

  #reserve(size: number): void {
    const least = this.#at + size;
    if (least <= this.#bytes.length) return;
    const grown = new Uint8Array(Math.max(least, 2 * this.#bytes.length));
    grown.set(this.#bytes);
    this.#bytes = grown;
  }
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
  try {
    return new Decoder(payload).whole();
  } catch (cause) {
    throw lostError("message.codec", "its CBOR is not JSON with bytes", { cause });
  }
}

class Decoder {
  readonly #bytes: Uint8Array;
  readonly #view: DataView;
  #at = 0;
  #left = MOST;

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
    this.#view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  }

  whole(): unknown {
    const value = this.#item(0);
    if (this.#at !== this.#bytes.length) throw new RangeError("it goes on after its value");
    return value;
  }

  #item(depth: number): unknown {
    const head = this.#view.getUint8(this.#at++);
    const [major, info] = [head >> 5, head & 0x1f];
    if (major === OTHER) return this.#other(head);
    const count = info < BREAK_INFO ? info : this.#count(info);
    if (major === POSITIVE) return count;
    if (major === NEGATIVE) return -1 - count;
    if (major === TEXT) return decodeText(this.#take(count));
    this.#spend(WEIGHT, 0);
    if (major === BYTES) return copyOut(this.#take(count), 0, count);
    if (depth === layout.CBOR_DEPTH_MAX) throw new RangeError("it is nested too deeply");
    return major === LIST ? this.#list(count, depth + 1) : this.#map(major, count, depth + 1);
  }

  #list(count: number, depth: number): unknown[] {
    const list: unknown[] = [];
    for (this.#spend(count, count); list.length < count;) list.push(this.#item(depth));
    return list;
  }

  #map(major: number, count: number, depth: number): Record<string, unknown> {
    if (major !== MAP) throw new TypeError("it has a tag");
    const map: Record<string, unknown> = {};
    for (this.#spend(2 * count, 2 * count); count > 0; count--) {
      const key = this.#item(layout.CBOR_DEPTH_MAX);
      if (typeof key !== "string" || key === PROTO) throw new TypeError("it is no object");
      map[key] = this.#item(depth);
    }
    return map;
  }

  /** Counts what a value weighs, of which so many bytes at least must still come. */
  #spend(weight: number, size: number): void {
    this.#left -= weight;
    if (this.#left >= 0 && size <= this.#bytes.length - this.#at) return;
    throw new RangeError("it has too many items");
  }

  #other(head: number): unknown {
    const at = this.#at;
    if (head === DOUBLE) {
      this.#at += 8;
      return this.#view.getFloat64(at);
    }
    const known = [FALSE, TRUE, NULL].indexOf(head);
    if (known < 0) throw new TypeError("it has a value that JSON lacks");
    return [false, true, null][known];
  }

  /** The number of a head, of one, two or four bytes. */
  #count(info: number): number {
    const size = 1 << (info - BREAK_INFO);
    if (size > 4) throw new RangeError("it is longer than it can be");
    let count = 0;
    for (const byte of this.#take(size)) count = count * 256 + byte;
    return count;
  }

  #take(size: number): Uint8Array {
    const from = this.#at;
    this.#at += size;
    if (this.#at > this.#bytes.length) throw new RangeError("it ends too early");
    return this.#bytes.subarray(from, this.#at);
  }
}
