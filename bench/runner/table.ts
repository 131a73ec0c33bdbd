/**
 * What the terminal shows: of scenarios and their parts, of a run, and of two runs.
 *
 * @module
 */
import { type Ratio, type Results, RESULTS_VERSION, type Row } from "./results.ts";
import { type ScenarioInfo, slower } from "./results.ts";
import type { Figure } from "./scenarios.ts";

/** Formats rows of columns; all but the first stand to the right, the last as it is. */
export function columns(rows: readonly (readonly string[])[]): string {
  const widths: number[] = [];
  for (const row of rows) {
    for (const [index, cell] of row.slice(0, -1).entries()) {
      widths[index] = Math.max(widths[index] ?? 0, cell.length);
    }
  }
  return rows.map((row) =>
    row.map((cell, index) => {
      const width = widths[index] ?? 0;
      if (index === row.length - 1) return cell;
      return index === 0 ? cell.padEnd(width) : cell.padStart(width);
    }).join("  ").trimEnd()
  ).join("\n");
}

/** A figure with its unit. */
export function formatFigure(figure: Figure, value: number): string {
  switch (figure) {
    case "round-trip":
    case "time":
    case "waiting":
      return formatTime(value);
    case "rate":
      return value >= 1e6 ? `${digits(value / 1e6)} M/s` : `${digits(value / 1e3)} k/s`;
    case "processor":
      return `${value.toFixed(3)} %`;
    case "allocation":
      return `${digits(value)} B`;
    case "size":
      return `${(value / 1000).toFixed(1)} KB`;
  }
}

/** Nanoseconds for people. */
export function formatTime(ns: number): string {
  if (Math.abs(ns) < 1e6) return `${digits(ns / 1e3)} µs`;
  return Math.abs(ns) < 1e9 ? `${digits(ns / 1e6)} ms` : `${digits(ns / 1e9)} s`;
}

/** Three digits. */
export function digits(value: number): string {
  if (!Number.isFinite(value)) return "-";
  if (value === 0) return "0";
  return Math.abs(value) >= 100 ? value.toFixed(0) : value.toPrecision(3);
}

/** The smallest and the largest of a ratio; `~` if the machine changed in the middle of it. */
export function formatSpread({ min, max, steady }: Ratio): string {
  return `${steady ? "" : "~"}${digits(min)}-${digits(max)}`;
}

/** A ratio with its spread. */
export function formatRatio(ratio: Ratio): string {
  return `${digits(ratio.median)} (${formatSpread(ratio)})`;
}

/** One scenario in one place. */
export function scenarioTable(info: ScenarioInfo, place: string, rows: readonly Row[]): string {
  const { figure, floor, rival } = info;
  const head = [
    "  peer",
    NAMES[figure],
    "min",
    "max",
    ...floor === undefined ? [] : ["x floor"],
    ...rival === undefined ? [] : ["x rival"],
    "sleeps",
    "",
  ];
  const hasBytes = figure === "rate";
  const cell = <Value>(value: Value | undefined, format: (value: Value) => string) =>
    value === undefined ? "" : format(value);
  const measured = rows.filter(({ median }) => median !== undefined)
    .sort((a, b) => figure === "rate" ? b.median! - a.median! : a.median! - b.median!);
  const shown = measured.map((row) => [
    `  ${row.peer}${row.driver === "rust-native" ? " (rust)" : ""}`,
    formatFigure(figure, row.median!),
    formatFigure(figure, row.min!),
    formatFigure(figure, row.max!),
    ...floor === undefined ? [] : [cell(row.over_floor, formatRatio)],
    ...rival === undefined ? [] : [cell(row.times_rival, formatRatio)],
    cell(row.sleeps, (sleeps) => sleeps === 0 ? "0" : sleeps.toPrecision(2)),
    [
      ...hasBytes ? [`${digits(row.median! * info.size / 1e9)} GB/s`] : [],
      ...row.waiting === undefined ? [] : [`p50 ${formatTime(row.waiting.p50)}`],
      ...row.latency === undefined ? [] : [`p99 ${formatTime(row.latency.p99)}`],
      ...(row.notes ?? []).filter((note) => !note.startsWith("each sample")),
    ].join(", "),
  ]);
  return [
    `${info.id} in ${place}: ${info.title}`,
    ...shown.length === 0 ? [] : [columns([head, ...shown])],
    ...absent(rows),
  ].join("\n");
}

/** Who has no figures, and why. */
export function absent(rows: readonly Row[]): string[] {
  const failed = rows.filter((row) => row.failed !== undefined)
    .map((row) => `  ${row.peer}: FAILED: ${row.failed!.split("\n")[0]}`);
  const declined = rows
    .filter((row) => row.declined !== undefined && !row.peer.startsWith("floor-"))
    .map((row) => `${row.peer} (${row.declined})`);
  return [...failed, ...wrap(declined)];
}

const NAMES: Readonly<Record<Figure, string>> = {
  "round-trip": "round trip",
  "time": "time",
  "rate": "messages",
  "waiting": "p99 waiting",
  "processor": "processor",
  "allocation": "allocated",
  "size": "size",
};

/** Everything about the run as a whole. */
export function runSummary(results: Results, warnings: readonly string[]): string {
  const { machine, drivers, effort, seconds, building_seconds: building, complete } = results;
  const { processor, processors, memory_gb, system, load, busy_percent, steal_percent } = machine;
  return [
    `${effort} run, ${seconds.toFixed(0)} s` +
    (building ? `, ${building.toFixed(0)} of them for building` : "") +
    `${complete ? "" : ", INTERRUPTED"}; medians`,
    `machine: ${processor}, ${processors} processors, ${memory_gb} GB, ${system}`,
    `load ${load.join(" to ")}, others before the run ${busy_percent} %, steal ${steal_percent} %`,
    `drivers: ${drivers.map(({ name, version }) => `${name} ${version}`).join(", ")}`,
    ...warnings.map((warning) => `WARNING: ${warning}`),
  ].join("\n");
}

/** The declined peers, in lines of a hundred columns. */
function wrap(declined: readonly string[]): string[] {
  if (declined.length === 0) return [];
  const lines = ["  not here:"];
  for (const [index, each] of declined.entries()) {
    const text = ` ${each}${index < declined.length - 1 ? ";" : ""}`;
    const last = lines.length - 1;
    if (`${lines[last]}${text}`.length > 98) lines.push(`   ${text}`);
    else lines[last] += text;
  }
  return lines;
}

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
