/**
 * The report of a run: counts that are never merged, and every verdict.
 *
 * @module
 */

import { type Difference, differences } from "../inspect/mod.ts";
import { loadClauses } from "../static/coverage.ts";
import type { Hello, Level } from "./protocol.ts";
import type { Group, Spending, Watcher } from "./runner.ts";
import { type Status, STATUSES, type Verdict } from "./verdict.ts";

export type Counts = Record<Status, number>;

/** One cell of the matrix: a level, a place, and who was there. */
export interface Cell {
  level: Level;
  carrier: string;
  testees: string[];
  counts: Counts;
  seconds: number;
  /** Why nothing was run here. */
  empty?: string;
}

/** Seconds: in the cells of the matrix, beside them, and in nothing that was measured. */
export type Spent = Record<"cases" | Spending | "rest", number>;

/** A verdict as it is written to a file. */
interface Entry {
  id: string;
  level: Level;
  carrier: string;
  testees: string[];
  status: Status;
  clauses: string[];
  seconds: number;
  why: string[];
  /** Of a failed case: the clauses of what failed. */
  broken?: string[];
  /** In what the memory differs from what it must be, field by field. */
  differences?: Difference[];
  /** The testee that has declined it, or has not started. */
  by?: string;
  /** Listed as a known failure. */
  known?: true;
  /** The command that runs this case again. */
  rerun: string;
}

/** What `--json` writes. `conformance/report.schema.json` says the same to other programs. */
export interface Report {
  $schema: string;
  kit: "millrace";
  protocol: number;
  started: string;
  seconds: number;
  /** What these seconds went into: together they are all of them. */
  spent: Spent;
  seed: number;
  interrupted: boolean;
  testees: ({ label: string } & Hello)[];
  counts: Counts;
  cells: Cell[];
  /** Known failures that did not fail. */
  stale: string[];
  cases: Entry[];
}

/** A failure that is expected: `ID`, `ID CARRIER` or `ID CARRIER TESTEE+TESTEE` in each line. */
interface Known {
  line: string;
  id: string;
  carrier?: string;
  testees?: string;
}

/** Reads a list of known failures; `#` begins a comment. */
export function readKnown(text: string): Known[] {
  return text.split("\n").map((line) => line.replace(/#.*/, "").trim()).filter(Boolean)
    .map((line) => {
      const [id, carrier, testees] = line.split(/\s+/) as [string, string?, string?];
      return {
        line,
        id,
        ...(carrier !== undefined && { carrier }),
        ...(testees !== undefined && { testees }),
      };
    });
}

/** Collects what a run gives. */
export class Collector implements Watcher {
  readonly verdicts: Verdict[] = [];
  readonly cells: Cell[] = [];
  readonly hellos = new Map<string, Hello>();
  readonly #spent: Record<Spending, number> = { builds: 0, starts: 0, ends: 0 };
  readonly #known: Known[];
  readonly #started = new Date();
  readonly #begun = performance.now();

  constructor(known: Known[] = []) {
    this.#known = known;
  }

  begin({ level, carrier, testees, empty }: Group): void {
    const counts = emptyCounts();
    const fact = empty === undefined ? {} : { empty };
    this.cells.push({ level, carrier, testees, counts, seconds: 0, ...fact });
  }

  verdict(verdict: Verdict): void {
    const cell = this.cells.at(-1)!;
    cell.counts[verdict.status]++;
    cell.seconds += verdict.seconds;
    this.verdicts.push(verdict);
  }

  spent(on: Spending, seconds: number): void {
    this.#spent[on] += seconds;
  }

  hello(name: string, hello: Hello): void {
    this.hellos.set(name, hello);
  }

  empty(why: string): void {
    this.cells.at(-1)!.empty = why;
  }

  /** Whether a verdict is listed as a known failure. */
  isKnown(verdict: Verdict): boolean {
    return this.#known.some((known) => fits(known, verdict));
  }

  /** Known failures that were run and did not fail. */
  stale(): string[] {
    return this.#known.filter((known) => {
      const runs = this.verdicts.filter((verdict) => fits(known, verdict) && wasRun(verdict));
      return runs.length > 0 && !runs.some(isBad);
    }).map(({ line }) => line);
  }

  /** What fails the run. */
  failures(): Verdict[] {
    return this.verdicts.filter((verdict) => isBad(verdict) && !this.isKnown(verdict));
  }

  counts(): Counts {
    const counts = emptyCounts();
    for (const { status } of this.verdicts) counts[status]++;
    return counts;
  }

  seconds(): number {
    return (performance.now() - this.#begun) / 1000;
  }

  /** Where the time went. */
  spending(): Spent {
    const cases = this.cells.reduce((sum, { seconds }) => sum + seconds, 0);
    const measured = Object.values(this.#spent).reduce((sum, seconds) => sum + seconds, cases);
    return { cases, ...this.#spent, rest: Math.max(0, this.seconds() - measured) };
  }

  report(seed: number, interrupted: boolean, rerun: (verdict: Verdict) => string): Report {
    return {
      $schema: "report.schema.json",
      kit: "millrace",
      protocol: 1,
      started: this.#started.toISOString(),
      seconds: round(this.seconds()),
      spent: roundAll(this.spending()),
      seed,
      interrupted,
      testees: [...this.hellos].map(([label, hello]) => ({ label, ...hello })),
      counts: this.counts(),
      cells: this.cells.map((cell) => ({ ...cell, seconds: round(cell.seconds) })),
      stale: this.stale(),
      cases: this.verdicts.map((verdict) => {
        const { id, level, carrier, testees, status, clauses, seconds, why, by } = verdict;
        const { broken, got, must } = verdict;
        const differs = got !== undefined && must !== undefined;
        const known = this.isKnown(verdict) ? { known: true as const } : {};
        const who = by === undefined ? {} : { by: testees[by]! };
        const entry = {
          id,
          level,
          carrier,
          testees,
          status,
          clauses,
          seconds: round(seconds),
          why,
        };
        return {
          ...entry,
          ...(broken !== undefined && { broken }),
          ...(differs && { differences: differences(must, got) }),
          ...who,
          ...known,
          rerun: rerun(verdict),
        };
      }),
    };
  }
}

function fits({ id, carrier, testees }: Known, verdict: Verdict): boolean {
  return id === verdict.id && (carrier ?? verdict.carrier) === verdict.carrier &&
    (testees ?? verdict.testees.join("+")) === verdict.testees.join("+");
}

function isBad({ status }: Verdict): boolean {
  return status === "fail" || status === "error" || status === "timeout";
}

function wasRun({ status }: Verdict): boolean {
  return status !== "not_run" && status !== "unshown";
}

function emptyCounts(): Counts {
  return Object.fromEntries(STATUSES.map((status) => [status, 0])) as Counts;
}

function round(seconds: number): number {
  return Math.round(seconds * 1000) / 1000;
}

function roundAll(spent: Spent): Spent {
  return Object.fromEntries(
    Object.entries(spent).map(([on, seconds]) => [on, round(seconds)]),
  ) as Spent;
}

// What was not played, and why: what testees decline, and what the kit itself cannot show. Grouped,
// so that hundreds of cases stay readable.

/** Cases that were not played for the same reason. */
interface Unplayed {
  /** The testee that declines them; nobody where the kit cannot show them. */
  who: string | undefined;
  why: string;
  count: number;
  /** Ids, each once, however many places it was declined in. */
  ids: string[];
  /** Levels with their carriers: `static bytes`. */
  places: string[];
}

/** Ids that the console lists of each reason; files list all. */
const SHOWN = 3;

/** The declined cases by testee and reason, then those that the kit cannot show, by reason. */
export function unplayed(verdicts: readonly Verdict[]): Unplayed[] {
  const groups = new Map<string, Unplayed>();
  for (const status of ["declined", "unshown"] as const) {
    for (const verdict of verdicts) {
      if (verdict.status === status) add(groups, verdict);
    }
  }
  return [...groups.values()];
}

function add(groups: Map<string, Unplayed>, verdict: Verdict): void {
  const { id, level, carrier, testees, status, by = 0 } = verdict;
  const who = status === "declined" ? testees[by]! : undefined;
  const why = verdict.why.join("; ");
  const key = JSON.stringify([who ?? null, why]);
  const group = groups.get(key) ?? { who, why, count: 0, ids: [], places: [] };
  groups.set(key, group);
  group.count++;
  if (!group.ids.includes(id)) group.ids.push(id);
  const place = `${level} ${carrier}`;
  if (!group.places.includes(place)) group.places.push(place);
}

/** The same for a person at a terminal; nothing where everything was played. */
export function unplayedText(verdicts: readonly Verdict[]): string {
  const groups = unplayed(verdicts);
  const declined = groups.filter(({ who }) => who !== undefined);
  const unshown = groups.filter(({ who }) => who === undefined);
  const part = (title: string, some: Unplayed[]) =>
    some.length === 0 ? [] : [title, ...some.map(lineOf)];
  return [
    ...part("declined, by testee and reason:", declined),
    ...part("not shown, by a limit of the kit and not of the testee:", unshown),
  ].join("\n");
}

function lineOf({ who, why, count, ids, places }: Unplayed): string {
  const more = ids.length > SHOWN ? ` and ${ids.length - SHOWN} more` : "";
  const head = who === undefined ? why : `${who} ${why}`;
  return `  ${head}: ${count} in ${places.join(", ")}\n    ${
    ids.slice(0, SHOWN).join(", ")
  }${more}`;
}

/** The same in Markdown, with every id. */
export function unplayedMarkdown(verdicts: readonly Verdict[]): string {
  const groups = unplayed(verdicts);
  const rows = groups.map(({ who, why, count, ids, places }) =>
    `| ${[who ?? "(the kit)", why, count, places.join(", "), ids.join(", ")].join(" | ")} |`
  );
  if (rows.length === 0) return "";
  const head =
    "| not played by | because | times | where | cases |\n| --- | --- | --- | --- | --- |";
  return `## Declined, and not shown\n\n${[head, ...rows].join("\n")}`;
}

// The words of the clauses, for who reads a failed case.

let texts: Map<string, string> | undefined;

/** The sentence of a clause; nothing where there is no such clause, or no specification. */
export function clauseText(id: string): string | undefined {
  texts ??= load();
  return texts.get(id);
}

function load(): Map<string, string> {
  try {
    return new Map(loadClauses().map(({ id, body }) => [id, body]));
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return new Map();
    throw error;
  }
}
