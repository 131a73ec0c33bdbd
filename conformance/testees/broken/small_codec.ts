/**
 * The small port: payloads as values.
 *
 * @module
 */

import { formOfCbor } from "../../reference/cbor.ts";
import { has } from "./faults.ts";
import { PortError } from "./small_memory.ts";
import type { Message } from "./small_reader.ts";

const [BYTES, TEXT, JSON_TEXT, BATCH, CBOR] = [0, 1, 2, 3, 5];

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
    // [codec.bad_cbor] Its value is its payload: it keeps what it has checked.
    if (!has("cbor_unchecked")) tryOr("message.codec", () => formOfCbor(payload));
    return [{ kind, codec, tag, payload: has("cbor_cut") ? payload.subarray(1) : payload }];
  }
  if (codec > BATCH) throw new PortError("message.codec");
  const text = tryOr("message.text", () => strict.decode(payload)); // [codec.bad_text]
  if (codec === TEXT) return [{ kind, codec, tag, text }];
  const json = tryOr("message.json", () => JSON.parse(text) as unknown); // [codec.bad_json]
  if (codec === JSON_TEXT) return [{ kind, codec, tag, json }];
  if (!Array.isArray(json) || json.length === 0) throw new PortError("message.json");
  // [codec.batch_read]
  return json.map((element: unknown) => ({ kind, codec: JSON_TEXT, tag, json: element }));
}

const strict = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

function tryOr<T>(code: string, call: () => T): T {
  try {
    return call();
  } catch {
    throw new PortError(code);
  }
}
