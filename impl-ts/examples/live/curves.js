/** The curves: a line for each way, and a band around it. @module */
import Chart from "chart.js/auto";

const CHANNELS = [["millrace", "Millrace", "--water"], ["rival", "MessagePort", "--rival"]];

/** Where a logarithmic scale has a line and a number, from a nanosecond to a second and more. */
const LINES = Array.from(
  { length: 30 },
  (_, i) => Number(`${i % 2 === 0 ? 1 : 3}e${(i >> 1) - 3}`),
);

/** The value in the middle. */
export function medianOf(values) {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 === 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

/** One chart. */
export class Curve {
  #chart;
  #options;
  #canvas;

  /** @param options Its name, how a value is written, and whether it is one from 0 to 100. */
  constructor(canvas, options) {
    this.#canvas = canvas;
    this.#options = options;
    const { format, isShare } = options;
    this.#chart = new Chart(canvas, {
      type: "line",
      data: { datasets: [] },
      options: {
        animation: false,
        maintainAspectRatio: false,
        parsing: false,
        events: [], // nothing to point at: the table has the figures
        scales: {
          x: { type: "linear", ticks: { display: false }, border: { display: false } },
          y: {
            type: isShare ? "linear" : "logarithmic",
            ...isShare && { min: 0, max: 100 },
            ticks: { callback: (value) => isShare || isLine(value) ? format(value) : undefined },
          },
        },
        plugins: { legend: { display: false }, tooltip: { enabled: false } },
      },
    });
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.#paint());
    this.#paint();
  }

  /** Draws the rounds; `get` has the median, and the band, of one way in one of them. */
  draw(rounds, get) {
    const said = [];
    const all = [];
    const datasets = CHANNELS.flatMap(([key, label, color]) => {
      const values = rounds.map((round) => get(round[key], round));
      if (!values[0]) return [];
      const points = (name) =>
        values.map((value, index) => ({ x: index - values.length + 1, y: value[name] }));
      said.push(`${label} ${this.#options.format(values.at(-1).median)}`);
      // None where the clock has not moved, in the first round say.
      all.push(...values.flatMap((value) => Object.values(value)).filter((value) => value > 0));
      const line = { borderColor: colorOf(color), borderWidth: 2, pointRadius: 0, tension: 0.2 };
      const band = { ...line, borderWidth: 0, backgroundColor: `${colorOf(color)}33` };
      return [
        { ...line, label, data: points("median"), borderDash: key === "rival" ? [6, 3] : [] },
        ...values[0].p10 === undefined ? [] : [
          { ...band, data: points("p10"), fill: false },
          { ...band, data: points("p90"), fill: "-1" },
        ],
      ];
    });
    this.#chart.data.datasets = datasets;
    const { x, y } = this.#chart.options.scales;
    Object.assign(x, { min: 1 - Math.max(20, rounds.length), max: 0 });
    if (!this.#options.isShare) {
      // From a line of the grid to another, so that it does not move with every point.
      const [least, most] = [Math.min(...all), Math.max(...all)];
      Object.assign(y, {
        min: LINES.findLast((line) => line <= least),
        max: LINES.find((line) => line >= most),
      });
    }
    this.#chart.update("none");
    this.#canvas.setAttribute("aria-label", `${this.#options.name}, now: ${said.join(", ")}`);
  }

  #paint() {
    const { x, y } = this.#chart.options.scales;
    x.grid = { display: false };
    y.grid = { color: colorOf("--line") };
    y.border = { display: false };
    y.ticks.color = colorOf("--faint");
    this.#chart.update("none");
  }
}

/** The chart comes to its values by reckoning. */
function isLine(value) {
  return LINES.some((line) => Math.abs(value / line - 1) < 1e-6);
}

/** As six digits: a canvas does not know the colours of a style sheet. */
function colorOf(name) {
  const probe = document.createElement("i");
  probe.style.color = `var(${name})`;
  document.body.append(probe);
  const [r, g, b] = getComputedStyle(probe).color.match(/[\d.]+/g).map(Number);
  probe.remove();
  return `#${[r, g, b].map((part) => Math.round(part).toString(16).padStart(2, "0")).join("")}`;
}
