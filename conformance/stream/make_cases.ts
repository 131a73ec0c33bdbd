/**
 * Writes `conformance/stream/cases.json`.
 *
 * @module
 */

import { format, write } from "../reference/make_cases.ts";
import { StreamCases } from "./builder.ts";
import { arrivalCases } from "./cases_arrival.ts";
import { creditCases } from "./cases_credit.ts";
import type { StreamCase } from "./case.ts";

const FILE = new URL("cases.json", import.meta.url);

/** The text that the file must hold. */
export async function makeStreamFile(): Promise<string> {
  const cases = new StreamCases();
  arrivalCases(cases);
  creditCases(cases);
  const file = { $schema: "./cases.schema.json", noun: "stream", cases: cases.list };
  return await format(write(file, ""));
}

/** All cases by their ids, as they are checked in. */
export function loadStreamCases(): Map<string, StreamCase> {
  const { cases } = JSON.parse(Deno.readTextFileSync(FILE)) as { cases: StreamCase[] };
  return new Map(cases.map((entry) => [entry.id, entry]));
}

if (import.meta.main) await Deno.writeTextFile(FILE, await makeStreamFile());
