/**
 * The command line of the benchmarks.
 *
 * @module
 */
import { parseArgs } from "node:util";
import type { Effort, PlaceName } from "./scenarios.ts";

/** What was asked for. */
export interface Arguments {
  effort: Effort["name"];
  /** Words of which a scenario has one. */
  names: string[];
  only: string[];
  peers: string[];
  places: PlaceName[];
  json: string | undefined;
  report: string | undefined;
  compare: string | undefined;
  from: string | undefined;
  sabMessagePort: string | undefined;
  goals: boolean;
  list: boolean;
  help: boolean;
}

/** A mistake in the command line. */
export class UsageError extends Error {}

/** What `--help` prints. */
export const USAGE = `Usage: ./millrace bench [option...] [scenario...]

  SCENARIO                 those with that word in their name, such as start, cold or one-core
  --quick                  a part of the scenarios, in two minutes; or those that are named
  --smoke                  every scenario and peer once, in seconds; the figures mean nothing
  --only GLOB              scenarios whose name fits, such as 'echo/*' or '*/one-core'
  --peer NAME[,NAME...]    these peers alone, beside the floor and the rival of each scenario
  --place NAME[,NAME...]   deno, node, chromium, native
  --goals                  measures what the goals need, and says which hold; exit code 1 if not all
  --json FILE              writes the results
  --report FILE            writes a page with charts; bench/report.html after a whole run
  --from FILE              measures nothing, and shows the results of that file
  --compare FILE           shows what has changed since that file, of the same machine
  --sab-message-port DIR   the rival of that name, which is on no registry
  --list                   prints the scenarios
`;

const PLACES: readonly string[] = ["deno", "node", "chromium", "native"];

/** Reads the command line. Throws a `UsageError` for what it does not know. */
export function readArguments(words: readonly string[]): Arguments {
  const { values, positionals } = parseStrictly(words);
  const split = (lists: readonly string[] = []) => lists.flatMap((list) => list.split(","));
  return {
    effort: values.smoke ? "smoke" : values.quick ? "quick" : "full",
    names: positionals,
    only: values.only ?? [],
    peers: split(values.peer),
    places: split(values.place).map(placeOf),
    json: values.json,
    report: values.report,
    compare: values.compare,
    from: values.from,
    sabMessagePort: values["sab-message-port"],
    goals: values.goals ?? false,
    list: values.list ?? false,
    help: values.help ?? false,
  };
}

function parseStrictly(words: readonly string[]) {
  const flag = { type: "boolean" } as const;
  const value = { type: "string" } as const;
  const list = { type: "string", multiple: true } as const;
  const options = {
    quick: flag,
    smoke: flag,
    only: list,
    peer: list,
    place: list,
    goals: flag,
    json: value,
    report: value,
    from: value,
    compare: value,
    "sab-message-port": value,
    list: flag,
    help: { ...flag, short: "h" },
  } as const;
  try {
    const read = parseArgs({ args: [...words], allowPositionals: true, options });
    if (Object.values(read.values).flat().includes("")) throw new Error("An option needs a value");
    return read;
  } catch (error) {
    throw new UsageError((error as Error).message);
  }
}

function placeOf(name: string): PlaceName {
  if (!PLACES.includes(name)) throw new UsageError(`Unknown place: ${name}`);
  return name as PlaceName;
}

/** Whether a scenario has that word: its name, its payload, its ends and so on. */
export function isNamed(id: string, word: string): boolean {
  return id.split("/").includes(word);
}

/** Whether a text fits a pattern, in which `*` stands for anything. */
export function fits(text: string, glob: string): boolean {
  const parts = glob.split("*").map((part) => part.replace(/[.+?^${}()|[\]\\]/g, "\\$&"));
  return new RegExp(`^${parts.join(".*")}$`, "s").test(text);
}
