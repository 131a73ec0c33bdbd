/**
 * Codec `cbor`, for values that JSON cannot carry. It is an entry of its own, so that a program
 * that does not import it does not load it. See `spec/codec.md`.
 *
 * @module
 */

import { Encoder } from "cbor-x/encode";
import { refusal, revive, toWritable } from "./cbor_carry.ts";
import { check, SURE_SIZE } from "./cbor_check.ts";
import type { Codec } from "./codec.ts";
import { layout } from "../memory/layout.ts";

export type { Codec } from "./codec.ts";

/** Only registered tags, no records; whatever is read gets memory of its own. */
const OPTIONS = {
  useRecords: false,
  mapsAsObjects: true,
  variableMapSize: true,
  structuredClone: true,
  copyBuffers: true,
  tagUint8Array: false,
};
/** A parameter that the library's declarations leave out. */
type Writer = { encode(value: unknown, mode: number): Uint8Array };

/** The library's mode in which the next call writes into the same memory again. */
const RESET_BUFFER_MODE = 1024;

const library: Encoder = /* @__PURE__ */ new Encoder(OPTIONS);
/** Writes every number as a float, so that -0 stays apart from 0. */
const floats: Encoder = /* @__PURE__ */ new Encoder({ ...OPTIONS, alwaysUseFloat: true });

/**
 * Values as CBOR (RFC 8949) with its registered tags, for option `codec` of ports, hubs, writers
 * and readers. It uses the library cbor-x; with npm, install that beside the package. A value is
 * read exactly as it was written, or the write throws: the [guide](../../guide/values.md) has a
 * table of what each codec does with each kind of value.
 *
 * - JSON values, `undefined` within others, `NaN`, infinities, -0 and `BigInt`;
 * - `Date`, `RegExp`, `Map` and `Set`; errors, with their cause and stack;
 * - `ArrayBuffer`, `DataView` and typed arrays, each in memory of its own;
 * - one object in several places, an object or an array within itself, up to 1,024 levels deep;
 *   where the thread's stack is small, fewer can be written (some 900 in a worker of Chromium).
 *
 * `encode` throws a `TypeError` with a path such as `$.users[3].born` for functions, symbols,
 * instances of other classes, shared memory, holes in arrays, texts with lone surrogates,
 * properties called `__proto__`, and a `Map`, a `Set` or an error within itself. It also throws for
 * more than some million values, which is the most that a reader accepts. If `decode` throws, one
 * message is lost, with a `MessageError`, `message.codec`. An integer that was written in eight
 * bytes is read as a `BigInt`.
 *
 * The library has one table of extensions for the whole process: a program that adds classes or
 * tags of its own to it, with `addExtension` of cbor-x, changes what this codec does with them.
 *
 * The type of the values is `any`, as for `JSON.parse`: a reader gets whatever the peer has
 * written.
 *
 * @example
 * ```ts
 * import { Port } from "@millrace/millrace";
 * import { cbor } from "@millrace/millrace/cbor";
 *
 * interface Job {
 *   due: Date;
 *   seen: Map<string, bigint>;
 *   pixels: Float32Array;
 *   parent?: Job;
 * }
 * using here = Port.create<Job>({ codec: cbor });
 * using there = Port.attach<Job>(here.memory, { codec: cbor }); // usually in another thread
 * const job: Job = { due: new Date(), seen: new Map([["a", 1n]]), pixels: Float32Array.of(0.5) };
 * job.parent = job;
 * here.write(job);
 * const read = there.read();
 * console.log(read?.parent === read, read?.seen.get("a")); // true 1n
 * ```
 */
// deno-lint-ignore no-explicit-any
export const cbor: Codec<any> = {
  code: layout.CODEC_CBOR,
  encode(value: unknown): Uint8Array {
    if (value === undefined) {
      throw new TypeError("Cannot write undefined: it is what a read gives where nothing has come");
    }
    const { copy, deepest, hasMinusZero } = toWritable(value);
    const { buffer, byteOffset, length } = ((hasMinusZero ? floats : library) as Writer).encode(
      copy,
      RESET_BUFFER_MODE,
    );
    // A `slice` of Node's `Buffer` does not copy, so make a plain view.
    const bytes = new Uint8Array(buffer, byteOffset, length);
    // A value that occurs in several places has an additional tag around it.
    if (length > SURE_SIZE || 2 * deepest > layout.CBOR_DEPTH_MAX) {
      try {
        check(bytes);
      } catch (error) {
        throw refusal((error as Error).message);
      }
    }
    return bytes;
  },
  decode(payload: Uint8Array): unknown {
    const { bytes, hasClasses } = check(payload);
    const value: unknown = library.decode(bytes);
    return hasClasses ? revive(value) : value;
  },
};
