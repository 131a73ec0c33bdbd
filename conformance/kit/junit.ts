/**
 * The report in the form that continuous integration reads.
 *
 * @module
 */

import { factLines } from "./output.ts";
import type { Collector } from "./report.ts";
import type { Cell } from "./report.ts";
import type { Verdict } from "./verdict.ts";

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
