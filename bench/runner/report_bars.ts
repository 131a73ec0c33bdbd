/**
 * The bars of the report: how many times faster than the rival each one is.
 *
 * They are rows of a table, and not a picture: names are never cut, and the figures stand beside
 * them.
 *
 * @module
 */
import { type Element, element } from "./report_dom.ts";
import { isOurs } from "./results.ts";

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
