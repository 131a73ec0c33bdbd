/**
 * Which duties of the specification the static cases show, and which they cannot.
 *
 * @module
 */

import { type Clause, readClauses } from "../../tools/clauses.ts";
import { type Case, isInvalid, type Result, type Value } from "../reference/case.ts";
import { readLines } from "./load.ts";

const EXCEPTIONS = new URL("../exceptions.jsonl", import.meta.url);

/** A duty that no static case can show, and why. */
export interface Exception {
  clause: string;
  reason: string;
}

/** The numbers of a report, and what is wrong. */
export interface Coverage {
  problems: string[];
  must: number;
  covered: number;
  excepted: number;
}

/** All clauses of the chapters. */
export function loadClauses(): Clause[] {
  const folder = new URL("../../spec/", import.meta.url);
  const names = [...Deno.readDirSync(folder)].map(({ name }) => name);
  return names.filter((name) => name.endsWith(".md")).sort().flatMap((name) =>
    readClauses({ path: `spec/${name}`, text: Deno.readTextFileSync(new URL(name, folder)) })
      .clauses
  );
}

/** The exceptions of duties as they are checked in. */
export function loadExceptions(): Exception[] {
  return readLines<Exception | { code: string }>(EXCEPTIONS).filter((each) => "clause" in each);
}

/** The reason codes that no static case can show. */
export function loadReasonExceptions(): string[] {
  return readLines<Exception | { code: string }>(EXCEPTIONS)
    .flatMap((each) => "code" in each ? [each.code] : []);
}

/** Each MUST needs a valid and an invalid case, or else an exception; and never both. */
export function cover(
  clauses: readonly Clause[],
  cases: Iterable<Case>,
  exceptions: readonly Exception[],
): Coverage {
  const problems: string[] = [];
  const known = new Set(clauses.map(({ id }) => id));
  const valid = new Set<string>();
  const invalid = new Set<string>();
  for (const entry of cases) {
    for (const id of entry.clauses) {
      if (!known.has(id)) problems.push(`${entry.id}: [${id}] is no clause`);
      (isInvalid(entry) ? invalid : valid).add(id);
    }
  }
  const excepted = new Set<string>();
  for (const { clause } of exceptions) {
    if (!known.has(clause)) problems.push(`exceptions.jsonl: [${clause}] is no clause`);
    if (excepted.has(clause)) problems.push(`exceptions.jsonl: [${clause}] stands there twice`);
    excepted.add(clause);
  }
  const must = clauses.filter(({ keyword }) => keyword.startsWith("MUST"));
  const duties = new Set(must.map(({ id }) => id));
  for (const clause of excepted) {
    if (known.has(clause) && !duties.has(clause)) {
      problems.push(`exceptions.jsonl: [${clause}] is no MUST`);
    }
  }
  let covered = 0;
  for (const { id } of must) {
    const shown = valid.has(id) && invalid.has(id);
    if (shown) covered++;
    if (shown && excepted.has(id)) {
      problems.push(`exceptions.jsonl: [${id}] has become unnecessary`);
    }
    if (shown || excepted.has(id)) continue;
    const missing = ["valid", "invalid"].filter((kind) =>
      !(kind === "valid" ? valid : invalid).has(id)
    );
    problems.push(`[${id}] has no ${missing.join(" and no ")} case, and no exception`);
  }
  return { problems, must: must.length, covered, excepted: excepted.size };
}

/** The name of a throw, which may be a reason code. */
function namesOf([name]: Value[]): string[] {
  return name !== undefined && "text" in name ? [name.text!] : [];
}

function namesIn(result: Result): string[] {
  if (typeof result === "string") return [result];
  if ("outcome" in result) return [result.outcome];
  const reasons = typeof result.reason === "string" ? [result.reason] : [];
  if ("code" in result) return [result.code, ...reasons];
  const reports = result.items.flatMap((item) =>
    "report" in item ? [item.report] : item.kind === 5 ? namesOf(item.values ?? []) : []
  );
  return [...reports, ...reasons, ...(result.end === undefined ? [] : [result.end])];
}

/** The reason codes that an expectation names. */
export function reasonsIn(cases: Iterable<Case>): Set<string> {
  const found = new Set<string>();
  for (const { expect } of cases) {
    for (const result of [expect.result ?? "ok", ...expect.results ?? []]) {
      const results = typeof result === "object" && "one_of" in result ? result.one_of : [result];
      for (const each of results) namesIn(each).forEach((name) => found.add(name));
    }
  }
  return found;
}
