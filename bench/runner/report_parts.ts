/**
 * What the report is made of: elements, bars, and the styles of lines.
 *
 * @module
 */
import { isOurs, type Row } from "./results.ts";

/** The part of an element that is used: a page's types and a worker's exclude one another. */
export interface Element {
  id: string;
  className: string;
  textContent: string;
  style: Record<string, string>;
  append(...children: (Element | string)[]): void;
  setAttribute(name: string, value: string): void;
}
interface Document {
  readonly body: Element;
  getElementById(id: string): Element;
  createElement(name: string): Element;
}

export const { document, getComputedStyle } = globalThis as unknown as {
  document: Document;
  getComputedStyle(element: Element): { color: string };
};

/** Makes an element. */
export function element(name: string, text = "", className = ""): Element {
  const made = document.createElement(name);
  if (text !== "") made.textContent = text;
  if (className !== "") made.className = className;
  return made;
}

/** Whose bar it is. */
type Kind = "ours" | "other" | "floor";

/** One row. */
export interface Bar {
  readonly name: string;
  readonly kind: Kind;
  /** How many times faster than the rival. */
  readonly times: number;
  /** The figure itself, and from where to where its repetitions go. */
  readonly text: string;
  readonly spread: string;
}

/** Rows that belong together. */
export interface Bars {
  readonly title: string;
  readonly bars: readonly Bar[];
}

const RANKS: readonly Kind[] = ["ours", "other", "floor"];

export function kindOf(peer: string): Kind {
  if (peer.startsWith("floor-")) return "floor";
  return isOurs(peer) ? "ours" : "other";
}

/** One order for all of the report: those of Millrace, the runtime's own, all others, floors. */
export function inOrder<T extends { readonly name: string }>(all: readonly T[]): T[] {
  const rank = ({ name }: T) => 2 * RANKS.indexOf(kindOf(name)) - +/^messageport/.test(name);
  return [...all].sort((a, b) => rank(a) - rank(b) || a.name.localeCompare(b.name, "en"));
}

/** Draws groups of bars by one scale. */
export function drawBars(frame: Element, groups: readonly Bars[]): void {
  const times = groups.flatMap(({ bars }) => bars.map((bar) => bar.times))
    .filter((each) => Number.isFinite(each) && each > 0);
  const least = Math.min(1, ...times);
  const range = Math.log(Math.max(1, ...times) / least) || 1;
  const placeOf = (each: number) => 100 * Math.log(each / least) / range;
  const table = element("table", "", "bars");
  for (const { title, bars } of groups) {
    const head = element("tr");
    const cell = element("th", title, "group");
    cell.setAttribute("colspan", "3");
    head.append(cell);
    table.append(head, ...bars.map((bar) => rowOf(bar, placeOf)));
  }
  frame.append(table);
}

function rowOf(bar: Bar, placeOf: (times: number) => number): Element {
  const { name, kind, times, text, spread } = bar;
  const row = element("tr", "", kind);
  const label = element("th", name);
  label.setAttribute("scope", "row");
  const [from, to] = [placeOf(Math.min(1, times)), placeOf(Math.max(1, times))];
  const line = element("i");
  Object.assign(line.style, { left: `${from}%`, width: `${to - from}%` });
  const one = element("u");
  one.style.left = `${placeOf(1)}%`;
  const drawn = element("td", "", "bar");
  drawn.append(line, one);
  const figure = element("td", `${Number(times.toPrecision(times < 10 ? 2 : 3))} ×`, "figure");
  figure.append(element("small", `${text}, ${spread}`));
  row.append(label, drawn, figure);
  return row;
}

/** How the lines of one peer look, in all charts. */
export interface Style {
  readonly color: string;
  readonly dash: readonly number[];
}

/** Colors that people tell apart who see few of them; those that come later are dashed as well. */
const COLORS = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#b8860b", "#56b4e9", "#8a94a0"];
const DASHES = [[], [8, 4], [2, 3], [10, 3, 2, 3]];

/**
 * The styles of the peers that have a line in a chart, Millrace first. A run has dozens of other
 * peers: if each of them had a style too, there would soon be none left.
 */
export function stylesOf(rows: readonly Row[]): Map<string, Style> {
  const names = new Set(rows.filter(hasLine).map(({ peer }) => peer));
  return new Map(
    inOrder([...names].map((name) => ({ name }))).map(({ name }, index) => [name, {
      color: COLORS[index % COLORS.length]!,
      dash: DASHES[Math.floor(index / COLORS.length) % DASHES.length]!,
    }]),
  );
}

/** Its waiting under load, or bytes by the size of a message. */
function hasLine({ scenario, median, waiting }: Row): boolean {
  return median !== undefined && (isOfSizes(scenario) || waiting !== undefined);
}

/** Whether a scenario is one of a row that differ in the size of their messages alone. */
export function isOfSizes(scenario: string): boolean {
  return /^(stream|large)\/bytes/.test(scenario);
}
