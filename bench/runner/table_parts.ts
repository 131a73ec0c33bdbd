/**
 * What the terminal shows of a scenario: where it has parts, the peers of each of them.
 *
 * @module
 */
import type { Row, ScenarioInfo } from "./results.ts";
import { absent, columns, formatFigure, formatRatio, formatTime, scenarioTable } from "./table.ts";

/** One scenario in one place, by all of its figures. */
export function taskTable(
  infos: readonly ScenarioInfo[],
  place: string,
  rows: readonly Row[],
): string {
  const [first] = infos;
  if (first?.group === undefined) return scenarioTable(first!, place, rows);
  const { group, title, rival } = first;
  const name = first.figure === "time" ? "mean" : "median";
  const head = ["  part", "peer", name, "min", "max", "median of all"];
  const lines = infos.flatMap((info) => linesOf(info, rows));
  const last = rival === undefined ? "" : `x ${rival}`;
  return [
    `${group} in ${place}: ${title}`,
    ...lines.length === 0 ? [] : [columns([[...head, last], ...lines])],
    ...absent(rows.filter(({ scenario }) => scenario === first.id)),
  ].join("\n");
}

/** The peers of one part, the fastest first: what they took, and how many times faster they are. */
function linesOf({ id, part, figure }: ScenarioInfo, rows: readonly Row[]): string[][] {
  return rows
    .filter(({ scenario, median }) => scenario === id && median !== undefined)
    .sort((a, b) => a.median! - b.median!)
    .map(({ peer, median, min, max, latency, times_rival, notes = [] }, index) => [
      index === 0 ? `  ${part}` : "",
      peer,
      ...[median, min, max].map((value) => formatFigure(figure, value!)),
      latency === undefined ? "" : formatTime(latency.p50),
      [...times_rival === undefined ? [] : [formatRatio(times_rival)], ...notes].join(", "),
    ]);
}
