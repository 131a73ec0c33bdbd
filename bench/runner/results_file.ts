/**
 * Reads and writes the results of a run, by their schema.
 *
 * @module
 */
import { Ajv2020 } from "ajv/2020";
import type { Results } from "./results.ts";

const SCHEMA = new URL("../results.schema.json", import.meta.url);

/** Why these are no results; `undefined` if they are. */
export async function resultsProblem(value: unknown): Promise<string | undefined> {
  const validate = new Ajv2020({ strict: true, allowUnionTypes: true })
    .compile(JSON.parse(await Deno.readTextFile(SCHEMA)));
  if (validate(value)) return undefined;
  const [error] = validate.errors ?? [];
  return `${error?.instancePath} ${error?.message}`;
}

/** Reads the results of an earlier run. Throws an `Error` that says what is wrong with the file. */
export async function readResults(path: string): Promise<Results> {
  const value: unknown = JSON.parse(await Deno.readTextFile(path));
  const problem = await resultsProblem(value);
  if (problem !== undefined) throw new Error(`these are no results: ${problem}`);
  return value as Results;
}

/** Writes the results of a run. */
export async function writeResults(path: string, results: Results): Promise<void> {
  await Deno.writeTextFile(path, `${JSON.stringify(results, null, 1)}\n`);
}
