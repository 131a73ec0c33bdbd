/**
 * The numbers of `spec/layout.json`, looked up by name: all that the reference encoder and the
 * cases know of the layout. Slow, and without a line of either implementation.
 *
 * @module
 */

import file from "../../spec/layout.json" with { type: "json" };
import { fromHex, type Run, toHex } from "./bytes.ts";

interface Named {
  name: string;
  value: number;
}

interface LayoutFile {
  structures: {
    name: string;
    size: number;
    fields: { name: string; offset: number; type: string }[];
  }[];
  enums: { name: string; values: Named[] }[];
  flags: { name: string; values: Named[] }[];
  limits: Named[];
  reasons: Named[];
}

const layout: LayoutFile = file;

/** A place in a structure: where it begins, and how many bytes it has. */
interface Place {
  offset: number;
  size: number;
}

/** Bytes of a structure. */
export function sizeOf(structure: string): number {
  return find(layout.structures, structure).size;
}

/** Where a field of a structure stands. */
export function fieldOf(structure: string, field: string): Place {
  const { offset, type } = find(find(layout.structures, structure).fields, field);
  const [, bits, count] = /^u(\d+)(?:\[(\d+)\])?$/.exec(type)!;
  return { offset, size: Number(bits) / 8 * Number(count ?? 1) };
}

/** A value of an enum. */
export function valueOf(group: string, name: string): number {
  return find(find(layout.enums, group).values, name).value;
}

/** A bit of a flags word. */
export function flagOf(group: string, name: string): number {
  return find(find(layout.flags, group).values, name).value;
}

/** A limit. */
export function limitOf(name: string): number {
  return find(layout.limits, name).value;
}

/** The number of a reason code. */
export function reasonOf(name: string): number {
  return find(layout.reasons, name).value;
}

/** The name of a reason code; a made-up one where there is no such number. */
export function reasonName(value: number): string {
  return layout.reasons.find((reason) => reason.value === value)?.name ?? `reason ${value}`;
}

/** All reason codes. */
export function reasonNames(): string[] {
  return layout.reasons.map(({ name }) => name);
}

function find<T extends { name: string }>(list: readonly T[], name: string): T {
  const found = list.find((entry) => entry.name === name);
  if (found === undefined) throw new Error(`spec/layout.json has no ${name}`);
  return found;
}

// The examples of the chapters as bytes, so that cases hold them as they are printed.

/** What `..`, a byte without a meaning, becomes. */
const FILL = "ee";

/**
 * Lines of an example: an offset in hexadecimal, the bytes, and a comment, which is cut off. Throws
 * where the chapter does not hold such a line any more.
 */
export function fromChapter(name: string, lines: string[]): Run[] {
  const text = Deno.readTextFileSync(new URL(`../../spec/${name}.md`, import.meta.url));
  const printed = text.split("\n").map((line) => line.trim());
  return lines.map((line) => {
    const isThere = printed.some((found) => found.startsWith(line));
    if (!isThere) throw new Error(`spec/${name}.md does not show: ${line}`);
    const [offset, ...rest] = line.split(/ +/) as [string, ...string[]];
    const end = rest.findIndex((token) => !/^(?:[0-9a-f]{2}|\.\.)$/.test(token));
    const bytes = rest.slice(0, end < 0 ? undefined : end).map((x) => x === ".." ? FILL : x);
    return { offset: parseInt(offset, 16), hex: toHex(fromHex(bytes.join(""))) };
  });
}

/** Puts such lines into memory, their offsets counted from `at`. */
export function place(bytes: Uint8Array, at: number, runs: Run[]): void {
  for (const { offset, hex } of runs) bytes.set(fromHex(hex), at + offset);
}

/** Throws where memory does not hold what a chapter shows. */
export function mustHold(bytes: Uint8Array, at: number, runs: Run[]): void {
  for (const { offset, hex } of runs) {
    const found = toHex(bytes.slice(at + offset, at + offset + fromHex(hex).length));
    if (found !== hex) throw new Error(`at ${offset}: ${found}, and in the chapter ${hex}`);
  }
}
