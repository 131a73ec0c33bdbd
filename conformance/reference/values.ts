/**
 * Lists of values, the payload of codec `values`: the reference encoder, a strict reader, and when
 * two values are the same.
 *
 * @module
 */

import { fromHex, number, toHex } from "./bytes.ts";
import type { Value } from "./case.ts";
import { formOfCbor } from "./cbor.ts";
import { put } from "./encode.ts";
import { fieldOf, limitOf, sizeOf, valueOf } from "./layout.ts";

const HEADER = sizeOf("values_header");
const ENTRY = sizeOf("value_entry");
const TEXT = valueOf("codec", "text");
const JSON_TEXT = valueOf("codec", "json");
const CBOR = valueOf("codec", "cbor");
/** What a list must not hold. */
const NEVER = [valueOf("codec", "json_batch"), valueOf("codec", "values")];

/** What fills the gaps: it has no meaning, and is not 0 here. */
const FILL = 0xee;

/** A value as it stands in a list. */
interface Encoded {
  codec: number;
  bytes: Uint8Array;
}

/** Builds the list of these values. */
export function buildValues(values: readonly Value[]): Uint8Array {
  if (values.length === 0) return new Uint8Array(0);
  const all = values.map(encode);
  const bytes: number[] = new Array(HEADER + ENTRY * all.length).fill(0);
  for (const each of all) {
    while (bytes.length % limitOf("values_align") !== 0) bytes.push(FILL);
    bytes.push(...each.bytes);
  }
  const list = Uint8Array.from(bytes);
  put(list, 0, "values_header", "count", all.length);
  all.forEach(({ codec, bytes: { length } }, index) => {
    put(list, entryAt(index), "value_entry", "size", length);
    put(list, entryAt(index), "value_entry", "codec", codec);
  });
  return list;
}

/** Where an entry begins, from the beginning of the list. */
export function entryAt(index: number): number {
  return HEADER + ENTRY * index;
}

function encode(value: Value): Encoded {
  if ("any" in value) throw new Error("any value cannot be written");
  const utf8 = (text: string) => new TextEncoder().encode(text);
  if ("text" in value) return { codec: TEXT, bytes: utf8(value.text) };
  if ("json" in value) return { codec: JSON_TEXT, bytes: utf8(JSON.stringify(value.json)) };
  if ("hex" in value) return { codec: value.codec ?? 0, bytes: fromHex(value.hex) };
  return { codec: JSON_TEXT, bytes: new Uint8Array(0) };
}

/**
 * Reads a list.
 *
 * @throws {Error} where it is not made as the chapter says
 * @throws {RangeError} for a codec that nobody knows
 * @throws {TypeError} for a value that is not UTF-8
 * @throws {SyntaxError} for one that is no JSON
 */
export function readValues(list: Uint8Array): Value[] {
  if (list.length === 0) return [];
  const load = (at: number, structure: string, field: string) => {
    const { offset, size } = fieldOf(structure, field);
    return number(list.subarray(at + offset, at + offset + size));
  };
  expect(list.length >= HEADER, "it ends in its header");
  const count = load(0, "values_header", "count");
  expect(count >= 1 && count <= limitOf("values_count_max"), `it has ${count} values`);
  expect(load(0, "values_header", "reserved") === 0, "its reserved bytes are not 0");
  let end = entryAt(count);
  expect(end <= list.length, "it ends among its entries");
  const found: Encoded[] = [];
  for (let index = 0; index < count; index++) {
    const at = entryAt(index);
    const [size, codec] = [load(at, "value_entry", "size"), load(at, "value_entry", "codec")];
    const begin = Math.ceil(end / limitOf("values_align")) * limitOf("values_align");
    end = begin + size;
    expect(load(at, "value_entry", "reserved") === 0, "the reserved bytes of an entry are not 0");
    expect(!NEVER.includes(codec), `a value has codec ${codec}`);
    expect(end <= list.length, "a value reaches beyond it");
    found.push({ codec, bytes: list.slice(begin, end) });
  }
  expect(end === list.length, "something stands behind its last value");
  return found.map(decode);
}

function decode({ codec, bytes }: Encoded): Value {
  const isKnown = codec <= JSON_TEXT || codec === CBOR || codec >= limitOf("codec_application_min");
  if (!isKnown) {
    throw new RangeError(`a list of values: no version of the layout has codec ${codec}`);
  }
  if (codec === CBOR) requireCbor(bytes);
  if (codec === JSON_TEXT && bytes.length === 0) return {};
  if (codec !== TEXT && codec !== JSON_TEXT) return { hex: toHex(bytes), codec };
  const text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  return codec === TEXT ? { text } : { json: JSON.parse(text) };
}

function requireCbor(bytes: Uint8Array): void {
  try {
    formOfCbor(bytes);
  } catch (error) {
    throw new RangeError(`a list of values: a value is no CBOR: ${(error as Error).message}`);
  }
}

function expect(good: boolean, fact: string): asserts good {
  if (!good) throw new Error(`[call.values] a list of values: ${fact}`);
}

/** A value in one form: a string is one, whether it was written as a text or as JSON. */
export function formOf(value: Value): string {
  if ("any" in value) return "any";
  if ("text" in value) return JSON.stringify(value.text);
  if ("json" in value) return JSON.stringify(value.json);
  if ("hex" in value) return `bytes of codec ${value.codec ?? 0}: ${toHex(fromHex(value.hex))}`;
  return "absent";
}
