/**
 * The small port: a value as a payload of codec `cbor`.
 *
 * @module
 */

import { has } from "./faults.ts";
import type { Item, Shared } from "./small_cbor.ts";

const [INTEGER, NEGATIVE, BYTES, TEXT, ARRAY, MAP, TAG] = [0, 1, 2, 3, 4, 5, 6];
const [BIG, BIG_NEGATIVE, SHARE, REFER, SET, KEYED] = [2, 3, 28, 29, 258, 259];
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
