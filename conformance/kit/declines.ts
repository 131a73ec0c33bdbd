/**
 * What was not played, and why: what testees decline, and what the kit itself cannot show. Grouped,
 * so that hundreds of cases stay readable.
 *
 * @module
 */

import type { Verdict } from "./verdict.ts";

/** Cases that were not played for the same reason. */
export interface Unplayed {
  /** The testee that declines them; nobody where the kit cannot show them. */
  who: string | undefined;
  why: string;
  count: number;
  /** Ids, each once, however many places it was declined in. */
  ids: string[];
  /** Levels with their carriers: `static bytes`. */
  places: string[];
}

/** Ids that the console lists of each reason; files list all. */
const SHOWN = 3;

/** The declined cases by testee and reason, then those that the kit cannot show, by reason. */
export function unplayed(verdicts: readonly Verdict[]): Unplayed[] {
  const groups = new Map<string, Unplayed>();
  for (const status of ["declined", "unshown"] as const) {
    for (const verdict of verdicts) {
      if (verdict.status === status) add(groups, verdict);
    }
  }
  return [...groups.values()];
}

function add(groups: Map<string, Unplayed>, verdict: Verdict): void {
  const { id, level, carrier, testees, status, by = 0 } = verdict;
  const who = status === "declined" ? testees[by]! : undefined;
  const why = verdict.why.join("; ");
  const key = JSON.stringify([who ?? null, why]);
  const group = groups.get(key) ?? { who, why, count: 0, ids: [], places: [] };
  groups.set(key, group);
  group.count++;
  if (!group.ids.includes(id)) group.ids.push(id);
  const place = `${level} ${carrier}`;
  if (!group.places.includes(place)) group.places.push(place);
}

/** The same for a person at a terminal; nothing where everything was played. */
export function unplayedText(verdicts: readonly Verdict[]): string {
  const groups = unplayed(verdicts);
  const declined = groups.filter(({ who }) => who !== undefined);
  const unshown = groups.filter(({ who }) => who === undefined);
  const part = (title: string, some: Unplayed[]) =>
    some.length === 0 ? [] : [title, ...some.map(lineOf)];
  return [
    ...part("declined, by testee and reason:", declined),
    ...part("not shown, by a limit of the kit and not of the testee:", unshown),
  ].join("\n");
}

function lineOf({ who, why, count, ids, places }: Unplayed): string {
  const more = ids.length > SHOWN ? ` and ${ids.length - SHOWN} more` : "";
  const head = who === undefined ? why : `${who} ${why}`;
  return `  ${head}: ${count} in ${places.join(", ")}\n    ${
    ids.slice(0, SHOWN).join(", ")
  }${more}`;
}

/** The same in Markdown, with every id. */
export function unplayedMarkdown(verdicts: readonly Verdict[]): string {
  const groups = unplayed(verdicts);
  const rows = groups.map(({ who, why, count, ids, places }) =>
    `| ${[who ?? "(the kit)", why, count, places.join(", "), ids.join(", ")].join(" | ")} |`
  );
  if (rows.length === 0) return "";
  const head =
    "| not played by | because | times | where | cases |\n| --- | --- | --- | --- | --- |";
  return `## Declined, and not shown\n\n${[head, ...rows].join("\n")}`;
}
