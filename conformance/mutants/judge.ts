/**
 * What the kit's verdicts say of a mutant.
 *
 * @module
 */

import type { Status } from "../kit/verdict.ts";
import type { Mutant } from "./mutant.ts";

/** A case that failed, as `play.ts` prints it. */
export interface Failure {
  id: string;
  level: string;
  carrier: string;
  status: Status;
  /** The clauses that it names as broken. */
  broken: string[];
  why: string;
}

/** What came of a mutant in one run, or in the worst of several. */
export type Fate =
  | { kind: "caught"; by: Failure }
  /** Cases failed, and none of them named the clause. */
  | { kind: "misnamed"; by: Failure }
  | { kind: "survived" }
  /** Nobody can see it; not run. */
  | { kind: "equivalent" }
  /** It does not fit the code, or is not built, or the kit did not come to its end. */
  | { kind: "error"; what: string };

/** A mutant and its fate. */
export interface Judged {
  mutant: Mutant;
  fate: Fate;
  seconds: number;
  /** Of a race that was run many times: how many, and how many of them caught it. */
  runs?: number;
  caught?: number;
}

/** A case as it is told from others: what fails without a fault shows nothing. */
export function keyOf({ id, carrier }: Pick<Failure, "id" | "carrier">): string {
  return `${id} ${carrier}`;
}

/** Whether a case has failed, in whatever way. */
export function isFailure(status: Status): boolean {
  return status === "fail" || status === "error" || status === "timeout";
}

/** The fate of a mutant with this clause, by the cases that failed with it and not without it. */
export function fateOf(clause: string, failures: readonly Failure[]): Fate {
  const named = failures.find(({ broken }) => broken.includes(clause));
  if (named !== undefined) return { kind: "caught", by: named };
  const first = failures[0];
  return first === undefined ? { kind: "survived" } : { kind: "misnamed", by: first };
}

/** Of so many runs of a race, as many must catch it: 19 of 20. */
export function neededOf(runs: number): number {
  return Math.ceil(runs * 0.95);
}

/** Many runs of a race as one: the first that caught it if enough did, else one that did not. */
export function foldRuns(fates: readonly Fate[], runs: number): Fate {
  const error = fates.find(({ kind }) => kind === "error");
  if (error !== undefined) return error;
  const caught = fates.filter(({ kind }) => kind === "caught");
  if (caught.length >= neededOf(runs)) return caught[0]!;
  return fates.find(({ kind }) => kind !== "caught")!;
}

/** The line of a mutant. */
export function lineOf({ mutant, fate, seconds, runs, caught }: Judged): string {
  const times = runs === undefined || runs === 1 ? "" : `, ${caught} of ${runs} times`;
  return `${mutant.name.padEnd(30)} ${wordsOf(mutant, fate)}${times} (${seconds.toFixed(1)} s)`;
}

function wordsOf({ clause, fault, equivalent }: Mutant, fate: Fate): string {
  switch (fate.kind) {
    case "caught":
      return `caught by ${keyOf(fate.by)} [${clause}]`;
    case "misnamed": {
      const named = fate.by.broken.map((each) => `[${each}]`).join(" ") || "no clause";
      return `CAUGHT BY ANOTHER CLAUSE than [${clause}]: ${keyOf(fate.by)} names ${named}`;
    }
    case "survived":
      return `SURVIVED [${clause}]: ${fault}`;
    case "equivalent":
      return `equivalent [${clause}]: ${equivalent}`;
    case "error":
      return `ERROR: ${fate.what}`;
  }
}

/** Of the mutants that can be seen, the share that must be caught. */
const LEAST = 0.95;

/** The last line, and whether all is well: enough are caught, and none by another clause. */
export function summaryOf(
  all: readonly Judged[],
  failing: number,
): { isGood: boolean; text: string } {
  const count = (kind: Fate["kind"]) => all.filter(({ fate }) => fate.kind === kind).length;
  const seen = all.length - count("equivalent");
  const caught = count("caught");
  const share = seen === 0 ? 1 : caught / seen;
  const isGood = share >= LEAST && count("misnamed") === 0 && count("error") === 0 && failing === 0;
  const percent = Math.floor(share * 1000) / 10;
  const rest = [
    [count("survived"), "survived"],
    [count("misnamed"), "caught by another clause"],
    [count("error"), "errors"],
    [count("equivalent"), "equivalent"],
    [failing, "cases fail without a fault"],
  ] as const;
  const words = rest.filter(([number]) => number > 0).map((pair) => `; ${pair.join(" ")}`).join("");
  const text = `${isGood ? "ok" : "FAILED"}: ${caught} of ${seen} caught (${percent} %)${words}`;
  return { isGood, text };
}
