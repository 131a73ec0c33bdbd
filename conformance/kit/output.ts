/**
 * What a person reads: progress, failed cases, the matrix.
 *
 * @module
 */

import { diff } from "../inspect/mod.ts";
import { type Cell, clauseText, type Collector, type Counts, type Spent } from "./report.ts";
import { unplayedMarkdown } from "./report.ts";
import type { Group } from "./runner.ts";
import { type Status, STATUSES, type Verdict } from "./verdict.ts";

/** Says how a group goes on: one line that changes on a terminal, one line a group elsewhere. */
export class Progress {
  readonly #isTerminal: boolean;
  readonly #write: (text: string) => void;
  #group: Group | undefined;
  #done = 0;

  constructor(isTerminal: boolean, write: (text: string) => void) {
    this.#isTerminal = isTerminal;
    this.#write = write;
  }

  begin(group: Group): void {
    this.#group = group;
    this.#done = 0;
  }

  step({ id }: Verdict): void {
    this.#done++;
    if (!this.#isTerminal) return;
    const { cases } = this.#group!;
    this.#write(`\r\x1b[K${titleOf(this.#group!)}: ${this.#done} of ${cases.length}, ${id}`);
  }

  /** The line that stays. */
  end(cell: Cell): void {
    if (cell.empty !== undefined) return;
    const start = this.#isTerminal ? "\r\x1b[K" : "";
    const seconds = cell.seconds.toFixed(1);
    this.#write(`${start}${titleOf(cell).padEnd(44)} ${countsText(cell.counts)}  ${seconds} s\n`);
  }
}

function titleOf({ level, carrier, testees }: Pick<Cell, "level" | "carrier" | "testees">) {
  return `${level.padEnd(8)} ${carrier.padEnd(6)} ${namesOf({ testees })}`;
}

/** Who meets whom: `a to b`, or, of one that writes and many that read, `a to b, c`. */
function namesOf({ testees: [first, ...others] }: Pick<Cell, "testees">): string {
  return others.length === 0 ? first! : `${first} to ${others.join(", ")}`;
}

/** What one and what several of each are called. */
const NAMES: Record<Status, [string, string]> = {
  pass: ["passed", "passed"],
  fail: ["failed", "failed"],
  declined: ["declined", "declined"],
  unshown: ["not shown", "not shown"],
  error: ["error", "errors"],
  timeout: ["timeout", "timeouts"],
  not_run: ["not run", "not run"],
};

/** Counts that are not 0, each with its name. */
export function countsText(counts: Counts): string {
  const parts = STATUSES.filter((status) => counts[status] > 0)
    .map((status) => `${counts[status]} ${NAMES[status][counts[status] === 1 ? 0 : 1]}`);
  return parts.length > 0 ? parts.join(", ") : "nothing run";
}

/** Where the time of a run went, for what is in no cell is time, too. */
export function spentText(seconds: number, spent: Spent): string {
  const names: Record<keyof Spent, string> = {
    cases: "in cases",
    builds: "building testees",
    starts: "starting testees and places",
    ends: "ending them",
    rest: "on the rest",
  };
  const parts = Object.entries(names).map(([on, name]) => ({ name, on: spent[on as keyof Spent] }))
    .filter(({ name, on }) => name === "in cases" || on >= 0.05)
    .map(({ name, on }) => `${on.toFixed(1)} s ${name}`);
  return `${seconds.toFixed(1)} s: ${parts.join(", ")}`;
}

/** A failed case: what was expected and what came, the clause, and how to run it again. */
export function failureText(verdict: Verdict, rerun: string): string {
  const { id, status, carrier, testees, about, why } = verdict;
  const where = `(${namesOf({ testees })}, ${carrier})`;
  if (verdict.unstarted) {
    const who = testees[verdict.by ?? 0];
    const rest = "its other cases were not run";
    return [`${status.toUpperCase()} ${who} ${why.join("; ")} ${where}`, `  ${rest}`, again(rerun)]
      .join("\n");
  }
  const lines = [`${status.toUpperCase()} ${id} ${where}`, `  ${about}`];
  return [...lines, ...factLines(verdict).map((line) => `  ${line}`), again(rerun)].join("\n");
}

/** What a case has found: what was expected and what came, byte by byte, and what demands it. */
function factLines({ why, got, must, broken, clauses }: Verdict): string[] {
  const lines = why.flatMap((fact) => fact.split("\n"));
  if (got !== undefined && must !== undefined) {
    lines.push(...diff(must, got).split("\n").filter(Boolean).map((line) => `  ${line}`));
  }
  const named = broken ?? clauses;
  for (const clause of named) {
    const text = clauseText(clause);
    if (text !== undefined) lines.push(`[${clause}] ${text}`);
  }
  const others = clauses.filter((clause) => !named.includes(clause));
  if (others.length > 0) {
    lines.push(`the case shows, too: ${others.map((clause) => `[${clause}]`).join(" ")}`);
  }
  return lines;
}

function again(rerun: string): string {
  return `  again: ${rerun}`;
}

/** The matrix as a table, in Markdown, which reads well on a terminal too. */
export function matrixText(cells: Cell[]): string {
  const reasons: string[] = [];
  const tables = [
    aloneTable(cells.filter(({ testees }) => testees.length === 1)),
    ...(["live", "mailbox", "stress"] as const).map((level) =>
      pairTable(level, cells.filter((cell) => cell.level === level && cell.testees.length === 2))
    ),
    pairTable("live, one to many", cells.filter(({ testees }) => testees.length > 2)),
  ];
  const notes = () => reasons.map((reason, index) => `${mark(index)}: ${reason}`);
  return [...tables.filter((table) => table !== ""), notes().join("\n")].filter(Boolean)
    .join("\n\n");

  function aloneTable(some: Cell[]): string {
    if (some.length === 0) return "";
    const columnOf = ({ level, carrier }: Cell) => `${level}, ${carrier}`;
    const columns = [...new Set(some.map(columnOf))];
    const names = [...new Set(some.map(({ testees }) => testees[0]!))];
    return table(
      ["testee", ...columns],
      names.map((name) => [
        name,
        ...columns.map((column) => {
          const cell = some.find((each) => columnOf(each) === column && each.testees[0] === name);
          return cell === undefined ? "" : cellText(cell);
        }),
      ]),
    );
  }

  function pairTable(title: string, some: Cell[]): string {
    if (some.length === 0) return "";
    const carriers = [...new Set(some.map(({ carrier }) => carrier))];
    const pairs = [...new Set(some.map(namesOf))];
    return table(
      [title, ...carriers],
      pairs.map((pair) => [
        pair,
        ...carriers.map((carrier) => {
          const cell = some.find((each) => each.carrier === carrier && namesOf(each) === pair);
          return cell === undefined ? "" : cellText(cell);
        }),
      ]),
    );
  }

  function cellText({ counts, empty }: Cell): string {
    if (empty === undefined) return countsText(counts);
    if (!reasons.includes(empty)) reasons.push(empty);
    return `none (${mark(reasons.indexOf(empty))})`;
  }
}

function mark(index: number): string {
  return String.fromCharCode("a".charCodeAt(0) + index);
}

function table(head: string[], rows: string[][]): string {
  const widths = head.map((_, column) =>
    Math.max(3, ...[head, ...rows].map((row) => row[column]!.length))
  );
  const line = (row: string[]) =>
    `| ${row.map((text, column) => text.padEnd(widths[column]!)).join(" | ")} |`;
  return [line(head), line(widths.map((width) => "-".repeat(width))), ...rows.map(line)].join("\n");
}

/** What `--md` writes. */
export function markdownText(collector: Collector, rerun: (verdict: Verdict) => string): string {
  const failures = collector.failures();
  const testees = [...collector.hellos].map(([label, { name, version, language, lacks }]) =>
    `- ${label}: ${name} ${version}, ${language}` +
    (lacks.length > 0 ? `; lacks ${lacks.join(", ")}` : "")
  );
  const failed = failures.map((verdict) =>
    "```text\n" + failureText(verdict, rerun(verdict)) + "\n```"
  );
  return [
    "# Millrace conformance",
    [...new Set(testees)].join("\n"),
    matrixText(collector.cells),
    `${countsText(collector.counts())}; ${spentText(collector.seconds(), collector.spending())}.`,
    unplayedMarkdown(collector.verdicts),
    ...failed,
  ].filter(Boolean).join("\n\n") + "\n";
}

// The report in the form that continuous integration reads.

/** What `--junit` writes: a suite for each cell of the matrix. */
export function junitText(collector: Collector): string {
  const suites = collector.cells.filter(({ empty }) => empty === undefined)
    .map((cell) => suite(cell, collector));
  return `<?xml version="1.0" encoding="UTF-8"?>\n<testsuites>\n${suites.join("")}</testsuites>\n`;
}

function suite({ level, carrier, testees, counts, seconds }: Cell, collector: Collector): string {
  const name = `${level} ${carrier} ${testees.join(" to ")}`;
  const key = testees.join("+");
  const own = collector.verdicts.filter((verdict) =>
    verdict.level === level && verdict.carrier === carrier && verdict.testees.join("+") === key
  );
  const attributes = [
    `name="${escape(name)}"`,
    `tests="${own.length}"`,
    `failures="${counts.fail}"`,
    `errors="${counts.error + counts.timeout}"`,
    `skipped="${counts.declined + counts.unshown + counts.not_run}"`,
    `time="${seconds.toFixed(3)}"`,
  ];
  const cases = own.map((verdict) => testCase(verdict, name)).join("");
  return `  <testsuite ${attributes.join(" ")}>\n${cases}  </testsuite>\n`;
}

function testCase(verdict: Verdict, suite: string): string {
  const { id, status, why, seconds } = verdict;
  const head = `    <testcase classname="${escape(suite)}" name="${escape(id)}" ` +
    `time="${seconds.toFixed(3)}"`;
  const isPlayed = status === "fail" || status === "error" || status === "timeout";
  const text = escape((isPlayed ? factLines(verdict) : why).join("\n"));
  switch (status) {
    case "pass":
      return `${head}/>\n`;
    case "declined":
    case "unshown":
    case "not_run":
      return `${head}><skipped message="${text}"/></testcase>\n`;
    case "fail":
      return `${head}><failure>${text}</failure></testcase>\n`;
    default:
      return `${head}><error type="${status}">${text}</error></testcase>\n`;
  }
}

function escape(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;")
    // deno-lint-ignore no-control-regex -- XML has no way to write these
    .replaceAll('"', "&quot;").replace(/[\0-\x08\x0b\x0c\x0e-\x1f]/g, "?");
}
