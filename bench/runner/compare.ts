/**
 * What has changed between two runs on one machine.
 *
 * @module
 */
import { type Results, RESULTS_VERSION, slower } from "./results.ts";
import { columns, digits, formatFigure } from "./table.ts";

/** Why two runs cannot be compared; `undefined` if they can. */
export function refusal(before: Results, after: Results): string | undefined {
  if (before.version !== RESULTS_VERSION) {
    return `its form is version ${before.version}, and this is ${RESULTS_VERSION}`;
  }
  if (before.machine.id !== after.machine.id) {
    const { processor, processors } = before.machine;
    return `it is of another machine (${processor}, ${processors} processors)`;
  }
  if (before.effort === "smoke" || after.effort === "smoke") {
    return "the figures of a smoke run mean nothing";
  }
  if (before.effort !== after.effort) {
    return `it is of a ${before.effort} run, and this is a ${after.effort} one`;
  }
  return undefined;
}

/** All that both runs have measured: before, after, and how many times faster. */
export function comparison(before: Results, after: Results): string {
  const rows = after.rows.flatMap((row) => {
    const old = before.rows.find((other) =>
      other.scenario === row.scenario && other.place === row.place &&
      other.peer === row.peer && other.driver === row.driver
    );
    const info = after.scenarios.find(({ id }) => id === row.scenario);
    if (old?.median === undefined || row.median === undefined || info === undefined) return [];
    const { figure } = info;
    const faster = slower(figure, old.median, row.median);
    // Ranges that overlap say nothing.
    const apart = row.min! > old.max! || row.max! < old.min!;
    return [[
      `  ${row.scenario} in ${row.place}: ${row.peer}`,
      formatFigure(figure, old.median),
      formatFigure(figure, row.median),
      `${digits(faster)}x`,
      apart ? (faster > 1 ? "faster" : "SLOWER") : "within the spread",
    ]];
  });
  return columns([["  changed", "before", "now", "faster", ""], ...rows]);
}
