/**
 * The small port: lists of values, the payload of codec `values`.
 *
 * @module
 */

import { fromHex } from "../../reference/bytes.ts";
import type { Value } from "../../reference/case.ts";
import { packHex } from "../server.ts";
import { has } from "./faults.ts";
import { PortError, roundUp } from "./small_memory.ts";

const [BYTES, TEXT, JSON_TEXT, BATCH, VALUES] = [0, 1, 2, 3, 4];
const CODEC_APPLICATION = 128;
const [HEADER, ENTRY, ALIGN, COUNT_MAX] = [8, 8, 8, 256];

/** What no value of a list can hold. */
export const ODD: unique symbol = Symbol("odd");

/** What a method takes and gives: a text, JSON, bytes, or nothing. */
export type Plain = unknown;

/** Bytes of a codec of their own. */
class Coded {
  readonly codec: number;
  readonly bytes: Uint8Array;

  constructor(codec: number, bytes: Uint8Array) {
    this.codec = codec;
    this.bytes = bytes;
  }
}

/** Writes a list. Throws `call.result` for what it cannot hold. [call.values] */
export function writeValues(values: readonly Plain[]): Uint8Array {
  if (values.length === 0 && !has("empty_list_written")) return new Uint8Array(0);
  const all = values.map(encode);
  let end = HEADER + ENTRY * all.length;
  const places = all.map(({ bytes }) => {
    const at = has("values_packed") ? end : roundUp(end, ALIGN);
    end = at + bytes.length;
    return at;
  });
  const list = new Uint8Array(has("values_padded") ? roundUp(end, ALIGN) : end);
  const view = new DataView(list.buffer);
  view.setUint32(0, all.length, true);
  all.forEach(({ codec, bytes }, index) => {
    view.setUint32(HEADER + ENTRY * index, bytes.length, true);
    list[HEADER + ENTRY * index + 4] = codec;
    list.set(bytes, places[index]);
  });
  return list;
}

function encode(value: Plain): Coded {
  if (value instanceof Coded) return value;
  if (value instanceof Uint8Array) return new Coded(BYTES, value);
  if (value === undefined && has("absent_null")) return encode(null);
  if (value === undefined) return new Coded(JSON_TEXT, new Uint8Array(0));
  const utf8 = (text: string) => new TextEncoder().encode(text);
  if (typeof value === "string") return new Coded(TEXT, utf8(value));
  if (value === ODD) throw new PortError("call.result");
  return new Coded(JSON_TEXT, utf8(JSON.stringify(value)));
}

/** Makes all checks of the table, in its order, and gives the values. [call.values_check] */
export function readValues(list: Uint8Array): Plain[] {
  if (list.length === 0) return [];
  const refuse = (condition: boolean) => {
    if (condition) throw new PortError("message.values");
  };
  refuse(list.length < HEADER);
  const view = new DataView(list.buffer, list.byteOffset, list.length);
  const count = view.getUint32(0, true);
  const isReserved = view.getUint32(4, true) !== 0 && !has("list_reserved_ignored");
  refuse(count < 1 || count > COUNT_MAX || isReserved);
  let end = HEADER + ENTRY * count;
  refuse(end > list.length);
  const found: Coded[] = [];
  for (let index = 0; index < count; index++) {
    const entry = HEADER + ENTRY * index;
    const [size, codec] = [view.getUint32(entry, true), list[entry + 4]!];
    const begin = roundUp(end, ALIGN);
    refuse((view.getUint32(entry + 4, true) >>> 8) !== 0);
    refuse((codec === BATCH || codec === VALUES) && !has("lists_nested"));
    end = has("list_overflow") ? (begin + size) >>> 0 : begin + size;
    refuse(end > list.length);
    found.push(new Coded(codec, list.slice(begin, end)));
  }
  refuse(end !== list.length && !has("list_tail_ignored"));
  return found.map(decode);
}

function decode({ codec, bytes }: Coded): Plain {
  if (codec > VALUES && codec < CODEC_APPLICATION) throw new PortError("message.codec");
  if (codec === BYTES) return bytes;
  if (codec !== TEXT && codec !== JSON_TEXT) return new Coded(codec, bytes);
  if (codec === JSON_TEXT && bytes.length === 0) return undefined;
  const text = tryOr("message.text", () => strict.decode(bytes));
  return codec === TEXT ? text : tryOr("message.json", () => JSON.parse(text));
}

const strict = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

function tryOr<T>(code: string, call: () => T): T {
  try {
    return call();
  } catch {
    throw new PortError(code);
  }
}

/** The codec of a first value: a name is a text, and JSON of a string is none. */
export function isText(list: Uint8Array): boolean {
  return list.length >= HEADER + ENTRY && list[HEADER + 4] === TEXT;
}

/** A value as the kit sends it. */
export function fromKit(value: Value): Plain {
  if ("text" in value) return value.text;
  if ("json" in value) {
    return typeof value.json === "string"
      ? new Coded(JSON_TEXT, new TextEncoder().encode(JSON.stringify(value.json)))
      : value.json;
  }
  if ("hex" in value) return new Coded((value.codec ?? BYTES) as number, fromHex(value.hex!));
  return undefined;
}

/** A value as the kit is told of it. */
export function toKit(value: Plain): Value {
  if (value === undefined) return {};
  if (value instanceof Uint8Array) return { hex: packHex(value) };
  if (value instanceof Coded) return { hex: packHex(value.bytes), codec: value.codec };
  return { json: value };
}
