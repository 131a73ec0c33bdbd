/** Draws what one more worker brings, and what it costs each file. @module */
import type { Run } from "./main.ts";

const [WIDTH, HEIGHT, EDGE] = [640, 360, 64];

/** One line of the picture. */
interface Line {
  readonly label: string;
  readonly color: string;
  readonly values: readonly number[];
}

/** Throughput and service time by the number of workers, each on a scale of its own. */
export function drawRuns(runs: readonly Run[]): string {
  const counts = runs.map(({ workers }) => workers);
  const lines: Line[] = [
    {
      label: "files per second",
      color: "#0969da",
      values: runs.map(({ files, ms }) => files / ms * 1000),
    },
    { label: "ms for each file", color: "#cf222e", values: runs.map(({ service }) => service) },
  ];
  const ticks = counts.map((count, index) =>
    text(xOf(index, counts.length), HEIGHT - EDGE + 24, `${count}`, "#57606a", "middle")
  );
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${HEIGHT}"` +
    ` font-family="sans-serif" font-size="13">`,
    `<rect width="${WIDTH}" height="${HEIGHT}" fill="#ffffff"/>`,
    `<path d="M${EDGE} ${HEIGHT - EDGE}H${WIDTH - EDGE}" stroke="#57606a"/>`,
    text(WIDTH / 2, HEIGHT - 16, "workers", "#57606a", "middle"),
    ...ticks,
    ...lines.flatMap((line, index) => draw(line, index)),
    "</svg>\n",
  ].join("\n");
}

/** A line from 0, the highest value at the top, with each value beside its point. */
function draw({ label, color, values }: Line, index: number): string[] {
  const most = Math.max(...values);
  const points = values.map((value, at) => {
    const y = HEIGHT - EDGE - value / most * (HEIGHT - 2.5 * EDGE);
    return { x: xOf(at, values.length), y, value };
  });
  const path = points.map(({ x, y }, at) => `${at === 0 ? "M" : "L"}${round(x)} ${round(y)}`);
  const digits = most < 10 ? 3 : 0;
  // The values of one line stand above its points, those of the other below.
  const beside = index === 0 ? -10 : 20;
  return [
    text(EDGE, 28 + 20 * index, label, color, "start"),
    `<path d="${path.join("")}" fill="none" stroke="${color}" stroke-width="2"/>`,
    ...points.map(({ x, y }) =>
      `<circle cx="${round(x)}" cy="${round(y)}" r="4" fill="${color}"/>`
    ),
    ...points.map(({ x, y, value }) => text(x, y + beside, value.toFixed(digits), color, "middle")),
  ];
}

function xOf(index: number, count: number): number {
  return EDGE + (index + 0.5) * (WIDTH - 2 * EDGE) / count;
}

function text(x: number, y: number, what: string, color: string, anchor: string): string {
  const place = `x="${round(x)}" y="${round(y)}" text-anchor="${anchor}"`;
  return `<text ${place} fill="${color}">${what}</text>`;
}

function round(value: number): string {
  return value.toFixed(1);
}
