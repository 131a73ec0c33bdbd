/**
 * A mutant: one fault, as a patch to one of our implementations, and the clause that it breaks.
 *
 * @module
 */

/** Whose code a mutant changes. */
export type Implementation = "typescript" | "zig";

/** Where their code is. A patch changes nothing else, the tests beside it neither. */
const FOLDERS: Readonly<Record<Implementation, string>> = {
  typescript: "impl-ts/src/",
  zig: "impl-zig/src/",
};

export const IMPLEMENTATIONS = Object.keys(FOLDERS) as Implementation[];

/** A fault, and the patch that plants it. */
export interface Mutant {
  /** The name of its file, without `.patch`. */
  name: string;
  implementation: Implementation;
  /** The clause that the fault breaks. */
  clause: string;
  /** What the code does wrong, in words. */
  fault: string;
  /** Whether it shows only in one order of events of two threads. */
  isRace: boolean;
  /** Why nobody can see it, where that is so. */
  equivalent?: string;
  /** The files that the patch changes. */
  files: string[];
  /** The whole file, which `git apply` takes as it is. */
  patch: string;
}

/** A patch that is not as it must be. */
export class MutantError extends Error {
  override readonly name = "MutantError";
}

const FIELDS = ["clause", "fault", "race", "equivalent"];

/** Reads a patch: lines `field: text`, an empty line, and what `git diff` prints. */
export function parseMutant(name: string, patch: string): Mutant {
  const fail = (what: string) => new MutantError(`${name}: ${what}`);
  const at = patch.indexOf("\n\ndiff --git ");
  if (at < 0) throw fail("no header, empty line and diff");
  const fields = new Map<string, string>();
  for (const line of patch.slice(0, at).split("\n")) {
    const [, field, text] = /^(\w+): (.*\S)$/.exec(line) ?? [];
    if (field === undefined || !FIELDS.includes(field)) throw fail(`no line of a header: ${line}`);
    if (fields.has(field)) throw fail(`${field} twice`);
    fields.set(field, text!);
  }
  const clause = fields.get("clause");
  const fault = fields.get("fault");
  if (clause === undefined || !/^[a-z]+\.[a-z_]+$/.test(clause)) throw fail("names no clause");
  if (fault === undefined) throw fail("does not say what the fault is");
  const race = fields.get("race");
  if (race !== undefined && race !== "yes") throw fail(`race is yes or left out, not ${race}`);
  const files = [...patch.matchAll(/^\+\+\+ b\/(.*)$/gm)].map(([, path]) => path!);
  const implementation = IMPLEMENTATIONS.find((each) =>
    files.length > 0 && files.every((path) => path.startsWith(FOLDERS[each]))
  );
  if (implementation === undefined) throw fail("changes other files than one implementation's");
  const equivalent = fields.get("equivalent");
  return {
    name,
    implementation,
    clause,
    fault,
    isRace: race !== undefined,
    ...(equivalent !== undefined && { equivalent }),
    files,
    patch,
  };
}

/** All mutants of a folder, by name. */
export async function loadMutants(folder: URL): Promise<Mutant[]> {
  const mutants: Mutant[] = [];
  for await (const { name } of Deno.readDir(folder)) {
    if (!name.endsWith(".patch")) throw new MutantError(`${name} is no patch`);
    const text = await Deno.readTextFile(new URL(name, folder));
    mutants.push(parseMutant(name.slice(0, -".patch".length), text));
  }
  return mutants.sort((a, b) => a.name < b.name ? -1 : 1);
}
