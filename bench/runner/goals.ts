/**
 * The goals, and whether a run has reached them. They are rows of `../goals.txt`.
 *
 * @module
 */
import { inverse, type Ratio, ratioOf, type Results, type Row, slower } from "./results.ts";
import { partsOf, type PlaceName, readRows, type Task } from "./scenarios.ts";
import { columns, digits, formatFigure, formatSpread } from "./table.ts";

/** One goal. It holds if it holds in every place. */
export interface Goal {
  readonly group: string;
  readonly text: string;
  /** Its name; of one with parts, with that of the part after it. */
  readonly scenario: string;
  readonly places: readonly PlaceName[];
  /** The peer of whom it speaks; of several, the best. */
  readonly peer: readonly string[];
  readonly driver?: string;
  /** To whom it is compared; without one, the figure itself counts. */
  readonly versus?: readonly string[];
  readonly versus_driver?: string;
  /** Where that is measured, if not in the same scenario: another part of the same run. */
  readonly versus_scenario?: string;
  /** The least that a peer of its kind does, of several the best; see `isOutOfReach`. */
  readonly bound?: readonly string[];
  /** `slower`: how many times slower it is; `faster`: how many times faster; or its figure. */
  readonly measure: "slower" | "faster" | "figure";
  readonly at_most?: number;
  readonly at_least?: number;
}

/** One goal in one place. */
export interface Verdict {
  readonly goal: Goal;
  readonly place: PlaceName;
  /** What was measured; `undefined` if it was not. */
  readonly value: number | undefined;
  /** Of a ratio: its smallest and largest, in the pairs of repetitions. */
  readonly ratio?: Ratio;
  readonly holds: boolean;
  /** The same for the floor that bounds the goal, where both were measured. */
  readonly bound?: Pick<Verdict, "holds" | "because"> & { readonly value: number };
  /** The figures that decide it, or why there are none. */
  readonly because: string;
}

const TABLE = new URL("../goals.txt", import.meta.url);
/** Of a row: scenario, places, what is wanted, and the bound. */
const ROW = /^(\S+?)(?: in (\S+))?: (.+?)(?:, bound (\S+))?$/;
/** Peers, at least or at most how many, times which others, of which part. */
const WANTED = /^(\S+) (?:(>=|<=)|([\d.]+)\.\.)\s?([\d.]+)(?: x (\S+)(?: of (\S+))?)?$/;
const ALTERNATIVES = /\{([^{}]+\|[^{}]+)\}/;

/** Loads the goals. */
export async function loadGoals(): Promise<Goal[]> {
  return readRows(await Deno.readTextFile(TABLE)).flatMap(({ head, rows }) =>
    rows.flatMap(([text = "", ...rest]) => {
      const texts = multiply(text);
      const wanted = multiply(rest.join(" "));
      return texts.map((each, index) => readGoal(head, each, wanted[index] ?? ""));
    })
  );
}

/** A text with each of its alternatives. */
function multiply(text: string): string[] {
  const [all, inner] = ALTERNATIVES.exec(text) ?? [];
  return inner?.split("|").map((each) => text.replace(all!, each)) ?? [text];
}

/** Reads one goal. */
export function readGoal(group: string, text: string, row: string): Goal {
  const [, scenario, places = "deno,node", wanted = "", bound] = ROW.exec(row) ?? [];
  const [, own, sign, least, limit, others, part] = WANTED.exec(wanted) ?? [];
  if (scenario === undefined || own === undefined) throw new Error(`Cannot load the goal ${row}`);
  const [peer, driver] = namesOf(own);
  const [versus, versus_driver] = namesOf(others);
  const isFaster = sign === ">=";
  return {
    group,
    text,
    scenario,
    places: places.split(",") as PlaceName[],
    peer: peer!,
    ...driver && { driver },
    ...versus && { versus },
    ...versus_driver && { versus_driver },
    ...part && { versus_scenario: scenario.replace(/[^/]+$/, part) },
    ...bound && { bound: bound.split(",") },
    measure: versus === undefined ? "figure" : isFaster ? "faster" : "slower",
    ...least && { at_least: Number(least) },
    ...isFaster ? { at_least: Number(limit) } : { at_most: Number(limit) },
  };
}

/** Peers, and the driver that some are of. */
function namesOf(names: string | undefined): [peers?: string[], driver?: string | undefined] {
  if (names === undefined) return [];
  const pairs = names.split(",").map((name) => name.split("@"));
  return [pairs.map(([peer]) => peer!), pairs[0]![1]];
}

/** Whether a goal speaks of a task, or of a part of it. */
export function needs(goal: Goal, task: Task): boolean {
  return partsOf(task).some(({ id }) => id === goal.scenario || id === goal.versus_scenario);
}

/** Judges all goals by a run; what was not measured does not hold. */
export function judge(goals: readonly Goal[], results: Results): Verdict[] {
  return goals.flatMap((goal) =>
    goal.places.map((place) => withBound(judgeOne(goal, place, results), results))
  );
}

function withBound(verdict: Verdict, results: Results): Verdict {
  const { goal: { bound, driver: _, ...goal }, place, value } = verdict;
  if (bound === undefined || value === undefined) return verdict;
  const judged = judgeOne({ ...goal, peer: bound }, place, results);
  if (judged.value === undefined) return verdict;
  const { holds, because } = judged;
  // What the others did stands beside the goal already.
  const [own = ""] = because.split(", ");
  return { ...verdict, bound: { value: judged.value, holds, because: own } };
}

/** Whether a goal was missed that even its bound misses. */
function isOutOfReach({ holds, bound }: Verdict): boolean {
  return !holds && bound?.holds === false;
}

function judgeOne(goal: Goal, place: PlaceName, results: Results): Verdict {
  const fail = (because: string): Verdict => {
    return { goal, place, value: undefined, holds: false, because };
  };
  const info = results.scenarios.find(({ id }) => id === goal.scenario);
  if (info === undefined) return fail("not measured");
  const { figure } = info;
  const own = bestOf(goal.peer, goal.driver, goal.scenario, place, results);
  if (typeof own === "string") return fail(own);
  const shown = (row: Row) => `${row.peer} ${formatFigure(figure, row.median!)}`;
  if (goal.versus === undefined) return decide(goal, place, own.median!, shown(own));
  const { versus_scenario = goal.scenario } = goal;
  const other = bestOf(goal.versus, goal.versus_driver, versus_scenario, place, results);
  if (typeof other === "string") return fail(other);
  const slowness = ratioOf(figure, own, other);
  if (slowness === undefined) return fail(`${shown(own)}, ${shown(other)}: no ratio`);
  const ratio = goal.measure === "slower" ? slowness : inverse(slowness);
  // A ratio of two states of the machine says nothing, whether it would hold or not.
  if (!ratio.steady) return fail("the machine changed in the middle of every repetition");
  return { ...decide(goal, place, ratio.median, `${shown(own)}, ${shown(other)}`), ratio };
}

function decide(goal: Goal, place: PlaceName, value: number, because: string): Verdict {
  const { at_most = Infinity, at_least = -Infinity } = goal;
  return { goal, place, value, holds: value <= at_most && value >= at_least, because };
}

/** The best of some peers, or why there is none. */
function bestOf(
  peers: readonly string[],
  driver: string | undefined,
  scenario: string,
  place: PlaceName,
  results: Results,
): Row | string {
  const rows = results.rows.filter((row) =>
    row.scenario === scenario && row.place === place && peers.includes(row.peer) &&
    (driver === undefined || row.driver === driver)
  );
  const measured = rows.filter(({ median }) => median !== undefined && Number.isFinite(median));
  const figure = results.scenarios.find(({ id }) => id === scenario)?.figure ?? "time";
  measured.sort((a, b) => slower(figure, a.median!, b.median!) - 1);
  if (measured[0] !== undefined) return measured[0];
  const why = rows[0]?.failed ?? rows[0]?.declined ?? "not measured";
  return `${peers.join(", ")}: ${why.split("\n")[0]}`;
}

function limitOf({ at_most, at_least }: Goal): string {
  if (at_most === undefined) return `>= ${at_least}`;
  return at_least === undefined ? `<= ${at_most}` : `${at_least} to ${at_most}`;
}

/** The goals with the figure beside each. */
export function goalsTable(verdicts: readonly Verdict[]): string {
  const lines: string[] = [];
  for (const group of new Set(verdicts.map(({ goal }) => goal.group))) {
    const rows = verdicts.filter(({ goal }) => goal.group === group).map((verdict) => {
      const { goal, place, value, ratio, holds, bound, because } = verdict;
      const limit = limitOf(goal);
      const word = holds ? "holds" : value === undefined ? "not measured" : "MISSED";
      const text = value === undefined ? "-" : digits(value);
      const spread = ratio === undefined ? "" : formatSpread(ratio);
      const floor = bound === undefined ? "" : `; ${bound.because}: ${digits(bound.value)}`;
      const note = isOutOfReach(verdict) ? ": out of reach" : "";
      return [`  ${goal.text}`, place, limit, text, spread, word, because + floor + note];
    });
    lines.push(`${group}`, columns(rows), "");
  }
  const held = verdicts.filter(({ holds }) => holds).length;
  const unknown = verdicts.filter(({ value }) => value === undefined).length;
  const missed = verdicts.length - held - unknown;
  const beyond = verdicts.filter(isOutOfReach).length;
  lines.push(`${held} of ${verdicts.length} hold, ${missed} missed, ${unknown} not measured`);
  if (beyond > 0) {
    lines.push(`${beyond} of those missed are out of reach: their floor misses them too`);
  }
  return lines.join("\n");
}
