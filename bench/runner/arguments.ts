/**
 * The command line of the benchmarks.
 *
 * @module
 */
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
  const wanted: Arguments = {
    effort: "full",
    names: [],
    only: [],
    peers: [],
    places: [],
    json: undefined,
    report: undefined,
    compare: undefined,
    from: undefined,
    sabMessagePort: undefined,
    goals: false,
    list: false,
    help: false,
  };
  const rest = words.flatMap((word) => {
    const [, name, value] = /^(--[a-z-]+)=(.*)$/s.exec(word) ?? [];
    return name === undefined ? [word] : [name, value as string];
  });
  const next = (option: string): string => {
    const value = rest.shift();
    if (value === undefined || value === "") throw new UsageError(`${option} needs a value`);
    return value;
  };
  while (rest.length > 0) {
    const option = rest.shift() as string;
    switch (option) {
      case "--quick":
        wanted.effort = "quick";
        break;
      case "--smoke":
        wanted.effort = "smoke";
        break;
      case "--only":
        wanted.only.push(next(option));
        break;
      case "--peer":
        wanted.peers.push(...next(option).split(","));
        break;
      case "--place":
        wanted.places.push(...placesOf(next(option)));
        break;
      case "--json":
        wanted.json = next(option);
        break;
      case "--report":
        wanted.report = next(option);
        break;
      case "--compare":
        wanted.compare = next(option);
        break;
      case "--from":
        wanted.from = next(option);
        break;
      case "--sab-message-port":
        wanted.sabMessagePort = next(option);
        break;
      case "--goals":
        wanted.goals = true;
        break;
      case "--list":
        wanted.list = true;
        break;
      case "--help":
      case "-h":
        wanted.help = true;
        break;
      default:
        if (option.startsWith("-")) throw new UsageError(`Unknown argument: ${option}`);
        wanted.names.push(option);
    }
  }
  return wanted;
}

function placesOf(value: string): PlaceName[] {
  return value.split(",").map((name) => {
    if (!PLACES.includes(name)) throw new UsageError(`Unknown place: ${name}`);
    return name as PlaceName;
  });
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
