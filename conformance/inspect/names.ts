/**
 * The names that `spec/layout.json` gives to numbers, the fields of its structures in their order,
 * and the sentences of the clauses.
 *
 * @module
 */

import file from "../../spec/layout.json" with { type: "json" };
import { readClauses } from "../../tools/clauses.ts";
import { fieldOf, limitOf, reasonName } from "../reference/layout.ts";

interface Named {
  name: string;
  value: number;
  about: string;
}

interface LayoutFile {
  structures: { name: string; fields: { name: string; offset: number }[] }[];
  enums: { name: string; values: Named[] }[];
  flags: { name: string; values: Named[] }[];
  reasons: Named[];
}

const layout: LayoutFile = file;

/** A field of a structure. */
export interface Field {
  name: string;
  offset: number;
  size: number;
}

const fields = new Map(layout.structures.map(({ name: structure, fields }) => [
  structure,
  fields.map(({ name, offset }) => ({ name, offset, size: fieldOf(structure, name).size })),
]));

/** The fields of a structure, in their order. */
export function fieldsOf(structure: string): readonly Field[] {
  return fields.get(structure)!;
}

/** The name of an enum's value, or `undefined`. Negative values are their two's complement. */
export function nameOf(group: string, value: number): string | undefined {
  const { values } = layout.enums.find(({ name }) => name === group)!;
  return values.find((entry) => entry.value === value || entry.value + 2 ** 32 === value)?.name;
}

/** The names of the bits that are set; what has none comes last, as a number. */
export function bitsOf(group: string, value: number): string[] {
  const { values } = layout.flags.find(({ name }) => name === group)!;
  const set = values.filter((entry) => (value & entry.value) !== 0);
  const rest = set.reduce((sum, entry) => sum - entry.value, value);
  return [...set.map(({ name }) => name), ...(rest === 0 ? [] : [toHexNumber(rest)])];
}

/** The name of a frame's kind. */
export function kindName(kind: number): string {
  if (kind >= limitOf("frame_kind_extension_min")) return `extension ${kind}`;
  return nameOf("frame_kind", kind) ?? `unknown ${kind}`;
}

/** The name of a codec. */
export function codecName(codec: number): string {
  if (codec >= limitOf("codec_application_min")) return `application ${codec}`;
  return nameOf("codec", codec) ?? `unknown ${codec}`;
}

/** An endpoint's state. */
export interface State {
  /** Its name, or `invalid` and the low byte. */
  name: string;
  /** What stands in the upper 24 bits beside failed; null where that is nothing. */
  reason: string | null;
  /** The upper 24 bits: of failed the reason, otherwise the low bits of the generation. */
  bits: number;
}

/** Takes a `state` word apart. */
export function toState(word: number): State {
  const mask = limitOf("state_mask");
  const bits = word >>> limitOf("reason_shift");
  const low = word & mask;
  const name = nameOf("endpoint_state", low) ?? `invalid ${low}`;
  return { name, bits, reason: name === "failed" && bits !== 0 ? reasonName(bits) : null };
}

/** A state as it is printed: the generation, or the reason, after its name. */
export function stateName(word: number): string {
  const { name, reason, bits } = toState(word);
  if (reason !== null) return `${name}: ${reason}`;
  const isBare = bits === 0 || nameOf("endpoint_state", word & limitOf("state_mask")) === undefined;
  return isBare ? name : `${name}, generation ${bits}`;
}

/** The end of a channel: an endpoint's index, or `nobody`. */
export function toEnd(index: number): string {
  return index === limitOf("endpoint_none") ? "nobody" : String(index);
}

/** The numbers of the bits that are set. */
export function toIndexes(bytes: Uint8Array): number[] {
  return [...bytes].flatMap((byte, at) =>
    [0, 1, 2, 3, 4, 5, 6, 7].flatMap((bit) => (byte >> bit & 1) === 1 ? [8 * at + bit] : [])
  );
}

/** What a reason code means. */
export function meaningOf(code: string): string {
  return layout.reasons.find(({ name }) => name === code)!.about;
}

const sentences = new Map<string, Map<string, string>>();

/**
 * The sentence of a clause; nothing where the chapters are not there. One is read when the first
 * clause of it is asked for.
 */
export function textOf(clause: string): string {
  const noun = clause.split(".")[0] as string;
  let chapter = sentences.get(noun);
  if (chapter === undefined) sentences.set(noun, chapter = readChapter(`spec/${noun}.md`));
  return chapter.get(clause) ?? "";
}

function readChapter(path: string): Map<string, string> {
  try {
    const text = Deno.readTextFileSync(new URL(`../../${path}`, import.meta.url));
    return new Map(readClauses({ path, text }).clauses.map(({ id, body }) => [id, body]));
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return new Map();
    throw error;
  }
}

/** An offset, or bits: in hexadecimal, as the chapters write them. */
export function toHexNumber(value: number): string {
  return `0x${value.toString(16)}`;
}

/** A count with separators, as the chapters write sizes. */
export function toCount(value: number): string {
  return String(value).replace(/\B(?=(?:\d{3})+$)/g, ",");
}

/** `1 frame`, `2 frames`. */
export function toPlural(count: number, one: string, many = `${one}s`): string {
  return `${toCount(count)} ${count === 1 ? one : many}`;
}
