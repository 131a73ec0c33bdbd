/**
 * By what the lines of the report are told apart: a color each, and dashes where those are used up.
 *
 * @module
 */
import { inOrder } from "./report_bars.ts";
import type { Row } from "./results.ts";

/** How the lines of one peer look, in all charts. */
export interface Style {
  readonly color: string;
  readonly dash: readonly number[];
}

/** Colors that people tell apart who see few of them; those that come later are dashed as well. */
const COLORS = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#b8860b", "#56b4e9", "#8a94a0"];
const DASHES = [[], [8, 4], [2, 3], [10, 3, 2, 3]];

/**
 * The styles of those who have a line somewhere, Millrace first. Where all others had one too, of
 * whom a run has dozens, they would soon be used up.
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

/** Whether a scenario is one of those that differ in the size of the messages alone. */
export function isOfSizes(scenario: string): boolean {
  return /^(stream|large)\/bytes/.test(scenario);
}
