/**
 * The JSON codec with options. See `spec/codec.md`.
 *
 * @module
 */

import { type Codec, decodeJson, encodeJson } from "./codec.ts";
import { requireJson } from "./loss.ts";
import { instanceName, pathOf } from "./path.ts";
import { layout } from "../memory/layout.ts";
import { requireOptions } from "../error.ts";

/**
 * Options of the codec that `json` makes.
 *
 * @example
 * ```ts
 * import { Port } from "@millrace/millrace";
 * import { json, type JsonOptions } from "@millrace/millrace/json";
 *
 * const options: JsonOptions = { strict: true };
 * using port = Port.create<unknown>({ codec: json(options) });
 * port.write({ users: [{ born: "1815-12-10" }] }); // and no `Date`, of which JSON makes a string
 * ```
 */
export interface JsonOptions {
  /**
   * Whether a value of which JSON would lose something is refused, with a `TypeError` that says
   * where. JSON carries null, booleans, finite numbers, strings, arrays without holes and plain
   * objects; an undefined property may be left out, and -0 becomes 0. Default false: as with
   * `"json"`, a `Map`, a `Set`, and views and buffers of memory are refused, as values and as their
   * fields, and everything else becomes what `JSON.stringify` makes of it.
   */
  readonly strict?: boolean | undefined;
}

/**
 * Makes the codec `json` for option `codec` of ports, hubs and writers. It does all that `"json"`
 * does, and what the options say.
 *
 * @example
 * ```ts
 * import { Port } from "@millrace/millrace";
 * import { json } from "@millrace/millrace/json";
 *
 * using here = Port.create<unknown>({ codec: json({ strict: true }) });
 * using there = Port.attach<unknown>(here.memory); // it need not know
 * here.write({ list: [1, "two", null] });
 * console.log(there.read()); // { list: [ 1, "two", null ] }
 * try {
 *   here.write({ list: [1, NaN] });
 * } catch (error) {
 *   console.log(`${error}`); // "TypeError: Cannot write message: JSON cannot carry $.list[1], NaN"
 * }
 * ```
 */
// deno-lint-ignore no-explicit-any
export function json(options: JsonOptions = {}): Codec<any> {
  const { strict = false } = requireOptions(options);
  const vet = (value: unknown) => {
    const loss = strict ? lossIn(value, []) : undefined;
    if (loss !== undefined) throw new TypeError(`Cannot write message: JSON cannot carry $${loss}`);
  };
  return {
    code: layout.CODEC_JSON,
    vet,
    encode(value: unknown) {
      vet(value);
      requireJson(value);
      return encodeJson(value);
    },
    decode: decodeJson,
  };
}

/**
 * Says where JSON loses something of a value, and what. For a cycle, `JSON.stringify` itself
 * throws.
 */
function lossIn(value: unknown, holders: object[]): string | undefined {
  if (typeof value !== "object") {
    const isKept = typeof value === "string" || typeof value === "boolean" ||
      Number.isFinite(value);
    if (isKept) return undefined;
    const isNamed = typeof value === "number" || value === undefined;
    return `, ${isNamed ? value : `a ${typeof value}`}`;
  }
  if (value === null || holders.includes(value)) return undefined;
  if (!Array.isArray(value) && !isPlain(value)) return `, ${instanceName(value)}`;
  if (typeof (value as { toJSON?: unknown }).toJSON === "function") return ", which has a toJSON";
  holders.push(value);
  const loss = Array.isArray(value) ? lossInList(value, holders) : lossInObject(value, holders);
  holders.pop();
  return loss;
}

function lossInList(values: readonly unknown[], holders: object[]): string | undefined {
  for (let i = 0; i < values.length; i++) {
    const loss = lossIn(values[i], holders);
    if (loss !== undefined) return `[${i}]${loss}`;
  }
  return undefined;
}

function lossInObject(object: object, holders: object[]): string | undefined {
  for (const [key, value] of Object.entries(object)) {
    const loss = value === undefined ? undefined : lossIn(value, holders);
    if (loss !== undefined) return pathOf(key) + loss;
  }
  return undefined;
}

/** Whether an object is plain, and not an instance of a class, in any realm. */
function isPlain(value: object): boolean {
  const prototype = Object.getPrototypeOf(value);
  return prototype === null || Object.getPrototypeOf(prototype) === null;
}
