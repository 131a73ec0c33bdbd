/**
 * Loads the scenarios from their table, and multiplies them out.
 *
 * @module
 */
import type { Ends, Scenario } from "../contract.ts";

/** What a scenario is measured by. */
export type Figure =
  | "round-trip"
  | "time"
  | "rate"
  | "waiting"
  | "processor"
  | "allocation"
  | "size";

/** A place where drivers run. */
export type PlaceName = "deno" | "node" | "chromium" | "native";

/** One case, as it is written, before its lists are multiplied out. */
interface Case {
  readonly payload: readonly string[];
  readonly ends: readonly Ends[];
  readonly wait: Scenario["wait"];
  readonly pin: Scenario["pin"];
  readonly rate?: readonly number[];
  readonly direction?: readonly NonNullable<Scenario["direction"]>[];
  readonly parts?: readonly string[];
  readonly fresh?: boolean;
  readonly duration_ms?: number;
  readonly count?: number;
  readonly repetitions?: number;
  readonly floor?: string;
  readonly rival?: string;
  /** In place of that of the scenario. */
  readonly figure?: Figure;
  /** The only ones, where not all are asked. */
  readonly peers?: readonly string[];
  readonly places?: readonly PlaceName[];
  readonly quick?: readonly PlaceName[];
}

/** What stands above the cases. */
interface Head {
  readonly name: string;
  readonly title: string;
  readonly figure: Figure;
}

/** How long and how often, where a case does not say it. */
export interface Effort {
  readonly name: "full" | "quick" | "smoke";
  readonly duration_ms: number;
  /** For threads that are new, and for those that have played it before. */
  readonly warmup_ms: number;
  readonly again_ms: number;
  readonly repetitions: number;
  /** Of what starts a process for each of them. */
  readonly fresh_repetitions: number;
  /** Counts and long durations are divided by this. */
  readonly less: number;
  /** Messages after which no part begins. */
  readonly first: number;
}

/**
 * The efforts by their names. New threads begin with code that is interpreted: measured from 0.1 s
 * after the start, 64 bytes there and back took two workers of Deno 2.5 us; from 1 s, 1.1 us.
 */
export const EFFORTS: Readonly<Record<Effort["name"], Effort>> = {
  full: {
    name: "full",
    duration_ms: 100,
    warmup_ms: 1000,
    again_ms: 30,
    repetitions: 7,
    fresh_repetitions: 9,
    less: 1,
    first: Infinity,
  },
  quick: {
    name: "quick",
    duration_ms: 50,
    warmup_ms: 500,
    again_ms: 20,
    repetitions: 3,
    fresh_repetitions: 3,
    less: 10,
    first: Infinity,
  },
  smoke: {
    name: "smoke",
    duration_ms: 5,
    warmup_ms: 2,
    again_ms: 1,
    repetitions: 1,
    fresh_repetitions: 1,
    less: 1000,
    first: 10,
  },
};

/** One scenario to measure, in all its places. */
export interface Task {
  /** `echo/json-118/workers/park/one-core`, with what else tells it from its neighbours. */
  readonly id: string;
  readonly title: string;
  readonly figure: Figure;
  readonly scenario: Scenario;
  readonly places: readonly PlaceName[];
  /** Where a quick run has it that names no scenario; often nowhere. */
  readonly quick: readonly PlaceName[];
  readonly repetitions: number;
  readonly floor: string | undefined;
  readonly rival: string | undefined;
  /** The only peers that are asked, where not all are. */
  readonly peers?: readonly string[] | undefined;
  /** What of another task this is; see `partsOf`. */
  readonly part?: { readonly group: string; readonly name: string };
}

const TABLE = new URL("../scenarios.txt", import.meta.url);
/** What a case may set: one word, words with commas between them, a number, or nothing. */
const SETTINGS: Readonly<Record<string, "word" | "words" | "number" | "numbers" | "flag">> = {
  direction: "words",
  rate: "numbers",
  awaited: "flag",
  fresh: "flag",
  count: "number",
  burst: "number",
  window: "number",
  readers: "number",
  task_us: "number",
  service_us: "number",
  duration_ms: "number",
  repetitions: "number",
  figure: "word",
  parts: "words",
  places: "words",
  quick: "words",
  floor: "word",
  rival: "word",
  peers: "words",
};
/** Of a payload, by the first part of its name. */
const FORMATS: Readonly<Record<string, Scenario["format"]>> = {
  bytes: "bytes",
  shared: "bytes",
  json: "json",
  data: "json",
  text: "text",
  number: "json",
  value: "json",
  module: "text",
};
const SCRIPT_PLACES: readonly PlaceName[] = ["deno", "node", "chromium"];
/** All scenarios, multiplied out for an effort. */
export async function loadTasks(effort: Effort): Promise<Task[]> {
  const sets: Record<string, string> = {};
  const tasks: Task[] = [];
  for (const { head, rows } of readRows(await Deno.readTextFile(TABLE))) {
    const [, set, peers] = /^(@\S+) = (\S+)$/.exec(head) ?? [];
    if (set !== undefined) sets[set] = peers!;
    const [name, figure, ...title] = head.split(" ");
    const whole = { name, figure, title: title.join(" ") } as Head;
    for (const lines of rows) {
      tasks.push(...tasksOf(whole, readCase(lines.join(" "), sets), effort));
    }
  }
  return effort.name === "smoke" ? onePayloadEach(tasks) : tasks;
}

/**
 * Reads a table of rows: lines without indentation are heads, each with the rows below it. What is
 * indented further than a row is more of it.
 */
export function readRows(text: string): { head: string; rows: string[][] }[] {
  const found: { head: string; rows: string[][] }[] = [];
  for (const line of text.split("\n")) {
    if (line === "" || line.startsWith("#")) continue;
    if (!line.startsWith(" ")) found.push({ head: line, rows: [] });
    else if (/^ {2}\S/.test(line)) found.at(-1)!.rows.push([line.trim()]);
    else found.at(-1)!.rows.at(-1)!.push(line.trim());
  }
  return found;
}

/** Reads a case; `sets` are the peers that stand for a name. */
export function readCase(text: string, sets: Readonly<Record<string, string>>): Case {
  const [payload, ends, wait, ...settings] = text.split(" ") as [
    string,
    string,
    string,
    ...string[],
  ];
  const [how, pin = "free"] = wait.split("/");
  const read: Record<string, unknown> = {};
  for (const setting of settings) {
    const [key, value = ""] = setting.split("=") as [string, string?];
    const words = value.split(",").flatMap((word) => (sets[word] ?? word).split(","));
    const kind = SETTINGS[key];
    const isNumbers = kind?.startsWith("number") && words.some((word) => !(Number(word) > 0));
    if (kind === undefined || isNumbers || kind !== "flag" && value === "") {
      throw new Error(`Cannot load the scenario ${text}: ${setting}`);
    }
    if (kind === "flag") read[key] = true;
    else if (kind === "number") read[key] = Number(value);
    else if (kind === "numbers") read[key] = words.map(Number);
    else read[key] = kind === "words" ? words : value;
  }
  return { payload: payload.split(","), ends: ends.split(","), wait: how, pin, ...read } as Case;
}

/** What a quick run has that names nothing: each where it is listed for that. */
export function quickTasks(tasks: readonly Task[]): Task[] {
  return tasks.filter(({ quick }) => quick.length > 0)
    .map((task) => ({ ...task, places: task.quick }));
}

/** One payload of each format, and one rate, show that it works as well as several. */
function onePayloadEach(tasks: readonly Task[]): Task[] {
  const seen = new Set<string>();
  return tasks.filter(({ scenario }) => {
    const { rate: _, format, ...rest } = scenario;
    const what = idOf({ ...rest, format, payload: format });
    return seen.size < seen.add(what).size;
  });
}

/** The figures of a task: its parts, each of them a task of its own, or itself. */
export function partsOf(task: Task): Task[] {
  const { id, scenario: { parts } } = task;
  if (parts === undefined) return [task];
  return parts.map((name) => ({ ...task, id: `${id}/${name}`, part: { group: id, name } }));
}

/** Whether a part is measured at this effort: phases always, messages if they begin so soon. */
function isEarly(part: string, { first }: Effort): boolean {
  return !/^[0-9]/.test(part) || Number.parseInt(part) <= first;
}

function tasksOf({ name, title, figure }: Head, each: Case, effort: Effort): Task[] {
  const { payload, ends, rate = [undefined], direction = [undefined], quick = [], ...rest } = each;
  const { floor, rival, peers, pin, figure: own, places: listed, ...counted } = rest;
  const usual = each.fresh ? effort.fresh_repetitions : effort.repetitions;
  const { repetitions = usual, parts, ...other } = counted;
  const tasks: Task[] = [];
  for (const p of payload) {
    for (const e of ends) {
      const native = e === "threads" || e === "processes";
      const places: readonly PlaceName[] = native ? ["native"] : listed ?? SCRIPT_PLACES;
      for (const r of rate) {
        for (const d of direction) {
          const [kind, size = "0"] = p.split("-") as [string, string?];
          const scenario: Scenario = {
            ...other,
            name,
            payload: p,
            format: FORMATS[kind] as Scenario["format"],
            size: Number(size) || 0,
            ends: e,
            pin,
            ...r === undefined ? {} : { rate: r },
            ...d === undefined ? {} : { direction: d },
            ...parts === undefined ? {} : { parts: parts.filter((part) => isEarly(part, effort)) },
            ...each.count === undefined ? {} : { count: Math.ceil(each.count / effort.less) },
            duration_ms: Math.ceil((each.duration_ms ?? 0) / effort.less) || effort.duration_ms,
            // Native code is compiled beforehand: it only has to find its memory.
            warmup_ms: native ? effort.again_ms : effort.warmup_ms,
            again_ms: effort.again_ms,
          };
          tasks.push({
            id: idOf(scenario),
            title,
            figure: own ?? figure,
            scenario,
            places,
            quick,
            repetitions: effort.name === "full" ? repetitions : Math.min(repetitions, usual),
            floor,
            rival,
            peers,
          });
        }
      }
    }
  }
  return tasks;
}

/** What tells a scenario from all others. */
export function idOf(scenario: Scenario): string {
  const { name, payload, ends, wait, pin, rate, direction, awaited, fresh } = scenario;
  const { task_us, readers } = scenario;
  const parts = [name, payload, ends, wait, pin];
  if (task_us !== undefined) parts.push(`${task_us}us`);
  if (readers !== undefined) parts.push(`${readers}r`);
  if (rate !== undefined) parts.push(`${rate}`);
  if (direction !== undefined) parts.push(direction);
  if (awaited) parts.push("awaited");
  if (fresh) parts.push("fresh");
  return parts.join("/");
}
