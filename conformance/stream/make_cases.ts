/**
 * Writes `conformance/stream/cases.jsonl`.
 *
 * @module
 */

import { toLines } from "../reference/make_cases.ts";
import { readLines } from "../static/load.ts";
import { StreamCases } from "./builder.ts";
import { arrivalCases, creditCases } from "./cases.ts";
import type { StreamCase } from "./case.ts";

const FILE = new URL("cases.jsonl", import.meta.url);

/** The text that the file must hold. */
export function makeStreamFile(): string {
  const cases = new StreamCases();
  arrivalCases(cases);
  creditCases(cases);
  return toLines(cases.list);
}

/** All cases by their ids, as they are checked in. */
export function loadStreamCases(): Map<string, StreamCase> {
  return new Map(readLines<StreamCase>(FILE).map((entry) => [entry.id, entry]));
}

if (import.meta.main) Deno.writeTextFileSync(FILE, makeStreamFile());
