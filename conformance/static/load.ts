/**
 * The cases as they are checked in, and what each of them means once a changed one has taken over
 * everything else from the valid case that it names.
 *
 * @module
 */

import { fromHex, fromImage, toHex } from "../reference/bytes.ts";
import {
  type Case,
  changeMember,
  type Expectation,
  type InvalidCase,
  isInvalid,
  type Optional,
  type Setting,
  type ValidCase,
} from "../reference/case.ts";
import { get } from "../reference/decode.ts";
import { fieldOf, sizeOf } from "../reference/layout.ts";

/** A case that can be run. */
export interface Resolved {
  id: string;
  mayDecline: Optional[];
  setting: Setting;
  memory: Uint8Array;
  expect: Expectation;
}

/** The nouns that have a file of cases, in the order of the chapters. */
export const NOUNS = [
  ...["segment", "wait", "frame", "ring", "mailbox", "codec", "pipe", "port"],
  ...["call", "property", "fanout"],
];

/** The values of a file that holds one a line. */
export function readLines<Entry>(file: URL): Entry[] {
  return Deno.readTextFileSync(file).trimEnd().split("\n").map((line) => JSON.parse(line));
}

/** The cases of one noun. */
export function loadNoun(noun: string): Case[] {
  return readLines(new URL(`../cases/${noun}.jsonl`, import.meta.url));
}

/** All cases by their ids, in the order of the chapters. */
export function loadCases(): Map<string, Case> {
  return new Map(NOUNS.flatMap(loadNoun).map((entry) => [entry.id, entry]));
}

/** The valid case that a case is, or comes from. */
export function baseOf(entry: Case, cases: Map<string, Case>): ValidCase {
  if (!isInvalid(entry)) return entry;
  const base = cases.get(entry.from);
  if (base === undefined) throw new Error(`${entry.id}: there is no case ${entry.from}`);
  if (isInvalid(base)) throw new Error(`${entry.id}: ${entry.from} is no valid case`);
  return base;
}

/** Turns a case into what is to be run. Throws where its change is none, or not within a field. */
export function resolve(entry: Case, cases: Map<string, Case>): Resolved {
  const { id, expect, may_decline: mayDecline = [] } = entry;
  const setting = settingOf(baseOf(entry, cases));
  if (isInvalid(entry) && "member" in entry.change) {
    changeMember(id, setting, entry.change.member, entry.change.value);
  }
  const memory = fromImage(setting.image);
  if (isInvalid(entry) && "at" in entry.change) changeBytes(id, memory, entry.change);
  return { id, mayDecline, setting, memory, expect };
}

/** A copy of what a valid case states, except its name and what must come. */
function settingOf(entry: ValidCase): Setting {
  const { id: _, about: __, clauses: ___, may_decline: ____, expect: _____, ...setting } = entry;
  return structuredClone(setting);
}

/** Replaces one field of a structure, or the first bytes of a payload. */
function changeBytes(
  id: string,
  memory: Uint8Array,
  { at, structure, field, hex }: Extract<InvalidCase["change"], { at: number }>,
): void {
  const bytes = fromHex(hex);
  let place = { offset: sizeOf(structure), size: 0 };
  if (field === "payload") {
    const size = structure === "frame_header" ? "size" : "length";
    place.size = get(memory, at, structure, size);
    if (bytes.length > place.size) throw new Error(`${id}: the change is beyond the payload`);
  } else {
    place = fieldOf(structure, field);
    if (bytes.length !== place.size) throw new Error(`${id}: the change is not one field`);
  }
  const offset = at + place.offset;
  if (offset + bytes.length > memory.length) throw new Error(`${id}: beyond the memory`);
  const before = toHex(memory.slice(offset, offset + bytes.length));
  if (before === toHex(bytes)) throw new Error(`${id}: the change changes nothing`);
  memory.set(bytes, offset);
}
