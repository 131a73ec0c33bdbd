/**
 * The script of the report: draws the charts out of the results in the page.
 *
 * @module
 */
import Chart from "chart.js/auto";
import { machineWarnings } from "./machine_warnings.ts";
import type { Results, Row } from "./results.ts";
import { digits, formatFigure } from "./table.ts";

/** The part of a page that is used: its types and a worker's exclude one another. */
interface Element {
  id: string;
  className: string;
  textContent: string;
  style: Record<string, string>;
  append(...children: (Element | string)[]): void;
}
interface Document {
  getElementById(id: string): Element;
  createElement(name: string): Element;
}

type Series = { label: string; values: (number | undefined)[]; color: string };

const { document, getComputedStyle } = globalThis as unknown as {
  document: Document & { body: Element };
  getComputedStyle(element: Element): { color: string };
};
const results = JSON.parse(document.getElementById("data").textContent) as Results;
const PLACES = ["deno", "node", "chromium", "native"] as const;
const PLACE_COLORS: Record<string, string> = {
  deno: "#2b6cb0",
  node: "#2f855a",
  chromium: "#c05621",
  native: "#6b46c1",
};
const FLOOR_COLOR = "#8a94a0";
const COLORS = [
  "#c53030",
  "#2b6cb0",
  "#2f855a",
  "#b7791f",
  "#6b46c1",
  "#0bb5c8",
  "#d53f8c",
  "#4a5568",
  "#f6822b",
  "#68d391",
  "#b794f4",
  "#90cdf4",
  "#d69e2e",
  "#7b341e",
  "#1d4044",
  "#f687b3",
];
const peers = [...new Set(results.rows.map(({ peer }) => peer))]
  .filter((peer) => !peer.startsWith("floor-"));
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

function colorOf(peer: string): string {
  const index = peers.indexOf(peer);
  return index < 0 ? FLOOR_COLOR : COLORS[index % COLORS.length] as string;
}

function element(name: string, text = "", className = ""): Element {
  const made = document.createElement(name);
  if (text !== "") made.textContent = text;
  if (className !== "") made.className = className;
  return made;
}

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

/** Bars to the right on a logarithmic scale: one row for each label, one bar for each series. */
function bars(
  canvas: Element,
  labels: readonly string[],
  series: readonly Series[],
  unit: string,
): void {
  new Chart(canvas as never, {
    type: "bar",
    data: {
      labels: [...labels],
      datasets: series.map(({ label, values, color }) => ({
        label,
        data: values.map((value) => value ?? null),
        backgroundColor: color,
      })),
    },
    options: {
      indexAxis: "y",
      maintainAspectRatio: false,
      scales: {
        x: {
          type: "logarithmic",
          title: { display: true, text: unit },
          grid: { color: "#8884" },
          ticks: TICKS,
        },
        y: { grid: { display: false }, ticks: { autoSkip: false } },
      },
      plugins: { legend: { display: series.length > 1, position: "bottom" } },
    },
  });
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
      datasets: series.map(({ label, values, color }) => ({
        label,
        data: values.map((value) => value ?? null),
        borderColor: color,
        backgroundColor: color,
        spanGaps: true,
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
      plugins: { legend: { position: "bottom" } },
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
      "of messages from one number to another, or of one phase. Shorter is faster; the scale is " +
      "logarithmic.",
  );
  for (const { group, infos, place } of charts) {
    const rows = infos.flatMap(({ id }) => rowsOf(id)).filter((row) => row.place === place);
    const names = [...new Set(rows.map(({ peer }) => peer))];
    const series = names.map((peer): Series => ({
      label: peer,
      color: colorOf(peer),
      values: infos.map(({ id }) => {
        const row = rows.find((each) => each.peer === peer && each.scenario === id);
        return row === undefined ? undefined : row.median! / 1e3;
      }),
    }));
    const height = 110 + infos.length * (12 + 10 * names.length);
    const title = `${group.split("/")[0]} in ${place}`;
    const labels = infos.map(({ part }) => part as string);
    bars(figure(grid, title, wordsOf(group), height), labels, series, "µs");
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
    "The median time of one message to the other end and its answer, for each peer. Shorter is " +
      "faster; the scale is logarithmic.",
  );
  for (const { id, title } of found) {
    const rows = rowsOf(id);
    const best = (peer: string) =>
      Math.min(...rows.filter((row) => row.peer === peer).map(({ median }) => median as number));
    const names = [...new Set(rows.map(({ peer }) => peer))].sort((a, b) => best(a) - best(b));
    const places = PLACES.filter((place) => rows.some((row) => row.place === place));
    const series = places.map((place): Series => ({
      label: place,
      color: PLACE_COLORS[place] as string,
      values: names.map((peer) => {
        const row = rows.find((each) => each.peer === peer && each.place === place);
        return row === undefined ? undefined : row.median! / 1e3;
      }),
    }));
    const height = 90 + names.length * (12 + 10 * places.length);
    bars(figure(grid, wordsOf(id), title, height), names, series, "µs");
  }
}

function drawLoads(): void {
  const found = results.scenarios.filter(({ id, figure }) =>
    figure === "waiting" && rowsOf(id).length > 0
  );
  if (found.length === 0) return;
  const grid = section(
    "Waiting under load",
    "Messages arrive by a schedule made ahead. Each has waited from its scheduled time to the " +
      "begin of its service.",
  );
  const labels = ["50 %", "90 %", "99 %", "99.9 %", "all"];
  for (const { id } of found) {
    for (const place of PLACES) {
      const rows = rowsOf(id).filter((row) => row.place === place && row.waiting !== undefined);
      if (rows.length === 0) continue;
      const rate = Number(id.split("/")[5]);
      const series = rows.map((row): Series => {
        const { p50, p90, p99, p999, max } = row.waiting!;
        const values = [p50, p90, p99, p999, max].map((ns) => Math.max(0.01, ns / 1e3));
        return { label: row.peer, color: colorOf(row.peer), values };
      });
      const title = `${rate.toLocaleString("en")} messages a second in ${place}`;
      lines(figure(grid, title, wordsOf(id), 320), labels, series, "µs waited at most");
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
    "Throughput by the size of the message, and messages per second where there is one size.",
  );
  const streams = found.filter(({ id }) => /^(stream|large)\/bytes/.test(id));
  const sizes = [...new Set(streams.map(({ size }) => size))].sort((a, b) => a - b);
  for (const place of PLACES) {
    const rows = streams.flatMap(({ id, size }) =>
      rowsOf(id).filter((row) => row.place === place).map((row) => ({ ...row, size }))
    );
    if (rows.length === 0) continue;
    const names = [...new Set(rows.map(({ peer }) => peer))];
    const series = names.map((peer): Series => ({
      label: peer,
      color: colorOf(peer),
      values: sizes.map((size) => {
        const row = rows.find((each) => each.peer === peer && each.size === size);
        return row === undefined ? undefined : row.median! * size / 1e9;
      }),
    }));
    const canvas = figure(grid, `Bytes in ${place}`, "GB/s by the size of a message", 340);
    lines(canvas, sizes.map(sizeOf), series, "GB/s");
  }
  for (const { id, title } of found.filter((each) => !streams.includes(each))) {
    const rows = rowsOf(id);
    const names = [...new Set(rows.map(({ peer }) => peer))];
    const places = PLACES.filter((place) => rows.some((row) => row.place === place));
    const series = places.map((place): Series => ({
      label: place,
      color: PLACE_COLORS[place] as string,
      values: names.map((peer) =>
        rows.find((each) => each.peer === peer && each.place === place)?.median
      ),
    }));
    const height = 90 + names.length * (12 + 10 * places.length);
    bars(figure(grid, wordsOf(id), title, height), names, series, "messages per second");
  }
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
    const labels = own.map(({ peer, scenario }) => `${peer}: ${wordsOf(scenario)}`);
    const values = own.map(({ over_floor }) => over_floor!.median);
    const series = [{ label: "times the floor", color: PLACE_COLORS[place] as string, values }];
    bars(figure(grid, place, "1 is the floor", 80 + 26 * own.length), labels, series, "times");
  }
}

function drawTable(): void {
  const table = element("table");
  const head = ["scenario", "place", "peer", "median", "min", "max", "x floor", "x rival"];
  const line = (cells: readonly string[], kind: string) => {
    const row = element("tr");
    row.append(...cells.map((cell) => element(kind, cell)));
    return row;
  };
  table.append(line(head, "th"));
  for (const { id, figure } of results.scenarios) {
    for (const row of rowsOf(id)) {
      const { place, peer, median, min, max, over_floor, times_rival } = row;
      const format = (value: number | undefined) =>
        value === undefined ? "" : formatFigure(figure, value);
      const ratio = (value: number | undefined) => value === undefined ? "" : digits(value);
      const cells = [id, place, peer, format(median), format(min), format(max)];
      table.append(line([...cells, ratio(over_floor?.median), ratio(times_rival?.median)], "td"));
    }
  }
  const wide = element("div", "", "wide");
  wide.append(table);
  document.getElementById("main").append(element("h2", "All figures"), wide);
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
drawTable();
Object.assign(globalThis, { drawn: charts });
