/**
 * How payloads are written: as bytes, text, JSON or JSON batches. See `spec/codec.md`.
 *
 * @module
 */

import { lostError, throwCannot, throwTypeError } from "../error.ts";
import { layout } from "../memory/layout.ts";
import { requireInteger } from "../memory/plan.ts";
import { isBytes } from "../memory/realm.ts";

/**
 * How a writer turns values into payloads. A reader decodes each message by the codec that the
 * message itself states, so the two sides need not choose the same. If a codec cannot carry a
 * value, the call that writes it throws a `TypeError`:
 *
 * - `json` takes any JSON value, and a `Uint8Array` as bytes. It refuses `undefined`, a function, a
 *   symbol, a `BigInt`, and a value that contains itself; and a `Map`, a `Set`, and views and
 *   buffers of memory, also in a field of a value, of which JSON keeps nothing. Otherwise it
 *   follows `JSON.stringify` inside a value: what JSON lacks is left out, or becomes `null`. A lone
 *   surrogate is escaped, and comes back.
 * - `text` takes strings without lone surrogates, which UTF-8 does not have. [codec.text]
 * - `bytes` takes a `Uint8Array`.
 *
 * @example
 * ```ts
 * import { type CodecName, Port } from "@millrace/millrace";
 *
 * for (const codec of ["json", "text", "bytes"] satisfies CodecName[]) {
 *   using here = Port.create<unknown>({ codec });
 *   using there = Port.attach<unknown>(here.memory); // it need not know
 *   here.write(codec === "bytes" ? Uint8Array.of(1) : codec);
 *   console.log(there.read()); // "json", then "text", then Uint8Array(1) [ 1 ]
 * }
 * ```
 */
export type CodecName = "json" | "text" | "bytes";

/**
 * A codec of the application's own, for option `codec` of a writer, a reader or a port.
 *
 * @typeParam In The values that it reads. @typeParam Out The values that it writes.
 *
 * @example
 * ```ts
 * import { type Codec, Port } from "@millrace/millrace";
 *
 * const point: Codec<[number, number]> = {
 *   code: 128,
 *   encode: (value) => new Uint8Array(Float64Array.from(value).buffer),
 *   decode(payload) {
 *     const [x = NaN, y = NaN] = new Float64Array(payload.buffer);
 *     return [x, y];
 *   },
 * };
 * using here = Port.create({ codec: point }); // a Port<[number, number]>
 * using there = Port.attach(here.memory, { codec: point });
 * here.write([0.5, -1]);
 * there.read(); // [0.5, -1]
 * ```
 */
export interface Codec<In = unknown, Out = In> {
  /**
   * The number that messages of this codec carry: from 128 to 255, or 5, the number of CBOR. Both
   * sides must mean the same codec by it. The codec that the function `json` makes has the number
   * 2.
   */
  readonly code: number;
  /**
   * Returns the payload. It is copied before `encode` is called again, so the codec may use the
   * same bytes each time. An error that it throws reaches the caller of `write`, and nothing is
   * written. While it runs, as while a `toJSON` does, every other write on the same end is refused.
   */
  encode(value: Out): Uint8Array;
  /**
   * Returns the value of a payload, never `undefined`. The payload is a private copy, which the
   * codec may keep. An error that it throws costs one message: the read throws a `MessageError`,
   * `message.codec`, with that error as its `cause`, and the next read goes on.
   */
  decode(payload: Uint8Array): In;
  /**
   * Checks each value before it is written as JSON, alone or in a batch, and throws for a value
   * that must not be written.
   *
   * @internal
   */
  vet?(value: Out): void;
}

/** Any codec of an application. */
export type AnyCodec = Codec<unknown, never>;

/** Throws unless this is a codec. */
export function requireCodec(codec: CodecName | AnyCodec): void {
  if (codec === "json" || codec === "text" || codec === "bytes") return;
  const { code, encode, decode, vet } = Object(codec) as Partial<AnyCodec>;
  if (typeof encode !== "function" || typeof decode !== "function") {
    throwTypeError(
      `codec must be "json", "text", "bytes", or have code, encode and decode: ${String(codec)}`,
    );
  }
  // 5: by `cbor`, or by another library. 2: by `json`, which has `vet`.
  if (code === layout.CODEC_CBOR || code === layout.CODEC_JSON && vet) return;
  requireInteger("codec.code", code!, layout.CODEC_APPLICATION_MIN, 255);
}

/** The application's codecs that a reader knows, by number. */
export type CodecTable = readonly (AnyCodec | undefined)[] | undefined;

/**
 * Makes the table of the option `codec`, which the peer's messages may use, and of further codecs.
 */
export function codecTable(
  codec: CodecName | AnyCodec = "json",
  codecs: readonly AnyCodec[] = [],
): CodecTable {
  const table: AnyCodec[] = [];
  for (const each of [codec, ...codecs]) {
    requireCodec(each);
    if (typeof each === "string") continue;
    const { code } = each;
    if ((table[code] ?? each) !== each) throwTypeError(`codecs must differ in code: ${code}`);
    table[code] = each;
  }
  return table;
}

const enum Size {
  SCRATCH = 65536,
  /** Up to this many bytes a loop takes no longer than `set`, which needs a view (V8 13, 14). */
  LOOP = 2048,
  /** The same limit for copies by bytes. */
  BYTES = 128,
}

/** An empty payload. */
export const NO_BYTES: Uint8Array = /* @__PURE__ */ new Uint8Array(0);

// All texts of a thread go through the same two scratches, and not through one for each pipe:
// whoever fills a scratch has its content copied, or decoded, before anybody else can fill it. Each
// is made for the first text. An audio worklet, which has neither encoder nor decoder, moves bytes
// only.
let encoded: Uint8Array | undefined;
let lastEncoded: Uint8Array | undefined;
let copied: Uint8Array | undefined;
let copiedWords: Int32Array;
let copiedDoubles: Float64Array;
let lastCopied: Uint8Array;
let encoder: TextEncoder | undefined;
let plainDecoder: TextDecoder | undefined;
let strictDecoder: TextDecoder | undefined;

/**
 * Encodes a text that is well-formed, into memory that the next text overwrites if it is short: see
 * `isScratch`. Not straight into the ring, whose place can be claimed only when the size is known.
 */
export function encodeText(text: string): Uint8Array {
  encoder ??= new TextEncoder();
  // One UTF-16 unit takes at most three bytes.
  if (text.length * 3 > Size.SCRATCH) return encoder.encode(text);
  encoded ??= new Uint8Array(Size.SCRATCH);
  const { written } = encoder.encodeInto(text, encoded);
  // Most texts are as long as the last.
  if (written !== lastEncoded?.length) lastEncoded = encoded.subarray(0, written);
  return lastEncoded;
}

/** Whether bytes are in memory that the next text overwrites. */
export const isScratch = (bytes: Uint8Array): boolean => bytes.buffer === encoded?.buffer;

/** Encodes a value by a codec of the application, whose memory the bytes may be. */
export function encodeBy(codec: AnyCodec, value: unknown): Uint8Array {
  const bytes: unknown = codec.encode(value as never);
  if (isBytes(bytes)) return bytes;
  throwCannot(`write message: codec ${codec.code} did not make a Uint8Array`);
}

/**
 * Copies the payload of a text out of shared memory. The copy must be decoded before the next one
 * is made. [codec.copy]
 *
 * It copies eight bytes at a time: 500 bytes take 30 ns, by words 65 (V8 13, 14). An engine may
 * change the bits of a double that is not a number. But the last two bytes of such a double, F0 or
 * more and then 7F or FF, do not occur in UTF-8, nor do those to which it is changed, so that such
 * a payload is refused. [codec.bad_text] What follows the payload may be anything, so no
 * double reaches there.
 */
export function takeCopy(
  bytes: Uint8Array,
  ringWords: Int32Array,
  ringDoubles: Float64Array,
  at: number,
  size: number,
): Uint8Array {
  if (size > Size.SCRATCH) return copyOut(bytes, at, size);
  if (copied === undefined) {
    lastCopied = copied = new Uint8Array(Size.SCRATCH);
    copiedWords = new Int32Array(copied.buffer);
    copiedDoubles = new Float64Array(copied.buffer);
  }
  // Most texts are as long as the last.
  if (size !== lastCopied.length) lastCopied = copied.subarray(0, size);
  if (size > Size.LOOP) copied.set(bytes.subarray(at, at + size));
  else {
    const words = copiedWords;
    const doubles = copiedDoubles;
    const count = size >> 3;
    for (let i = 0, from = at / 8; i < count; i++) doubles[i] = ringDoubles[from + i]!;
    for (let i = count << 1, from = at / 4; i << 2 < size; i++) words[i] = ringWords[from + i]!;
  }
  return lastCopied;
}

/**
 * Decodes a text, or what a text says as JSON. [codec.bad_text] [codec.bad_json]
 *
 * @throws {MessageError} `message.text` if it is not UTF-8, or longer than a string can be;
 * `message.json` if it is not JSON.
 */
export function decode(payload: Uint8Array, codec: number): unknown {
  let text: string | undefined;
  plainDecoder ??= new TextDecoder();
  try {
    // The plain decoder is three times faster in Deno (2.9: 165 against 485 ns for 119 bytes). It
    // differs from the strict one only in that it drops a U+FEFF at the start, and makes U+FFFD of
    // what is not UTF-8.
    if (payload[0] !== 0xef) { // the first of the three bytes of U+FEFF
      const plain = plainDecoder.decode(payload);
      if (!plain.includes("\ufffd")) text = plain;
    }
    if (text === undefined) {
      // A U+FEFF at the start is a character like any other.
      strictDecoder ??= new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
      text = strictDecoder.decode(payload);
    }
    return codec === layout.CODEC_TEXT ? text : JSON.parse(text);
  } catch (cause) {
    const isText = text !== undefined;
    throw lostError(
      isText ? "message.json" : "message.text",
      `it is not ${isText ? "JSON" : "UTF-8"}`,
      { cause },
    );
  }
}

/** Decodes a text. */
export const decodeText = (payload: Uint8Array): string =>
  decode(payload, layout.CODEC_TEXT) as string;

/** Decodes a JSON text. */
export const decodeJson = (payload: Uint8Array): unknown => decode(payload, layout.CODEC_JSON);

/** Makes the value of a JSON text. @throws {MessageError} `message.json` */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (cause) {
    throw lostError("message.json", "it is not JSON", { cause });
  }
}

/** Decodes a batch. @throws {MessageError} also if it is not an array of at least one element. */
export const decodeBatch = (payload: Uint8Array): unknown[] => requireBatch(decodeJson(payload));

/** Returns a batch. @throws {MessageError} if it is not an array of at least one element. */
export function requireBatch(values: unknown): unknown[] {
  if (Array.isArray(values) && values.length > 0) return values;
  throw lostError("message.json", "its batch is not a non-empty array");
}

/**
 * Decodes a payload by a codec of the application, which may keep the payload.
 *
 * @throws {MessageError} `message.codec` if the table does not have the codec, or the codec fails.
 */
export function decodeForeign(payload: Uint8Array, code: number, table: CodecTable): unknown {
  const codec = table?.[code];
  let why = "is unknown"; // [codec.unknown]
  let details: ErrorOptions | undefined;
  try {
    const value = codec?.decode(payload);
    if (value !== undefined) return value;
    if (codec) why = "made it undefined";
  } catch (cause) {
    why = `failed: ${shown(cause)}`;
    details = { cause };
  }
  throw lostError("message.codec", `its codec ${code} ${why}`, details);
}

/** Anything as a text, also if it has none. */
function shown(value: unknown): string {
  try {
    return String(value);
  } catch {
    return typeof value;
  }
}

/**
 * Encodes one element of a batch again, for a reader that wants messages and not values.
 *
 * @throws {MessageError} `message.json` if the element is nested too deeply: the parser, which does
 * not recurse, took it, but `JSON.stringify` runs out of stack.
 */
export function encodeJson(value: unknown): Uint8Array {
  try {
    encoder ??= new TextEncoder();
    return encoder.encode(JSON.stringify(value));
  } catch (cause) {
    throw lostError("message.json", "it is nested too deeply", { cause });
  }
}

/** Whether a string has no lone surrogate, so that it can be written as UTF-8. */
export const isWellFormed = (text: string): boolean =>
  (text as { isWellFormed?(): boolean }).isWellFormed?.() ?? !/\p{Surrogate}/u.test(text);

/**
 * Copies bytes into fresh private memory. `slice` would not do: on Node's `Buffer` it makes a view.
 */
export function copyOut(bytes: Uint8Array, at: number, size: number): Uint8Array<ArrayBuffer> {
  const copy = new Uint8Array(size);
  if (size > Size.BYTES) copy.set(bytes.subarray(at, at + size));
  else for (let index = 0; index < size; index++) copy[index] = bytes[at + index]!;
  return copy;
}
