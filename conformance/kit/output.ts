/**
 * What a person reads: progress, failed cases, the matrix.
 *
 * @module
 */

import { diff } from "../inspect/mod.ts";
import { clauseText } from "./clauses.ts";
import type { Level } from "./protocol.ts";
import type { Cell, Collector, Counts } from "./report.ts";
import type { Group } from "./runner.ts";
import type { Verdict } from "./verdict.ts";

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
  return `${level.padEnd(8)} ${carrier.padEnd(6)} ${testees.join(" to ")}`;
}

/** Counts that are not 0, each with its name. */
export function countsText(counts: Counts): string {
  const names = { pass: "passed", fail: "failed", declined: "declined" } as Record<string, string>;
  const parts = Object.entries(counts).filter(([, count]) => count > 0)
    .map(([name, count]) => `${count} ${names[name] ?? nameOf(name, count)}`);
  return parts.length > 0 ? parts.join(", ") : "nothing run";
}

function nameOf(name: string, count: number): string {
  return count === 1 ? name : `${name}s`;
}

/** A failed case: what was expected and what came, the clause, and how to run it again. */
export function failureText(verdict: Verdict, rerun: string): string {
  const { id, status, carrier, testees, about, clauses, why, got, must } = verdict;
  const lines = [
    `${status.toUpperCase()} ${id} (${testees.join(" to ")}, ${carrier})`,
    `  ${about}`,
    ...why.flatMap((fact) => fact.split("\n")).map((line) => `  ${line}`),
  ];
  if (got !== undefined && must !== undefined) {
    lines.push(...diff(must, got).split("\n").filter(Boolean).map((line) => `    ${line}`));
  }
  // What a strict reader has found names its own clause.
  const found = why.flatMap((fact) => [...fact.matchAll(/\[([a-z]+\.[a-z_]+)\]/g)])
    .map(([, clause]) => clause!);
  for (const clause of new Set([...found, ...clauses])) {
    const text = clauseText(clause);
    if (text !== undefined) lines.push(`  [${clause}] ${text}`);
  }
  return [...lines, `  again: ${rerun}`].join("\n");
}

/** The matrix as a table, in Markdown, which reads well on a terminal too. */
export function matrixText(cells: Cell[]): string {
  const reasons: string[] = [];
  const tables = [
    aloneTable(cells.filter(({ testees }) => testees.length === 1)),
    ...(["live", "mailbox", "stress"] as const).map((level) =>
      pairTable(level, cells.filter((cell) => cell.level === level && cell.testees.length === 2))
    ),
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

  function pairTable(level: Level, some: Cell[]): string {
    if (some.length === 0) return "";
    const carriers = [...new Set(some.map(({ carrier }) => carrier))];
    const pairs = [...new Set(some.map(({ testees }) => testees.join(" to ")))];
    return table(
      [level, ...carriers],
      pairs.map((pair) => [
        pair,
        ...carriers.map((carrier) => {
          const cell = some.find((each) =>
            each.carrier === carrier && each.testees.join(" to ") === pair
          );
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
    `${countsText(collector.counts())}, ${collector.seconds().toFixed(1)} s.`,
    ...failed,
  ].join("\n\n") + "\n";
}
