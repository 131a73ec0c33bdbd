/**
 * The small port: payloads as values.
 *
 * @module
 */

import { has } from "./faults.ts";
import { CborError, type Item, readCbor } from "./small_cbor.ts";
import { writeCbor } from "./small_cbor_write.ts";
import { PortError } from "./small_memory.ts";
import type { Message } from "./small_reader.ts";

/** What the codec byte says. */
export const CBOR = 5;
const [BYTES, TEXT, JSON_TEXT, BATCH] = [0, 1, 2, 3];

/** A message that was decoded. */
export interface Value {
  kind: number;
  codec: number;
  tag: number;
  text?: string;
  json?: unknown;
  payload?: Uint8Array;
}

/** The values in a message: one, or the elements of a batch. Throws the report of a lost one. */
export function decode({ kind, codec, tag, payload }: Message): Value[] {
  if (codec === BYTES) return [{ kind, codec, tag, payload }];
  if (codec === CBOR && !has("cbor_unknown")) {
    const anew = has("cbor_unchecked") ? payload : writeCbor(read(payload));
    return [{ kind, codec, tag, payload: has("cbor_cut") ? anew.subarray(1) : anew }];
  }
  if (codec > BATCH) throw new PortError("message.codec");
  const text = tryOr("message.text", () => strict.decode(payload)); // [codec.bad_text]
  if (codec === TEXT) return [{ kind, codec, tag, text }];
  const json = tryOr("message.json", () => parse(text)); // [codec.bad_json]
  if (codec === JSON_TEXT) return [{ kind, codec, tag, json }];
  if (!Array.isArray(json) || json.length === 0) throw new PortError("message.json");
  // [codec.batch_read]
  return json.map((element: unknown) => ({ kind, codec: JSON_TEXT, tag, json: element }));
}

/** Some parsers take zeros before a number for nothing. */
function parse(text: string): unknown {
  return JSON.parse(has("json_zeros") ? text.replace(/^0+(?=\d)/, "") : text);
}

const strict = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** [codec.bad_cbor] */
function read(payload: Uint8Array): Item {
  try {
    return readCbor(payload);
  } catch (error) {
    if (error instanceof CborError) throw new PortError("message.codec");
    throw error;
  }
}

function tryOr<T>(code: string, call: () => T): T {
  try {
    return call();
  } catch {
    throw new PortError(code);
  }
}
