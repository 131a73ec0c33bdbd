/**
 * Checks CBOR before the library reads it, because the library accepts what the specification
 * refuses. See `spec/codec.md`.
 *
 * @module
 */

import { decodeText } from "./codec.ts";
import { layout } from "../memory/layout.ts";

const UINT = 0;
const BYTES = 2;
const TEXT = 3;
const ARRAY = 4;
const MAP = 5;
const TAG = 6;
/** The low bits of a head of indefinite length, and the byte that ends such an item. */
const INDEFINITE = 31;
const BREAK = 0xff;
/** A kind beside the major types: a map under tag 259, or one with keys that are not texts. */
const KEYED = 8;

const TAG_DATE_TEXT = 0;
const TAG_DATE = 1;
const TAG_BIG = 2;
const TAG_BIG_NEGATIVE = 3;
export const TAG_CLASS = 27;
const TAG_SHARED = 28;
const TAG_REFERENCE = 29;
const TAG_SET = 258;
const TAG_MAP = 259;
export const TAG_REGEXP = 21066;
const TAG_SELF = 55799;
const NO_TAG = -1;
const NO_NUMBER = -1;
const TAG_MAP_HEAD = [0xd9, TAG_MAP >> 8, TAG_MAP & 0xff];

/** A tag without a meaning to the library, which therefore returns its content as it is. */
export const TAG_CLASS_KEPT = 26;

/** The major types that a tag may be around, as bits. Of type 7, tag 1 allows floats only. */
const AROUND: Readonly<Record<number, number>> = {
  [TAG_DATE_TEXT]: 1 << TEXT,
  [TAG_DATE]: 1 << 0 | 1 << 1 | 1 << 7,
  [TAG_BIG]: 1 << BYTES,
  [TAG_BIG_NEGATIVE]: 1 << BYTES,
  [TAG_CLASS]: 1 << ARRAY,
  [TAG_SHARED]: 0xff,
  [TAG_REFERENCE]: 1 << UINT,
  [TAG_SET]: 1 << ARRAY,
  [TAG_MAP]: 1 << MAP,
  [TAG_REGEXP]: 1 << TEXT | 1 << ARRAY,
  [TAG_SELF]: 0xff,
};
/**
 * Element sizes in bytes of typed arrays, by tag from 64 on. The library does not support float16.
 */
const ELEMENT_SIZES = [1, 2, 4, 8, 1, 2, 4, 8, 1, 2, 4, 8, 0, 2, 4, 8, 0, 4, 8, 0, 0, 4, 8];

const RFC3339 = /^\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(?:\.\d+)?(?:[Zz]|[+-]\d\d:\d\d)$/;
/** The name of a property that the library would rename. */
export const PROTO = "__proto__";
/** U+FEFF in UTF-8. */
const MARK = [0xef, 0xbb, 0xbf];
/** Up to this many bytes, a loop is faster than a decoder (V8 14). */
const SHORT_SIZE = 64;
/** In longer texts, the library drops a U+FEFF at the start, if there is a `TextDecoder`. */
const MARK_KEPT_SIZE = typeof TextDecoder === "function" ? 64 : Infinity;

/**
 * The most that a message may cost: 1 for each item, `WEIGHT` more for a byte string, an array, a
 * map or a tag, `CLASS_WEIGHT` more for an error, for which the engine keeps a stack, and what
 * `costOfBig` adds.
 */
const COST_MAX = 1 << 22;
const WEIGHT = 3;
const CLASS_WEIGHT = 24;
/** The most characters of all regular expressions of a message, since the engine compiles them. */
export const PATTERN_SIZE_MAX: number = 1 << 18;
/** The most bytes of an integer that is written: the library needs time for the square of them. */
export const BIG_SIZE_MAX: number = 1 << 14;

/** A payload up to this size cannot have too many items. */
export const SURE_SIZE: number = 1 << 17;

/** The cost of an integer beyond 64 bits, by its size in bytes. */
function costOfBig(size: number): number {
  return size + size * size / 1024;
}

/** The bytes that the library can read, and whether they contain classes for `revive`. */
export interface Checked {
  bytes: Uint8Array;
  hasClasses: boolean;
}

/**
 * Checks a payload in one pass, without recursion. [codec.bad_cbor] Returns the payload itself, or,
 * if it is valid but written in a way that the library cannot read, a copy that is written
 * differently.
 *
 * @throws {Error} with what is wrong, and where.
 */
export function check(payload: Uint8Array): Checked {
  return new Check(payload).run();
}

/** An array or a map whose items have not all been seen. */
interface Frame {
  /** `ARRAY`, `MAP` for a map that becomes an object, or `KEYED`. */
  kind: number;
  /** The number of items still to come; `Infinity` if only a break tells the end. */
  left: number;
  /** The number of arrays, maps and tags around its items. */
  depth: number;
  isKeyNext: boolean;
  start: number;
  /** Its shared number, or `NO_NUMBER`; and whether a value within it refers to that number. */
  number: number;
  isMeant: boolean;
  /** Whether a tag around it turns it into something else. */
  isTagged: boolean;
}

class Check {
  readonly #bytes: Uint8Array;
  readonly #frames: Frame[] = [];
  /** By shared number: the array or map inside tag 28, while it is open. */
  readonly #shared: (Frame | undefined)[] = [];
  /** The edits to make: the start and end of the bytes to replace, and the new bytes. */
  readonly #edits: [number, number, ArrayLike<number>][] = [];
  #at = 0;
  #cost = 0;
  #hasClasses = false;

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
  }

  run(): Checked {
    const frames = this.#frames;
    let top: Frame | undefined;
    do {
      this.#takeItem(top);
      for (;;) {
        top = frames[frames.length - 1];
        if (top === undefined || !this.#takeEnd(top)) break;
        frames.pop();
        if (top.number !== NO_NUMBER) this.#shared[top.number] = undefined;
      }
    } while (top !== undefined);
    if (this.#at < this.#bytes.length) throw this.#bad("bytes follow upon the item");
    return { bytes: this.#edited(), hasClasses: this.#hasClasses };
  }

  /** Takes the break that ends the array or map, if there is one. Returns whether it ends here. */
  #takeEnd(frame: Frame): boolean {
    if (frame.left === 0) return true;
    const mayBreak = frame.left === Infinity && (frame.kind === ARRAY || frame.isKeyNext);
    if (!mayBreak || this.#bytes[this.#at] !== BREAK) return false;
    this.#at++;
    return true;
  }

  /** Takes an item with the tags around it; of an array or a map, only the head. */
  #takeItem(parent: Frame | undefined): void {
    let depth = parent?.depth ?? 0;
    let tag = NO_TAG;
    let number = NO_NUMBER;
    for (;;) {
      const start = this.#at;
      if (depth > layout.CBOR_DEPTH_MAX) throw this.#bad("it is nested too deeply");
      this.#charge(1);
      const head = this.#takeByte();
      const major = head >> 5;
      if (tag !== NO_TAG && ((AROUND[tag] ?? 1 << BYTES) >> major & 1) === 0) {
        throw this.#bad(`tag ${tag} around another type`);
      }
      if (major !== TAG) {
        const isKey = parent !== undefined && this.#countItem(parent, major, tag);
        if (major === ARRAY || major === MAP) {
          return this.#open(head, start, depth + 1, tag, number);
        }
        return this.#takeScalar(head, start, tag, isKey);
      }
      const inner = this.#takeArgument(head & 31);
      number = this.#checkTag(inner, start, tag, number);
      tag = inner;
      depth++;
    }
  }

  /** Checks and counts a tag. Returns the shared number of its content. */
  #checkTag(tag: number, start: number, outer: number, number: number): number {
    this.#charge(WEIGHT);
    const isKnown = AROUND[tag] !== undefined || ELEMENT_SIZES[tag - 64]! > 0;
    if (!isKnown) throw this.#bad(`tag ${tag}, which nobody knows`);
    // The library ignores this tag too, but requires that a shared item directly follows its tag
    // 28.
    if (tag === TAG_SELF) this.#edits.push([start, this.#at, []]);
    const isNext = number !== NO_NUMBER && (outer === TAG_SHARED || outer === TAG_SELF);
    if (isNext && (tag === TAG_SHARED || tag === TAG_REFERENCE)) {
      throw this.#bad("a tag 28 around another one, or around a tag 29");
    }
    if (tag === TAG_SHARED) return this.#shared.push(undefined) - 1;
    if (tag === TAG_CLASS) {
      this.#charge(CLASS_WEIGHT);
      this.#edits.push([this.#at - 1, this.#at, [TAG_CLASS_KEPT]]);
    }
    if (tag === TAG_CLASS || tag === TAG_REGEXP) this.#hasClasses = true;
    return number;
  }

  /**
   * Counts the next item of its parent. Returns whether it is the name of a property. A map with
   * any other key does not become an object.
   */
  #countItem(parent: Frame, major: number, tag: number): boolean {
    parent.left--;
    if (parent.kind === ARRAY) return false;
    const isKey = parent.isKeyNext;
    parent.isKeyNext = !isKey;
    if (!isKey || parent.kind === KEYED) return false;
    if (major === TEXT && isBare(tag)) return true;
    if (parent.isMeant) throw this.#bad("a map whose other keys come too late");
    parent.kind = KEYED;
    this.#edits.push([parent.start, parent.start, TAG_MAP_HEAD]);
    return false;
  }

  #open(head: number, start: number, depth: number, tag: number, number: number): void {
    this.#charge(WEIGHT);
    const isMap = head >> 5 === MAP;
    const size = isMap ? 2 : 1;
    const info = head & 31;
    const left = info === INDEFINITE ? Infinity : size * this.#takeArgument(info);
    if (left !== Infinity && left > this.#bytes.length - this.#at) throw this.#early();
    const kind = !isMap ? ARRAY : tag === TAG_MAP ? KEYED : MAP;
    const isTagged = !isBare(tag);
    const isKeyNext = isMap;
    const frame = { kind, left, depth, isKeyNext, start, number, isMeant: false, isTagged };
    this.#frames.push(frame);
    if (number !== NO_NUMBER) this.#shared[number] = frame;
  }

  #takeScalar(head: number, start: number, tag: number, isKey: boolean): void {
    const major = head >> 5;
    const info = head & 31;
    if (major === BYTES || major === TEXT) return this.#takeString(major, info, start, tag, isKey);
    if (major <= 1) {
      const value = this.#takeArgument(info);
      if (tag === TAG_REFERENCE) {
        this.#refer(value);
        // The library would make a BigInt of it, and no tag 28 has such a number.
        if (info === 27) this.#edits.push([start, this.#at, longHead(0, value)]);
      }
      // The library would make a BigInt of it, and a BigInt is not valid as a time.
      if (tag === TAG_DATE && info === 27) {
        const view = new DataView(new ArrayBuffer(9));
        view.setUint8(0, 0xfb);
        view.setFloat64(1, major === 0 ? value : -1 - value);
        this.#edits.push([start, this.#at, new Uint8Array(view.buffer)]);
      }
      return;
    }
    if (info >= 25 && info <= 27) return void this.#take(1 << (info - 24));
    if (info === INDEFINITE) throw this.#bad("a break outside of an item");
    if (info < 20 || info > 23) throw this.#bad("a value without a meaning");
    if (tag === TAG_DATE) throw this.#bad("tag 1 around another type");
  }

  /**
   * Checks a reference. The library supports values within themselves only for arrays and objects.
   */
  #refer(number: number): void {
    if (number >= this.#shared.length) throw this.#bad("a tag 29 with a number that nothing has");
    const frame = this.#shared[number];
    if (frame === undefined) return;
    if (frame.isTagged || frame.kind === KEYED) {
      throw this.#bad("a value within itself that is neither an array nor an object");
    }
    frame.isMeant = true;
  }

  #takeString(major: number, info: number, start: number, tag: number, isKey: boolean): void {
    if (major === BYTES) this.#charge(WEIGHT);
    let content = info === INDEFINITE ? this.#takeParts(major) : undefined;
    let isOther = content !== undefined;
    const length = content?.length ?? this.#takeArgument(info);
    if (content === undefined && this.#takePlainText(major, length, tag, isKey)) return;
    content ??= this.#takeContent(major, length);
    if (major === TEXT) {
      if (isKey && length === PROTO.length && decodeText(content) === PROTO) {
        throw this.#bad(`an object with a property ${PROTO}`);
      }
      if (length > MARK_KEPT_SIZE && MARK.every((byte, i) => content![i] === byte)) {
        isOther = true;
        content = concat([MARK, content]);
      }
      if (tag === TAG_DATE_TEXT) {
        const text = decodeText(content);
        const isDate = RFC3339.test(text) && !Number.isNaN(Date.parse(text));
        if (!isDate) throw this.#bad("a text that is no date");
      }
    } else if (tag === TAG_BIG || tag === TAG_BIG_NEGATIVE) this.#charge(costOfBig(length));
    else if (tag >= 64 && length % ELEMENT_SIZES[tag - 64]! > 0) {
      throw this.#bad("an element that is cut");
    }
    if (isOther) {
      this.#edits.push([start, this.#at, concat([longHead(major, content.length), content])]);
    }
  }

  /**
   * Takes a short ASCII text without special conditions, as most are, without making a view of it.
   * Returns false if the text is not such a one.
   */
  #takePlainText(major: number, length: number, tag: number, isKey: boolean): boolean {
    const isCandidate = major === TEXT && tag === NO_TAG && length <= SHORT_SIZE &&
      !(isKey && length === PROTO.length);
    if (!isCandidate) return false;
    const bytes = this.#bytes;
    const end = this.#at + length;
    if (end > bytes.length) return false;
    for (let at = this.#at; at < end; at++) if (bytes[at]! > 0x7f) return false;
    this.#at = end;
    return true;
  }

  /**
   * Takes the parts of a string of indefinite length: each has the same type and a definite length.
   */
  #takeParts(major: number): Uint8Array {
    const parts: Uint8Array[] = [];
    for (;;) {
      this.#charge(1);
      const head = this.#takeByte();
      if (head === BREAK) return concat(parts);
      if (head >> 5 !== major) throw this.#bad("a part of another type");
      parts.push(this.#takeContent(major, this.#takeArgument(head & 31)));
    }
  }

  #takeContent(major: number, size: number): Uint8Array {
    const at = this.#take(size);
    const content = this.#bytes.subarray(at, at + size);
    if (major === TEXT) decodeText(content);
    return content;
  }

  /** Adds to the cost of the message, before the work that costs it. */
  #charge(cost: number): void {
    this.#cost += cost;
    if (this.#cost > COST_MAX) throw this.#bad("it has too many items");
  }

  #takeByte(): number {
    const byte = this.#bytes[this.#at];
    if (byte === undefined) throw this.#early();
    this.#at++;
    return byte;
  }

  /** Takes so many bytes, and returns the offset of the first. [codec.cbor_memory] */
  #take(size: number): number {
    const at = this.#at;
    if (size > this.#bytes.length - at) throw this.#early();
    this.#at = at + size;
    return at;
  }

  /** Takes the number of a head. Above 2^53 it is not exact, but larger than any valid count. */
  #takeArgument(info: number): number {
    if (info < 24) return info;
    if (info > 27) throw this.#bad("a head that nobody may write");
    const size = 1 << (info - 24);
    const at = this.#take(size);
    let value = 0;
    for (let i = 0; i < size; i++) value = value * 256 + this.#bytes[at + i]!;
    return value;
  }

  #edited(): Uint8Array {
    if (this.#edits.length === 0) return this.#bytes;
    const pieces: ArrayLike<number>[] = [];
    let at = 0;
    for (const [from, to, bytes] of this.#edits.sort(([one], [other]) => one - other)) {
      pieces.push(this.#bytes.subarray(at, from), bytes);
      at = to;
    }
    return concat([...pieces, this.#bytes.subarray(at)]);
  }

  #early(): Error {
    return this.#bad("it ends too early");
  }

  #bad(why: string): Error {
    return new Error(`CBOR before byte ${this.#at}: ${why}`);
  }
}

/** Whether a tag leaves its content as it is. */
function isBare(tag: number): boolean {
  return tag === NO_TAG || tag === TAG_SHARED || tag === TAG_SELF;
}

/** Makes the head of an item of this major type, with a number of 32 bits. */
function longHead(major: number, value: number): number[] {
  return [major << 5 | 26, value >>> 24, value >> 16, value >> 8, value];
}

function concat(pieces: readonly ArrayLike<number>[]): Uint8Array {
  const whole = new Uint8Array(pieces.reduce((size, { length }) => size + length, 0));
  let at = 0;
  for (const piece of pieces) {
    whole.set(piece, at);
    at += piece.length;
  }
  return whole;
}
