/**
 * How payloads are written: bytes, text, JSON and JSON batches. See `spec/codec.md`.
 *
 * @module
 */

import { MessageError } from "./error.ts";
import { ENCODING, Gate } from "./gate.ts";
import { CODEC_APPLICATION_MIN, CODEC_BYTES, CODEC_JSON, CODEC_JSON_BATCH } from "./layout.ts";
import { CODEC_TEXT } from "./layout.ts";
import { SHORT_SIZE } from "./ring.ts";

/**
 * How a writer turns values into payloads. A reader goes by each message's own codec, whatever its
 * writer chose. What a codec cannot carry is a `TypeError` of the call that writes it:
 *
 * - `json` takes any JSON value, and a `Uint8Array` as bytes. It refuses `undefined`, a function, a
 *   symbol, a `BigInt`, and what contains itself. Inside a value it does as `JSON.stringify` does:
 *   what JSON lacks is left out, or becomes `null`. A lone surrogate is escaped, and comes back.
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
 * A codec of the application's own, for a writer, a reader or a port: its option `codec`.
 *
 * @typeParam In What it reads. @typeParam Out What it writes.
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
  /** The number that its messages carry, from 128 to 255. Both sides must mean the same by it. */
  readonly code: number;
  /**
   * Returns the payload, which is copied before this is called again: the codec may use the same
   * bytes for each. What it throws goes to the caller of `write`, and nothing is written. While it
   * runs, as while a `toJSON` does, every other write on the same end is refused.
   */
  encode(value: Out): Uint8Array;
  /**
   * Returns the value of a payload, never `undefined`. The payload is a copy, which is its own to
   * keep. What it throws costs one message: the read throws a `MessageError`, `message.codec`,
   * with that as its `cause`, and the next read goes on.
   */
  decode(payload: Uint8Array): In;
}

/** Any codec of an application. */
export type AnyCodec = Codec<unknown, never>;

/** Throws for what is no codec. */
export function requireCodec(codec: CodecName | AnyCodec): void {
  if (codec === "json" || codec === "text" || codec === "bytes") return;
  const { code, encode, decode } = (codec ?? EMPTY) as Partial<AnyCodec>;
  if (typeof encode !== "function" || typeof decode !== "function") {
    throw new TypeError(
      `codec must be "json", "text", "bytes", or have code, encode and decode: ${String(codec)}`,
    );
  }
  if (Number.isInteger(code) && code! >= CODEC_APPLICATION_MIN && code! <= CODEC_MAX) return;
  throw new RangeError(`codec.code must be from ${CODEC_APPLICATION_MIN} to ${CODEC_MAX}: ${code}`);
}

/** The codecs of an application that a reader knows, by number; undefined for none. */
export type CodecTable = ReadonlyMap<number, AnyCodec> | undefined;

/** Makes the table, of a codec that the peer's messages may have and of further ones. */
export function codecTable(
  codec: CodecName | AnyCodec = "json",
  codecs: readonly AnyCodec[] = [],
): CodecTable {
  const table = new Map<number, AnyCodec>();
  for (const each of typeof codec === "string" ? codecs : [codec, ...codecs]) {
    requireCodec(each);
    const other = table.get(each.code) ?? each;
    if (other !== each) throw new TypeError(`codecs must differ in code: ${each.code}`);
    table.set(each.code, each);
  }
  requireCodec(codec);
  return table.size === 0 ? undefined : table;
}

/** Where `null` has no properties to look at. */
const EMPTY: object = {};
/** The first of the three bytes of U+FEFF. */
const BOM_FIRST_BYTE = 0xef;
const SCRATCH_SIZE = 16 * 1024;
/** Largest number of a codec. */
const CODEC_MAX = 255;

// Made where a text first comes, one for the thread: an audio worklet has none, and moves bytes.
let encoder: TextEncoder | undefined;
let plainDecoder: TextDecoder | undefined;
let strictDecoder: TextDecoder | undefined;

function textEncoder(): TextEncoder {
  return encoder ??= new TextEncoder();
}

/** A payload: the first `size` bytes of `source`. */
export interface Encoded {
  readonly source: Uint8Array;
  readonly size: number;
  readonly codec: number;
}

/** Turns values into payloads; one for each writer, since the scratch is used again and again. */
export class Encoder {
  /** The payload: the first `size` bytes of `source`. */
  source: Uint8Array;
  size = 0;
  /** Its codec. */
  codec = 0;
  readonly #scratch: Uint8Array = new Uint8Array(SCRATCH_SIZE);
  readonly #scratchWords: Int32Array = new Int32Array(this.#scratch.buffer);
  readonly #sourceWords = new Words();
  /** Whether `source` belongs to a codec of the application, which may use it again. */
  #borrowed = false;
  readonly #gate: Gate;

  /** Makes the encoder of a writer that has such a gate, or of something without one. */
  constructor(gate: Gate = new Gate()) {
    this.source = this.#scratch;
    this.#gate = gate;
  }

  /** Whether a value is being encoded, in which the application's own code may run. */
  get active(): boolean {
    return this.#gate.has(ENCODING);
  }

  set active(active: boolean) {
    this.#gate.set(ENCODING, active);
  }

  /** Encodes one value. @throws {TypeError} if the codec cannot carry it. [codec.json] */
  encode(value: unknown, codec: CodecName | AnyCodec): void {
    if (value instanceof Uint8Array && (codec === "bytes" || codec === "json")) {
      return this.take(value, CODEC_BYTES);
    }
    this.active = true;
    try {
      this.#encode(value, codec);
    } finally {
      this.active = false;
    }
  }

  #encode(value: unknown, codec: CodecName | AnyCodec): void {
    if (typeof codec !== "string") return this.#foreign(value, codec);
    this.#borrowed = false;
    if (codec === "text" && typeof value === "string") {
      if (isWellFormed(value)) return this.#text(value, CODEC_TEXT);
      throw new TypeError("Cannot write text: it has a lone surrogate");
    }
    const text = codec === "json" ? JSON.stringify(value) : undefined;
    if (text === undefined) {
      throw new TypeError(`Cannot write ${typeof value}: the codec ${codec} cannot carry it`);
    }
    this.#text(text, CODEC_JSON);
  }

  /** Takes a payload as it is. */
  take(payload: Uint8Array, codec: number): void {
    this.#borrowed = false;
    this.source = payload;
    this.size = payload.length;
    this.codec = codec;
  }

  /** Encodes one value or more as one batch. [codec.batch] */
  encodeBatch(values: readonly unknown[]): void {
    this.active = true;
    try {
      this.encodeJson(JSON.stringify(values), CODEC_JSON_BATCH);
    } finally {
      this.active = false;
    }
  }

  /** Encodes what is a JSON text already. */
  encodeJson(text: string, codec: number): void {
    this.#borrowed = false;
    this.#text(text, codec);
  }

  /** The payload as it stands, to be restored later. */
  save(): Encoded {
    return { source: this.source, size: this.size, codec: this.codec };
  }

  /** Makes a saved payload the current one. */
  restore(encoded: Encoded): void {
    this.source = encoded.source;
    this.size = encoded.size;
    this.codec = encoded.codec;
  }

  /** Takes the payload out of what is used again, so that it survives the next `encode`. */
  detach(): void {
    if (this.source !== this.#scratch && !this.#borrowed) return;
    this.source = copyOut(this.source, 0, this.size);
    this.#borrowed = false;
  }

  /**
   * Throws where `source` no longer holds the payload. It is the caller's own while a write of
   * bytes waits, and the caller can transfer it, or make it smaller; what would be sent in place of
   * the rest are old bytes of the ring.
   */
  requireWhole(): void {
    if (this.source.length >= this.size) return;
    throw new TypeError("Cannot write message: its bytes were detached, or are fewer now");
  }

  /** The whole words of `source`, or undefined while there is no view of them. */
  words(): Int32Array | undefined {
    const { source } = this;
    return source === this.#scratch ? this.#scratchWords : this.#sourceWords.of(source);
  }

  /** Copies a part of the payload into a byte area. */
  copy(from: number, size: number, bytes: Uint8Array, at: number): void {
    if (size === 0) return; // of memory that was detached, nothing can be set
    const { source } = this;
    const isWhole = from === 0 && size === source.length;
    bytes.set(isWhole ? source : source.subarray(from, from + size), at);
  }

  #foreign(value: unknown, codec: AnyCodec): void {
    const bytes: unknown = codec.encode(value as never);
    if (!(bytes instanceof Uint8Array)) {
      throw new TypeError(`Cannot write message: codec ${codec.code} did not make a Uint8Array`);
    }
    this.source = bytes;
    this.size = bytes.length;
    this.codec = codec.code;
    this.#borrowed = true;
  }

  #text(text: string, codec: number): void {
    this.codec = codec;
    // [codec.text] What comes here is well-formed. One UTF-16 unit takes at most three bytes.
    if (text.length * 3 <= SCRATCH_SIZE) {
      // Into the scratch and not into the ring: the size must be known before the claim, and the
      // copy of a short text by words costs a tenth of the encoding.
      this.size = textEncoder().encodeInto(text, this.#scratch).written;
      this.source = this.#scratch;
    } else {
      this.source = textEncoder().encode(text);
      this.size = this.source.length;
    }
  }
}

/** Turns payloads into values. It reads private memory only. [codec.copy] */
export class Decoder {
  /** What a payload is copied to, as bytes and as words. */
  readonly scratch: Uint8Array = new Uint8Array(SCRATCH_SIZE);
  readonly words: Int32Array = new Int32Array(this.scratch.buffer);
  #view: Uint8Array = this.scratch;

  /** Copies a payload out of shared memory, for `decode`; valid until the next call. */
  take(bytes: Uint8Array, at: number, size: number): Uint8Array {
    if (size > SCRATCH_SIZE) return copyOut(bytes, at, size);
    this.scratch.set(bytes.subarray(at, at + size));
    return this.taken(size, false);
  }

  /** The payload that the scratch begins with: a view, or memory of its own. */
  taken(size: number, isOwn: boolean): Uint8Array {
    if (isOwn) return this.scratch.slice(0, size);
    // Most are as long as the one before; a view costs a twentieth of what a short JSON does.
    if (this.#view.length !== size) this.#view = this.scratch.subarray(0, size);
    return this.#view;
  }

  /**
   * Decodes a text. [codec.bad_text]
   *
   * @throws {MessageError} `message.text` if it is not UTF-8, or longer than any string can be.
   */
  text(payload: Uint8Array): string {
    plainDecoder ??= new TextDecoder();
    try {
      // The plain decoder is three times faster in Deno (2.9: 165 against 485 ns for 119 bytes). It
      // differs only where it drops a U+FEFF at the start, or shows U+FFFD for what is no UTF-8.
      if (payload[0] !== BOM_FIRST_BYTE) {
        const text = plainDecoder.decode(payload);
        if (!text.includes("\ufffd")) return text;
      }
      // A U+FEFF at the start is a character like any other.
      strictDecoder ??= new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
      return strictDecoder.decode(payload);
    } catch (cause) {
      throw new MessageError("message.text", "Cannot read message: it is not UTF-8", { cause });
    }
  }

  /**
   * Decodes a JSON text. [codec.bad_json]
   *
   * @throws {MessageError} `message.text` or `message.json`.
   */
  json(payload: Uint8Array): unknown {
    const text = this.text(payload);
    try {
      return JSON.parse(text);
    } catch (cause) {
      throw new MessageError("message.json", "Cannot read message: it is not JSON", { cause });
    }
  }

  /** Decodes a batch. @throws {MessageError} also if it is not an array of one element or more. */
  batch(payload: Uint8Array): unknown[] {
    const values = this.json(payload);
    if (Array.isArray(values) && values.length > 0) return values;
    throw new MessageError("message.json", "Cannot read batch: it is not a non-empty array");
  }

  /**
   * Decodes a payload of a codec of the application's, which may keep it.
   *
   * @throws {MessageError} `message.codec` if the table does not have it, or if it fails.
   */
  foreign(payload: Uint8Array, code: number, table: CodecTable): unknown {
    const codec = table?.get(code);
    if (codec === undefined) { // [codec.unknown]
      throw new MessageError("message.codec", `Cannot read message: codec ${code}`);
    }
    let value: unknown;
    try {
      value = codec.decode(payload);
    } catch (cause) {
      const why = `its codec ${code} failed: ${cause}`;
      throw new MessageError("message.codec", `Cannot read message: ${why}`, { cause });
    }
    if (value !== undefined) return value;
    const why = `its codec ${code} made it undefined`;
    throw new MessageError("message.codec", `Cannot read message: ${why}`);
  }
}

/**
 * Encodes one element of a batch again, for a reader that wants messages and not values.
 *
 * @throws {MessageError} `message.json` if it is nested too deeply: parsed it was, by a parser
 * without recursion, but `JSON.stringify` runs out of stack.
 */
export function encodeJson(value: unknown): Uint8Array {
  try {
    return textEncoder().encode(JSON.stringify(value));
  } catch (cause) {
    throw new MessageError("message.json", "Cannot read message: it is nested too deeply", {
      cause,
    });
  }
}

/** Whether a string has UTF-8. */
function isWellFormed(text: string): boolean {
  const { isWellFormed } = text as { isWellFormed?(): boolean };
  return isWellFormed === undefined ? !/\p{Surrogate}/u.test(text) : isWellFormed.call(text);
}

/** Whether a value means the same inside a batch as alone. */
export function isBatchable(value: unknown): boolean {
  if (value === undefined || typeof value === "function" || typeof value === "symbol") return false;
  if (value instanceof Uint8Array) return false;
  const { toJSON } = (value ?? EMPTY) as { toJSON?: unknown };
  return typeof toJSON !== "function" || hasText(value);
}

/** Whether anything is left of a value with `toJSON`: an array would show nothing as `null`. */
function hasText(value: unknown): boolean {
  try {
    return JSON.stringify(value) !== undefined;
  } catch {
    return true; // It throws again where it is encoded, in its turn.
  }
}

/** Copies bytes into fresh private memory. `slice` would not: that of Node's `Buffer` is a view. */
export function copyOut(bytes: Uint8Array, at: number, size: number): Uint8Array {
  const copy = new Uint8Array(size);
  copy.set(bytes.subarray(at, at + size));
  return copy;
}

/** Copies bytes of shared memory into the caller's, where there is no view of their words. */
export function copyInto(
  bytes: Uint8Array,
  words: Int32Array,
  at: number,
  size: number,
  target: Uint8Array,
): void {
  if (size > SHORT_SIZE) {
    target.set(bytes.subarray(at, at + size));
    return;
  }
  // A view for `set` costs more than a loop over a short payload.
  const whole = size & ~3;
  let to = 0;
  for (let from = at >> 2; to < whole; from++, to += 4) {
    const word = words[from]!;
    target[to] = word;
    target[to + 1] = word >> 8;
    target[to + 2] = word >> 16;
    target[to + 3] = word >> 24;
  }
  for (; to < size; to++) target[to] = bytes[at + to]!;
}

/** Memory of the caller's, which may change its size; older runtimes have none that does. */
interface Resizable {
  readonly byteLength: number;
  readonly resizable?: boolean;
  readonly growable?: boolean;
}

/** Largest memory of a caller of which a view is kept, so that no large one is kept alive. */
const KEPT_SIZE = 64 * 1024;

/**
 * A view of words of the caller's array, kept from its second use in a row to the next array: most
 * use one again and again. By words, 64 bytes are copied in 9 ns, by bytes in 50, with the views
 * that `set` needs in 40 (measured: V8 14).
 */
export class Words {
  #last: Uint8Array | undefined;
  #words: Int32Array | undefined;

  /** The whole words of an array, or undefined while there is no view of them. */
  of(bytes: Uint8Array): Int32Array | undefined {
    return bytes === this.#last && this.#words !== undefined ? this.#words : this.#keep(bytes);
  }

  #keep(bytes: Uint8Array): Int32Array | undefined {
    const { buffer, byteOffset } = bytes;
    const isSecond = bytes === this.#last;
    this.#last = this.#words = undefined;
    // A view keeps its length while memory shrinks, or grows under an array that tracks it. Memory
    // that was detached is empty, and has no views.
    const { byteLength, resizable, growable } = buffer as Resizable;
    if (resizable || growable || byteLength === 0 || byteLength > KEPT_SIZE) return undefined;
    if ((byteOffset & 3) !== 0) return undefined;
    this.#last = bytes;
    if (isSecond) this.#words = new Int32Array(buffer, byteOffset, bytes.byteLength >> 2);
    return this.#words;
  }
}
