/**
 * Plays the kit's cases on one testee of the tree in which this file is, and prints each
 * case that fails as a line of JSON. `main.ts` runs it in a copy of the tree, for each mutant.
 *
 * The one argument is JSON: `program`; `clause`, whose cases come first, and which ends the
 * run when a case that fails names it; `known`, a file with the cases that fail without a fault.
 *
 * @module
 */

import { plan } from "../kit/plan.ts";
import { killAll } from "../kit/process_link.ts";
import { endCarriers, ownPrograms } from "../kit/programs.ts";
import { type Group, Runner } from "../kit/runner.ts";
import { outliveTrouble, type Verdict } from "../kit/verdict.ts";
import { type Failure, isFailure, keyOf } from "./judge.ts";

/** What to play. */
export interface PlayOrder {
  /** The testee, as the kit calls it. */
  program: string;
  clause?: string;
  known?: string;
}

/**
 * Where the testees are: as commands alone, as processes on a file, in workers, and over streams.
 * In this order: on a file the kit halts a testee between two accesses, and need not try until it
 * is lucky.
 */
const CARRIERS: Readonly<Record<string, string[]>> = {
  typescript: ["bytes", "file", "deno", "stream"],
  zig: ["bytes", "file", "stream"],
  "zig-wasm": ["deno"],
};
/** So many cases that do not cite the clause tell enough. */
const OTHERS_MAX = 3;
const REASON_LENGTH = 300;
/** How long ending politely may take. */
const END_MS = 2_000;

function groupsOf({ program, clause }: PlayOrder): Group[] {
  // It has been built, and not in the mode that the kit itself would choose.
  const { prepare: _, ...built } = ownPrograms().find(({ name }) => name === program)!;
  const carriers = CARRIERS[program]!;
  const groups = plan({ programs: [built], levels: [], cases: [], carriers, seed: 1, seconds: 1 })
    .sort((a, b) => carriers.indexOf(a.carrier) - carriers.indexOf(b.carrier));
  const which = (cites: boolean) =>
    groups.map((group) => ({
      ...group,
      cases: group.cases.filter(({ clauses }) => clauses.includes(clause!) === cites),
    }));
  return clause === undefined ? groups : [...which(true), ...which(false)];
}

/** Plays until it is over, or enough has failed. */
async function play(order: PlayOrder): Promise<void> {
  outliveTrouble();
  const { clause, known: path } = order;
  const known = new Set<string>(path === undefined ? [] : JSON.parse(Deno.readTextFileSync(path)));
  let isEnough = false;
  let others = 0;
  Deno.addSignalListener("SIGTERM", () => {
    isEnough = true;
    killAll();
    setTimeout(() => Deno.exit(143), END_MS);
  });
  const tell = (verdict: Verdict) => {
    const { id, level, carrier, status, why, clauses, unstarted = false } = verdict;
    // Of what a testee has broken down the case tells; that it does not start is no case's fault.
    const broken = unstarted ? [] : verdict.broken ?? clauses;
    if (!isFailure(status) || known.has(keyOf(verdict))) return;
    const reason = why.join("; ").slice(0, REASON_LENGTH);
    const failure: Failure = { id, level, carrier, status, broken, why: reason };
    console.log(JSON.stringify(failure));
    if (clause === undefined) return;
    if (!clauses.includes(clause)) others++;
    isEnough ||= broken.includes(clause) || others >= OTHERS_MAX;
  };
  const nothing = () => {};
  const runner = new Runner(
    { begin: nothing, verdict: tell, spent: nothing, hello: nothing, empty: nothing },
    () => isEnough,
  );
  for (const group of groupsOf(order)) if (!isEnough) await runner.run(group);
  await endCarriers();
  killAll();
}

if (import.meta.main) {
  await play(JSON.parse(Deno.args[0]!));
  // A worker that is blocked would keep the program from its natural end.
  Deno.exit(0);
}
