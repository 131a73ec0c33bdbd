/**
 * The script of the report: draws the charts out of the results in the page.
 *
 * @module
 */
import Chart from "chart.js/auto";
import { type Bar, type Bars, document, drawBars, type Element, element } from "./report_parts.ts";
import { getComputedStyle, inOrder, isOfSizes, kindOf, type Style } from "./report_parts.ts";
import { stylesOf } from "./report_parts.ts";
import { machineWarnings, type Results, risesWith, type Row } from "./results.ts";
import type { ScenarioInfo } from "./results.ts";
import { digits, formatFigure } from "./table.ts";

type Series = Style & { label: string; values: (number | undefined)[] };

/** The results, and what the names in them mean. */
const results = JSON.parse(document.getElementById("data").textContent) as Results & {
  words: Readonly<Record<string, string>>;
};
/** How bars are read. */
const BARS = "A bar begins at the rival, which is 1 ×, and goes to the right where a peer is " +
  "faster: longer is faster. One that goes to the left is slower. The scale is logarithmic.";
const PLACES = ["deno", "node", "chromium", "native"] as const;
const styles = stylesOf(results.rows);
const ink = getComputedStyle(document.body).color;
Chart.defaults.color = ink;
Chart.defaults.animation = false;
Chart.defaults.font.family = "system-ui, sans-serif";
/**
 * On a long scale the powers of ten and their middles have numbers; on a shorter one all but those
 * that stand too close, and on a short one all.
 */
const LONG = 50;
const SHORT = 5;
const TICKS = {
  maxRotation: 0,
  autoSkip: true,
  autoSkipPadding: 16,
  callback(this: { min: number; max: number }, value: string | number): string | undefined {
    const tick = Number(value);
    const range = this.max / this.min;
    const leading = Math.round(10 * tick / 10 ** Math.floor(Math.log10(tick) + 1e-9));
    if (range > LONG && leading !== 10 && leading !== 30) return undefined;
    if (range > SHORT && leading > 50) return undefined;
    const notation = tick >= 1e6 ? "compact" : "standard";
    return tick.toLocaleString("en", { maximumSignificantDigits: 2, notation });
  },
};
/** How many charts are drawn; what looks at the page waits for it. */
let charts = 0;

function section(title: string, about: string): Element {
  const grid = element("div", "", "charts");
  document.getElementById("main").append(element("h2", title), element("p", about), grid);
  return grid;
}

function figure(grid: Element, title: string, about: string, height: number): Element {
  const frame = element("figure");
  const caption = element("figcaption", title);
  caption.append(element("small", about));
  const plot = element("div", "", "plot");
  plot.style.height = `${height}px`;
  const canvas = element("canvas");
  plot.append(canvas);
  frame.append(caption, plot);
  grid.append(frame);
  charts++;
  return canvas;
}

/** A frame with bars in it. */
function barsIn(grid: Element, title: string, about: string, groups: readonly Bars[]): void {
  const frame = element("figure");
  const caption = element("figcaption", title);
  caption.append(element("small", about));
  frame.append(caption);
  drawBars(frame, groups);
  grid.append(frame);
  charts++;
}

/** Who took part, each beside the rival: all of one place, or of one part. */
function barsOf(title: string, info: ScenarioInfo, rows: readonly Row[]): Bars {
  const rises = risesWith(info.figure);
  // A rival may be missing. One begin for all parts is easier to read than the slowest of each.
  const rival = [info.rival, "messageport"].map((name) => rows.find(({ peer }) => peer === name))
    .find((row) => row !== undefined) ?? slowestOf(rows, rises);
  const bars = rows.map((row): Bar => {
    const { peer, median, min, max } = row;
    const format = (value: number) => formatFigure(info.figure, value);
    return {
      name: peer,
      kind: kindOf(peer),
      times: rises ? median! / rival.median! : rival.median! / median!,
      text: format(median!),
      spread: spreadOf(format(min!), format(max!)),
    };
  });
  return { title: `${title}: 1 × is ${rival.peer}`, bars: inOrder(bars) };
}

function slowestOf(rows: readonly Row[], rises: boolean): Row {
  return rows.reduce((worst, row) => (row.median! < worst.median!) === rises ? row : worst);
}

/** From where to where; with one unit where both have the same. */
function spreadOf(min: string, max: string): string {
  const [, least, unit] = /^(\S+) (.*)$/.exec(min) ?? [];
  return `${unit !== undefined && max.endsWith(` ${unit}`) ? least : min} to ${max}`;
}

function placesOf(rows: readonly Row[]): string[] {
  return PLACES.filter((place) => rows.some((row) => row.place === place));
}

/** On a telephone, the names take nearly a line each. */
function heightOf(series: readonly Series[]): number {
  return 260 + 16 * series.length;
}

function lines(
  canvas: Element,
  labels: readonly string[],
  series: readonly Series[],
  unit: string,
): void {
  new Chart(canvas as never, {
    type: "line",
    data: {
      labels: [...labels],
      datasets: series.map(({ label, values, color, dash }) => ({
        label,
        data: values.map((value) => value ?? null),
        borderColor: color,
        borderDash: [...dash],
        borderWidth: kindOf(label) === "ours" ? 4 : 2,
        backgroundColor: color,
        spanGaps: true,
        clip: 10,
      })),
    },
    options: {
      maintainAspectRatio: false,
      scales: {
        y: {
          type: "logarithmic",
          title: { display: true, text: unit },
          grid: { color: "#8884" },
          ticks: TICKS,
        },
        x: { grid: { display: false } },
      },
      plugins: {
        legend: {
          position: "bottom",
          labels: {
            usePointStyle: true,
            pointStyle: "line",
            pointStyleWidth: 28,
            // By itself, a name has the line of a point, which has no dashes.
            generateLabels: (chart) =>
              Chart.defaults.plugins.legend.labels.generateLabels(chart).map((label, index) => ({
                ...label,
                lineDash: [...series[index]!.dash],
              })),
          },
        },
      },
    },
  });
}

function rowsOf(scenario: string): Row[] {
  return results.rows.filter((row) => row.scenario === scenario && row.median !== undefined);
}

/** `echo/json-118/workers/park/one-core` in words. */
function wordsOf(id: string): string {
  const [, payload = "", ends = "", wait = "", pin = "", ...more] = id.split("/");
  const [format = "", size] = payload.split("-");
  const kind = format === "json" || format === "data" ? "JSON" : format;
  const what = size === undefined ? kind : `${kind}, ${sizeOf(Number(size))}`;
  const how = { park: ["sleeping"], spin: ["spinning"] }[wait] ?? [];
  return [what, ends, ...how, ...pin === "one-core" ? ["one processor"] : [], ...more].join(", ");
}

function sizeOf(bytes: number): string {
  if (bytes >= 2 ** 20) return `${bytes / 2 ** 20} MiB`;
  return bytes >= 2 ** 10 ? `${bytes / 2 ** 10} KiB` : `${bytes} B`;
}

/** Scenarios with parts: a chart for each place, a row for each part, a bar for each peer. */
function drawParts(): void {
  const groups = Map.groupBy(
    results.scenarios.filter(({ group, figure }) => group !== undefined && isTime(figure)),
    ({ group }) => group as string,
  );
  const charts = [...groups].flatMap(([group, infos]) =>
    PLACES.map((place) => ({ group, infos, place })).filter(({ infos, place }) =>
      infos.some(({ id }) => rowsOf(id).some((row) => row.place === place))
    )
  );
  if (charts.length === 0) return;
  const grid = section(
    "From the first message",
    "What a program meets that has just started, and what it costs on one thread: the mean time, " +
      `of messages from one number to another, or of one phase. ${BARS}`,
  );
  for (const { group, infos, place } of charts) {
    const groups = infos.flatMap((info) => {
      const rows = rowsOf(info.id).filter((row) => row.place === place);
      return rows.length === 0 ? [] : [barsOf(info.part as string, info, rows)];
    });
    barsIn(grid, `${group.split("/")[0]} in ${place}`, wordsOf(group), groups);
  }
}

function isTime(figure: string): boolean {
  return figure === "round-trip" || figure === "time";
}

function drawRoundTrips(): void {
  const found = results.scenarios.filter(({ id, figure, group }) =>
    group === undefined && isTime(figure) && rowsOf(id).length > 0
  );
  if (found.length === 0) return;
  const grid = section(
    "There and back",
    `The median time of one message to the other end and its answer, for each peer. ${BARS}`,
  );
  for (const info of found) drawPlaces(grid, info);
}

function drawPlaces(grid: Element, info: ScenarioInfo): void {
  const rows = rowsOf(info.id);
  const groups = placesOf(rows).map((place) =>
    barsOf(place, info, rows.filter((row) => row.place === place))
  );
  barsIn(grid, wordsOf(info.id), info.title, groups);
}

function drawLoads(): void {
  const found = results.scenarios.filter(({ id, figure }) =>
    figure === "waiting" && rowsOf(id).length > 0
  );
  if (found.length === 0) return;
  const grid = section(
    "Waiting under load",
    "Messages arrive by a schedule made ahead. Each has waited from its scheduled time to the " +
      "begin of its service. Lower is faster; the scale is logarithmic.",
  );
  const labels = ["50 %", "90 %", "99 %", "99.9 %", "all"];
  for (const { id } of found) {
    for (const place of PLACES) {
      const rows = rowsOf(id).filter((row) => row.place === place && row.waiting !== undefined);
      if (rows.length === 0) continue;
      const rate = Number(id.split("/")[5]);
      const named = rows.map((row) => ({ name: row.peer, row }));
      const series = inOrder(named).map(({ row }): Series => {
        const { p50, p90, p99, p999, max } = row.waiting!;
        const values = [p50, p90, p99, p999, max].map((ns) => Math.max(0.01, ns / 1e3));
        return { label: row.peer, ...styles.get(row.peer)!, values };
      });
      const title = `${rate.toLocaleString("en")} messages a second in ${place}`;
      lines(
        figure(grid, title, wordsOf(id), heightOf(series)),
        labels,
        series,
        "µs waited at most",
      );
    }
  }
}

function drawRates(): void {
  const found = results.scenarios.filter(({ id, figure }) =>
    figure === "rate" && rowsOf(id).length > 0
  );
  if (found.length === 0) return;
  const grid = section(
    "One way",
    "Throughput by the size of the message, where higher is faster; and messages per second " +
      `where there is one size. ${BARS}`,
  );
  const streams = found.filter(({ id }) => isOfSizes(id));
  const sizes = [...new Set(streams.map(({ size }) => size))].sort((a, b) => a - b);
  for (const place of PLACES) {
    const rows = streams.flatMap(({ id, size }) =>
      rowsOf(id).filter((row) => row.place === place).map((row) => ({ ...row, size }))
    );
    if (rows.length === 0) continue;
    const names = [...styles.keys()].filter((name) => rows.some(({ peer }) => peer === name));
    const series = names.map((peer): Series => ({
      label: peer,
      ...styles.get(peer)!,
      values: sizes.map((size) => {
        const row = rows.find((each) => each.peer === peer && each.size === size);
        return row === undefined ? undefined : row.median! * size / 1e9;
      }),
    }));
    const canvas = figure(
      grid,
      `Bytes in ${place}`,
      "GB/s by the size of a message",
      heightOf(series),
    );
    lines(canvas, sizes.map(sizeOf), series, "GB/s");
  }
  for (const info of found.filter((each) => !streams.includes(each))) drawPlaces(grid, info);
}

function drawFloors(): void {
  const rows = results.rows.filter(({ over_floor, peer, scenario }) =>
    over_floor !== undefined && peer.startsWith("millrace") && scenario.startsWith("echo/")
  );
  if (rows.length === 0) return;
  const grid = section(
    "Millrace against the floor",
    "How many times longer a message of Millrace takes than one bare word there and back, " +
      "without any library, in the same run.",
  );
  for (const place of PLACES) {
    const own = rows.filter((row) => row.place === place)
      .sort((a, b) => a.over_floor!.median - b.over_floor!.median);
    if (own.length === 0) continue;
    const bars = own.map(({ peer, scenario, over_floor }): Bar => ({
      name: `${peer}: ${wordsOf(scenario)}`,
      kind: "ours",
      times: 1 / over_floor!.median,
      text: `${digits(over_floor!.median)} × the floor`,
      spread: `${digits(over_floor!.min)} to ${digits(over_floor!.max)}`,
    }));
    barsIn(grid, place, "A bar goes back from the floor: shorter is faster.", [
      { title: "1 × is the floor", bars },
    ]);
  }
}

/** Four columns, which a telephone has room for: what was measured stands above those who were. */
function drawTable(): void {
  const table = element("table", "", "all");
  const line = (cells: readonly string[], kind: string) => {
    const row = element("tr");
    row.append(...cells.map((cell) => element(kind, cell)));
    return row;
  };
  table.append(line(["peer", "median, least to most", "× floor", "× rival"], "th"));
  for (const { id, figure } of results.scenarios) {
    for (const place of placesOf(rowsOf(id))) {
      const title = element("tr");
      const cell = element("th", `${id} in ${place}`);
      cell.setAttribute("colspan", "4");
      title.append(cell);
      table.append(title);
      const rows = rowsOf(id).filter((row) => row.place === place);
      for (const { name, row } of inOrder(rows.map((row) => ({ name: row.peer, row })))) {
        const { median, min, max, over_floor, times_rival } = row;
        const format = (value: number) => formatFigure(figure, value);
        const ratio = (value: number | undefined) => value === undefined ? "" : digits(value);
        const made = line([name, "", ratio(over_floor?.median), ratio(times_rival?.median)], "td");
        const [, figures] = (made as unknown as { children: Element[] }).children;
        figures!.append(
          format(median!),
          element("small", ` ${spreadOf(format(min!), format(max!))}`),
        );
        table.append(made);
      }
    }
  }
  document.getElementById("main").append(element("h2", "All figures"), table);
}

/** What the names mean that stand in this report. */
function drawNames(): void {
  const list = element("dl");
  const used = new Set(
    results.rows.filter(({ median }) => median !== undefined)
      .flatMap(({ peer, scenario }) => [peer, scenario.split("/")[0]!]),
  );
  const words = Object.entries(results.words).filter(([name]) => used.has(name));
  for (const [meaning, names] of Map.groupBy(words, ([, meaning]) => meaning)) {
    const shown = names.map(([name]) => name).join(", ");
    list.append(element("dt", shown), element("dd", meaning));
  }
  document.getElementById("main").append(element("h2", "Names"), list);
}

const { machine, drivers, started, effort } = results;
document.getElementById("about").textContent = [
  `${effort} run of ${started.slice(0, 10)} on ${machine.processor}`,
  `${machine.processors} processors, ${machine.memory_gb} GB, ${machine.system}`,
  drivers.map(({ name, version }) => `${name} ${version}`).join(", "),
].join("; ");
for (const warning of machineWarnings(machine)) {
  document.getElementById("main").append(element("p", `Doubtful: ${warning}.`, "warning"));
}
drawRoundTrips();
drawParts();
drawLoads();
drawRates();
drawFloors();
drawNames();
drawTable();
Object.assign(globalThis, { drawn: charts });
