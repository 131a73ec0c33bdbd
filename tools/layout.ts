/**
 * Reads `spec/layout.json` and refuses it unless it describes a layout that can exist.
 *
 * The JSON Schema catches what has the wrong shape; the checks here catch what has the right shape
 * and is still wrong: overlapping fields, two names for one code, a flag of two bits. Every problem
 * names its place, and all are reported at once.
 *
 * @module
 */
import { Ajv2020, type ErrorObject } from "ajv/2020";
import { constantGroups } from "./layout_constants.ts";

/** Everything that `spec/layout.json` says. */
export interface Layout {
  about: string;
  version: { major: number; minor: number };
  structures: Structure[];
  enums: Group[];
  flags: Group[];
  limits: Limit[];
  reasons: Reason[];
}

/** Bytes with named places in them. */
export interface Structure {
  name: string;
  prefix: string;
  chapter: string;
  size: number;
  align: number;
  about: string;
  fields: Field[];
}

/** One place in a structure. */
export interface Field {
  name: string;
  offset: number;
  type: string;
  atomic: boolean;
  about: string;
}

/** Named values of one word: the one that it is (enums), or the bits that it has (flags). */
export interface Group {
  name: string;
  chapter: string;
  type?: "u8" | "u32" | "i32";
  about: string;
  values: { name: string; value: number; about: string }[];
}

/** A number that bounds or describes something. */
export interface Limit {
  name: string;
  chapter: string;
  value: number;
  unit: string;
  about: string;
}

/** A documented way in which something is wrong. */
export interface Reason {
  name: string;
  value: number;
  chapter: string;
  about: string;
}

/** The layout cannot be used; the message lists every problem, one a line. */
export class LayoutError extends Error {
  override name = "LayoutError";
  constructor(readonly problems: string[]) {
    super(`Cannot use layout.json:\n${problems.map((problem) => `  ${problem}`).join("\n")}`);
  }
}

const VALUE_RANGES = { u8: [0, 0xff], u32: [0, 0xffff_ffff], i32: [-0x8000_0000, 0x7fff_ffff] };

/** Reads, parses and checks `spec/layout.json` below the root. @throws {LayoutError} */
export async function readLayout(root: string): Promise<Layout> {
  const schema = JSON.parse(await Deno.readTextFile(`${root}/spec/layout.schema.json`));
  const text = await Deno.readTextFile(`${root}/spec/layout.json`);
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    throw new LayoutError([`not JSON: ${(error as Error).message}`]);
  }
  return checkLayout(value, schema);
}

/** Returns the value as a layout when it is one. @throws {LayoutError} */
export function checkLayout(value: unknown, schema: Record<string, unknown>): Layout {
  const validate = new Ajv2020({ allErrors: true, strict: true }).compile(schema);
  // What follows relies on the shape, so a wrong shape is reported alone.
  if (!validate(value)) throw new LayoutError((validate.errors ?? []).map(describe));
  const layout = value as Layout;
  const problems = [
    ...layout.structures.flatMap(structureProblems),
    ...layout.enums.flatMap((group) => groupProblems("enums", group)),
    ...layout.flags.flatMap((group) => groupProblems("flags", group)),
    ...layout.flags.flatMap(bitProblems),
    ...limitProblems(layout.limits),
    ...duplicates("structures", layout.structures.map((item) => item.name), "name"),
    ...duplicates("structures", layout.structures.map((item) => item.prefix), "prefix"),
    ...duplicates("enums and flags", [...layout.enums, ...layout.flags].map((g) => g.name), "name"),
    ...duplicates("limits", layout.limits.map((item) => item.name), "name"),
    ...duplicates("reasons", layout.reasons.map((item) => item.name), "name"),
    ...duplicates("reasons", layout.reasons.map((item) => item.value), "value"),
    ...constantProblems(layout),
  ];
  if (problems.length > 0) throw new LayoutError(problems);
  return layout;
}

/** Bytes that a field of this type takes. */
export function typeSize(type: string): number {
  const [, element = type, count = "1"] = /^(u\d+)\[(\d+)\]$/.exec(type) ?? [];
  return Number(element.slice(1)) / 8 * Number(count);
}

/** Whether a field of this type is several bytes or words rather than one number. */
export function isArray(type: string): boolean {
  return type.endsWith("]");
}

/** To what a field of this type is aligned: an array to its elements. */
function typeAlign(type: string): number {
  return typeSize(type.replace(/\[.*/, ""));
}

function describe(error: ErrorObject): string {
  const detail = error.keyword === "additionalProperties"
    ? ` "${error.params.additionalProperty}"`
    : error.keyword === "enum"
    ? ` ${JSON.stringify(error.params.allowedValues)}`
    : "";
  return `${error.instancePath || "/"}: ${error.message}${detail}`;
}

function structureProblems(structure: Structure): string[] {
  const place = `structures.${structure.name}`;
  const problems = duplicates(place, structure.fields.map((field) => field.name), "field");
  if (!isSingleBit(structure.align)) {
    problems.push(`${place}: align ${structure.align} is not a power of two`);
  }
  if (structure.size % structure.align !== 0) {
    problems.push(`${place}: size ${structure.size} is not a multiple of ${structure.align}`);
  }
  let end = 0;
  let before = "";
  for (const field of structure.fields) {
    const size = typeSize(field.type);
    const align = typeAlign(field.type);
    const say = (text: string) => problems.push(`${place}.${field.name}: ${text}`);
    if (field.offset < end) {
      say(`offset ${field.offset} overlaps or precedes ${before}, which ends at ${end}`);
    }
    if (field.offset + size > structure.size) {
      say(`ends at ${field.offset + size}, outside the ${structure.size} bytes`);
    }
    if (field.offset % align !== 0) say(`offset ${field.offset} is not ${align}-aligned`);
    if (align > structure.align) say(`${field.type} in a structure that is less aligned`);
    if (field.atomic && !/^[ui]32(\[|$)/.test(field.type)) {
      say(`only 32-bit words can be atomic, not ${field.type}`);
    }
    end = Math.max(end, field.offset + size);
    before = field.name;
  }
  return problems;
}

function groupProblems(section: string, group: Group): string[] {
  const place = `${section}.${group.name}`;
  const [min, max] = VALUE_RANGES[group.type ?? "u32"] as [number, number];
  return [
    ...duplicates(place, group.values.map((item) => item.name), "name"),
    ...duplicates(place, group.values.map((item) => item.value), "value"),
    ...group.values.filter((item) => item.value < min || item.value > max)
      .map((item) => `${place}.${item.name}: ${item.value} does not fit ${group.type ?? "u32"}`),
  ];
}

function bitProblems(group: Group): string[] {
  return group.values.filter((item) => !isSingleBit(item.value))
    .map((item) => `flags.${group.name}.${item.name}: ${item.value} is not a single bit`);
}

function limitProblems(limits: Limit[]): string[] {
  const values = new Map(limits.map((limit) => [limit.name, limit.value]));
  return limits.flatMap((limit) => {
    const max = limit.name.endsWith("_min") ? limit.name.replace(/_min$/, "_max") : "";
    const bound = values.get(max);
    if (bound === undefined || limit.value <= bound) return [];
    return [`limits.${limit.name}: ${limit.value} is above ${max}, ${bound}`];
  });
}

/** Two things of different sections may still end up as one constant. */
function constantProblems(layout: Layout): string[] {
  const names = constantGroups(layout).flatMap((group) => group.constants.map((item) => item.name));
  return duplicates("generated constants", names, "name");
}

function duplicates(place: string, items: (string | number)[], what: string): string[] {
  const seen = new Set<string | number>();
  return items.flatMap((item) => {
    if (seen.has(item)) return [`${place}: ${what} ${item} appears twice`];
    seen.add(item);
    return [];
  });
}

function isSingleBit(value: number): boolean {
  return value > 0 && Number.isInteger(Math.log2(value));
}
