/**
 * A mutant: one fault, as a change to one of our implementations, and the clause that it breaks.
 * Mutants are rows of tables: `typescript/ring.txt` has those that break a clause of `ring`.
 *
 * @module
 */

/** Whose code a mutant changes. */
export type Implementation = "typescript" | "zig";

/** Where their code is. A mutant changes nothing else, the tests beside it neither. */
const FOLDERS: Readonly<Record<Implementation, string>> = {
  typescript: "impl-ts/src/",
  zig: "impl-zig/src/",
};

export const IMPLEMENTATIONS = Object.keys(FOLDERS) as Implementation[];

/** What a mutant changes in one place of a file. */
export interface Change {
  file: string;
  /** Lines that the file has exactly once, one after the other, at any indentation. */
  before: string[];
  /** The lines that replace them, at the same indentation. */
  after: string[];
}

/** A fault, and the changes that plant it, one after the other. */
export interface Mutant {
  name: string;
  implementation: Implementation;
  /** The clause that the fault breaks. */
  clause: string;
  /** What the code does wrong, in words. */
  fault: string;
  /** Whether it shows only in one order of events of two threads. */
  isRace: boolean;
  /** If nobody can see it: why. */
  equivalent?: string | undefined;
  changes: Change[];
}

/** A row that is not as it must be, or no longer fits its file. */
export class MutantError extends Error {
  override readonly name = "MutantError";
}

const FIELDS = ["mutant", "clause", "fault", "race", "equivalent"];

/** Reads a table, `typescript/ring.txt` for example: its rows are separated by an empty line. */
export function parseTable(path: string, text: string): Mutant[] {
  const [, folder, noun] = /^(\w+)\/(\w+)\.txt$/.exec(path) ?? [];
  const implementation = IMPLEMENTATIONS.find((each) => each === folder);
  if (implementation === undefined) throw new MutantError(`${path} is no table of mutants`);
  return text.trimEnd().split("\n\n").map((row) => parseRow(implementation, noun!, row));
}

/** Reads lines `field: text`, then for each change its file, and its lines as in a diff. */
function parseRow(implementation: Implementation, noun: string, row: string): Mutant {
  const lines = row.split("\n");
  const fail = (what: string) =>
    new MutantError(`${implementation}/${noun}.txt: ${lines[0]}: ${what}`);
  const fields = new Map<string, string>();
  const changes: Change[] = [];
  for (const line of lines) {
    const change = changes.at(-1);
    const [, sign, code = ""] = /^([-+ ])(?: (.*))?$/.exec(line) ?? [];
    const [, field, text] = /^(\w+): (.*\S)$/.exec(line) ?? [];
    if (sign !== undefined && change !== undefined) {
      if (sign !== "+") change.before.push(code);
      if (sign !== "-") change.after.push(code);
    } else if (field === "file") {
      changes.push({ file: text!, before: [], after: [] });
    } else {
      const isField = field !== undefined && FIELDS.includes(field) && change === undefined;
      if (!isField) throw fail(`no line of a row: ${line}`);
      if (fields.has(field)) throw fail(`${field} twice`);
      fields.set(field, text!);
    }
  }
  const [name, clause, fault, race, equivalent] = FIELDS.map((field) => fields.get(field));
  if (name === undefined) throw fail("has no name");
  if (clause === undefined || !clause.startsWith(`${noun}.`)) throw fail(`no clause of ${noun}`);
  if (fault === undefined) throw fail("does not say what the fault is");
  if (race !== undefined && race !== "yes") throw fail(`race is yes or left out, not ${race}`);
  if (changes.length === 0) throw fail("changes nothing");
  for (const { file, before, after } of changes) {
    if (!file.startsWith(FOLDERS[implementation])) throw fail(`${file} is not its to change`);
    if (before.length === 0) throw fail("adds lines, and does not say where");
    if (before.join("\n") === after.join("\n")) throw fail(`changes nothing in ${file}`);
  }
  const isRace = race !== undefined;
  return { name, implementation, clause, fault, isRace, equivalent, changes };
}

/** A file's text with a change. Throws `MutantError` if its lines are not there exactly once. */
export function plant(text: string, { file, before, after }: Change): string {
  const lines = text.split("\n");
  const places = lines.flatMap((line, at) => {
    const indent = line.slice(0, line.length - before[0]!.length);
    const isHere = indent.trim() === "" &&
      indented(before, indent).every((each, index) => each === lines[at + index]);
    return isHere ? [{ at, indent }] : [];
  });
  const [place] = places;
  if (place === undefined || places.length > 1) {
    throw new MutantError(`found ${places.length} times in ${file}: ${before.join(" / ")}`);
  }
  return lines.toSpliced(place.at, before.length, ...indented(after, place.indent)).join("\n");
}

function indented(lines: string[], indent: string): string[] {
  return lines.map((line) => line === "" ? "" : indent + line);
}

/** All mutants of the tables in a folder, by name. */
export async function loadMutants(folder: URL): Promise<Mutant[]> {
  const mutants: Mutant[] = [];
  for await (const { name: own, isDirectory } of Deno.readDir(folder)) {
    if (!isDirectory) continue;
    for await (const { name } of Deno.readDir(new URL(own, folder))) {
      const path = `${own}/${name}`;
      mutants.push(...parseTable(path, await Deno.readTextFile(new URL(path, folder))));
    }
  }
  return mutants.sort((a, b) => a.name < b.name ? -1 : 1);
}
