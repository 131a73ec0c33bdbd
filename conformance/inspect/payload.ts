/**
 * Payloads: a short look at their bytes, and whether a text or JSON message can be read.
 *
 * @module
 */

import { toHex } from "../reference/bytes.ts";
import { formOfCbor } from "../reference/cbor.ts";
import { valueOf } from "../reference/layout.ts";
import { readValues } from "../reference/values.ts";
import type { Payload } from "./inspection.ts";

/** Bytes of a payload that are shown, and characters that they may become. */
const PREVIEW_SIZE = 48;
const PREVIEW_HEX_SIZE = 6;
/** A larger message is not decoded: what the inspector keeps in memory has a bound. */
export const DECODE_MAX = 16 * 2 ** 20;

const TEXT = valueOf("codec", "text");
const JSON_TEXT = valueOf("codec", "json");
const BATCH = valueOf("codec", "json_batch");
const VALUES = valueOf("codec", "values");
const CBOR = valueOf("codec", "cbor");

/** A short look at bytes that stand at an offset. */
export function toPayload(bytes: Uint8Array, offset: number, size: number, codec: number): Payload {
  if (size === 0) return { offset, size, form: "none", preview: "" };
  const isText = codec === TEXT || codec === JSON_TEXT || codec === BATCH;
  const shown = bytes.slice(offset, offset + Math.min(size, PREVIEW_SIZE));
  const more = size > shown.length ? " …" : "";
  if (isText) {
    const text = quote(new TextDecoder("utf-8", { ignoreBOM: true }).decode(shown));
    return { offset, size, form: "text", preview: text + more };
  }
  const first = shown.subarray(0, PREVIEW_HEX_SIZE);
  const rest = size > first.length ? " …" : "";
  return { offset, size, form: "hex", preview: toHex(first) + rest };
}

/** A text in quotes. What a terminal would act upon, or nobody could see, is escaped. */
export function quote(text: string): string {
  // JSON escapes the control characters below U+0020; others remain, bidirectional ones too.
  return JSON.stringify(text).replace(
    /[\p{C}\p{Zl}\p{Zp}]/gu,
    (found) => `\\u{${found.codePointAt(0)!.toString(16)}}`,
  );
}

/** Why no reader could decode a whole message: a reason code and a fact; `undefined` if it can. */
export function undecodable(
  payload: Uint8Array,
  codec: number,
): { code: string; fact: string } | undefined {
  if (codec === VALUES) return unreadable(payload);
  if (codec === CBOR) {
    try {
      formOfCbor(payload);
      return undefined;
    } catch (error) {
      return { code: "message.codec", fact: `it is no CBOR: ${(error as Error).message}` };
    }
  }
  if (codec > BATCH) {
    if (codec >= 128) return undefined; // The application knows, and nobody else.
    return { code: "message.codec", fact: `no version of the layout has codec ${codec} yet` };
  }
  if (codec < TEXT) return undefined;
  let text: string;
  try {
    text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(payload);
  } catch {
    return { code: "message.text", fact: "the payload is not well-formed UTF-8" };
  }
  if (codec === TEXT) return undefined;
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return { code: "message.json", fact: "the payload is no JSON text" };
  }
  if (codec === JSON_TEXT || Array.isArray(value) && value.length > 0) return undefined;
  return { code: "message.json", fact: "the batch is no array of at least one element" };
}

/** The same for a list of values: the first thing that is wrong with it. */
function unreadable(list: Uint8Array): { code: string; fact: string } | undefined {
  try {
    readValues(list);
    return undefined;
  } catch (error) {
    if (error instanceof RangeError) return { code: "message.codec", fact: error.message };
    if (error instanceof SyntaxError) return { code: "message.json", fact: "a value is no JSON" };
    if (error instanceof TypeError) return { code: "message.text", fact: "a value is no UTF-8" };
    return { code: "message.values", fact: (error as Error).message.replace(/^\[.*?\] /, "") };
  }
}

/**
 * When a frame was finished, by its `time`; null for 0. How long ago that is counts as a signed
 * 32-bit number of microseconds, and what is below 0 as 0. [frame.time]
 */
export function toDate(time: number, now: number): string | null {
  if (time === 0) return null;
  const upTo = BigInt(Math.trunc(now)) * 1000n;
  const age = BigInt.asIntN(32, upTo - BigInt(time));
  const found = upTo - (age < 0n ? 0n : age);
  const date = new Date(Number(found / 1000n));
  if (found < 0n || Number.isNaN(date.getTime())) return null;
  return date.toISOString().replace("Z", `${String(found % 1000n).padStart(3, "0")}Z`);
}
