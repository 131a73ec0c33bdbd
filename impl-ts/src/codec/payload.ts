/**
 * Payloads of what is no pipe, and of the parts of a call: encoded at once, into a scratch or into
 * memory of their own.
 *
 * @module
 */

import { throwCannot } from "../error.ts";
import { layout } from "../memory/layout.ts";
import { isBytes, requireMemory } from "../memory/realm.ts";
import { requireJson } from "./loss.ts";
import {
  type AnyCodec,
  type CodecName,
  copyOut,
  encodeBy,
  encodeText as encodeUtf8,
  isScratch,
  isWellFormed,
  NO_BYTES,
} from "./codec.ts";

/** A payload to be written: the first `size` bytes of `source`. */
export interface Payload {
  source: Uint8Array;
  size: number;
  /** The number of its codec. */
  code: number;
  /** Whether `source` lasts: it is neither the scratch nor memory of the application's codec. */
  isKept: boolean;
}

/** Stands for the words of memory that is not aligned to them. */
export const NO_WORDS: Int32Array = /* @__PURE__ */ new Int32Array(0);

/**
 * Up to so many bytes a copy into the caller's array by words, or by bytes, takes no longer than
 * `set`, which needs a view.
 */
const WORDS_SIZE = 512;
const BYTES_SIZE = 128;
const EMPTY: object = {};

/** Makes a payload into which a value can be encoded. */
export function makePayload(): Payload {
  return { source: NO_BYTES, size: 0, code: 0, isKept: true };
}

/**
 * Encodes one value that is not bytes. [codec.json]
 *
 * @throws {TypeError} if the codec cannot carry it.
 */
export function encodePayload(value: unknown, codec: CodecName | AnyCodec, payload: Payload): void {
  if (typeof codec !== "string") return encodeForeign(value, codec, payload);
  if (codec === "text" && typeof value === "string") {
    if (isWellFormed(value)) return encodeText(value, layout.CODEC_TEXT, payload);
    throwCannot("write text: it has a lone surrogate");
  }
  const text = codec === "json" ? jsonOf(value) : undefined;
  if (text !== undefined) return encodeText(text, layout.CODEC_JSON, payload);
  throwCannot(`write ${typeof value}: the codec ${codec} cannot carry it`);
}

/**
 * The text of a value; undefined if JSON has none.
 *
 * @throws {TypeError} if JSON would lose what it is, or what it has in its fields or in theirs.
 */
function jsonOf(value: unknown): string | undefined {
  requireJson(value);
  return JSON.stringify(value);
}

/**
 * Makes the bytes the payload as they are, without a copy.
 *
 * @throws {TypeError} if their memory is gone.
 */
export function takeBytes(
  bytes: Uint8Array,
  code: number,
  payload: Payload,
  isKept: boolean = true,
): void {
  if (bytes.length === 0) requireMemory(bytes);
  payload.source = bytes;
  payload.size = bytes.length;
  payload.code = code;
  payload.isKept = isKept;
}

/** Encodes a text that is made already and is well-formed. [codec.text] */
export function encodeText(text: string, code: number, payload: Payload): void {
  const bytes = encodeUtf8(text);
  takeBytes(bytes, code, payload, !isScratch(bytes));
}

function encodeForeign(value: unknown, codec: AnyCodec, payload: Payload): void {
  takeBytes(encodeBy(codec, value), codec.code, payload, false);
}

/** Copies a payload out of memory that is used again, so that it outlasts the call. */
export function detach(payload: Payload): void {
  if (payload.isKept) return;
  payload.source = copyOut(payload.source, 0, payload.size);
  payload.isKept = true;
}

/**
 * Copies a payload out of shared memory into the caller's array, if it is short without making a
 * view of it: by the words of the target, if there are any, where 64 bytes take 13 ns, or by the
 * words of the ring, 28 ns. `set` takes 33 ns with the view that it needs (V8 14, 15).
 */
export function copyInto(
  bytes: Uint8Array,
  ringWords: Int32Array,
  at: number,
  size: number,
  target: Uint8Array,
  targetWords: Int32Array,
): void {
  const count = targetWords.length > 0 ? size >> 2 : 0;
  if (size > (count > 0 ? WORDS_SIZE : BYTES_SIZE)) {
    return target.set(bytes.subarray(at, at + size));
  }
  const first = at >> 2;
  for (let i = 0; i < count; i++) targetWords[i] = ringWords[first + i]!;
  const done = count << 2;
  let to = size - 1;
  for (; to >= done && (to & 7) !== 7; to--) target[to] = bytes[at + to]!;
  for (let from = (at + to) >> 2; to >= done; from -= 2, to -= 8) {
    const high = ringWords[from]!;
    const low = ringWords[from - 1]!;
    target[to] = high >> 24;
    target[to - 1] = high >> 16;
    target[to - 2] = high >> 8;
    target[to - 3] = high;
    target[to - 4] = low >> 24;
    target[to - 5] = low >> 16;
    target[to - 6] = low >> 8;
    target[to - 7] = low;
  }
}

/** Whether a value is written the same inside a batch as alone. */
export function isBatchable(value: unknown): boolean {
  if (value === undefined || typeof value === "function" || typeof value === "symbol") return false;
  if (isBytes(value)) return false;
  const { toJSON } = (value ?? EMPTY) as { toJSON?: unknown };
  return typeof toJSON !== "function" || hasText(value);
}

/** Whether JSON has a text for a value with `toJSON`; if not, an array would show it as `null`. */
function hasText(value: unknown): boolean {
  try {
    return JSON.stringify(value) !== undefined;
  } catch {
    return true; // It throws again when it is encoded, in its turn.
  }
}

/** The largest array, in bytes, of which a view is kept for the next read. */
const KEPT_SIZE = 4096;

/** The array that was last read into, if it is small, and a view of it as words. */
export class KeptTarget {
  #target: Uint8Array | undefined;
  #words: Int32Array = NO_WORDS;

  /** Returns `target` as words, if it is small and the last read was into it too; else no words. */
  wordsOf(target: Uint8Array): Int32Array {
    if (target !== this.#target) {
      this.#target = target.length > KEPT_SIZE ? undefined : target;
      return this.#words = NO_WORDS;
    }
    // If the memory grows or shrinks, the array and a view of it change in different ways.
    const { length, byteOffset } = target;
    if (this.#words.length !== length >> 2 && (byteOffset & 3) === 0) {
      this.#words = new Int32Array(target.buffer, byteOffset, length >> 2);
    }
    return this.#words;
  }
}
