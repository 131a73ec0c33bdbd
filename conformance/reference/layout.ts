/**
 * The numbers of `spec/layout.json`, looked up by name: all that the reference encoder and the
 * cases know of the layout. Slow, and without a line of either implementation.
 *
 * @module
 */

// As a module, so that it comes along wherever the kit is run from.
import file from "../../spec/layout.json" with { type: "json" };

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
export interface Place {
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
