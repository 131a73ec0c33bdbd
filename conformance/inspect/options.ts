/**
 * The arguments of `./millrace inspect`.
 *
 * @module
 */

import { InputError } from "./input.ts";
import type { Track } from "./inspection.ts";

export const USAGE = `Usage: ./millrace inspect [option...] FILE|HEX|-

Prints a segment or a mailbox as a person reads it, and what is wrong with it. The bytes come from
a file, from the argument itself in hexadecimal, or from standard input. Hexadecimal may be digits,
a dump of hexdump -C or xxd, or the image of a case, {"size": 256, "bytes": [{"offset": 0, "hex":
"4d 49"}]}.

  --segment, --mailbox   reads the bytes as such, and does not guess
  --channel N            shows only this channel
  --limit N              shows at most so many frames of a channel; 32 without it
  --at TIME              reckons the times of frames up to this one, and not up to now
  --json                 prints what conformance/inspect.schema.json describes
  --raw                  prints all bytes, and what each of them is
  --watch                looks at a file again and again
  --interval MS          so often, every 500 ms without it
  --color, --no-color    uses colours, or does not; without it, in a terminal without NO_COLOR
  --help                 prints this

Exit codes: 0 nothing is wrong, 1 something is, 2 the input cannot be read.
`;

/** What is to be done. */
export interface Options {
  input: string;
  as: Track | undefined;
  channel: number | undefined;
  limit: number | undefined;
  now: number | undefined;
  output: "text" | "json" | "raw";
  watch: boolean;
  intervalMs: number;
  color: boolean | undefined;
}

const LIMIT_MAX = 1_000_000;
const INTERVAL_MAX = 3_600_000;

/** Reads the arguments; `undefined` if help is asked for. @throws {InputError} if one is wrong. */
export function parseOptions(args: readonly string[]): Options | undefined {
  const inputs: string[] = [];
  const given = new Set<string>();
  const values = new Map<string, string>();
  for (let index = 0; index < args.length; index++) {
    const arg = args[index]!;
    if (!/^--?[a-z]/.test(arg)) {
      inputs.push(arg);
      continue;
    }
    const [name, ...rest] = arg.split("=") as [string, ...string[]];
    if (VALUED.includes(name)) {
      const value = rest.length > 0 ? rest.join("=") : args[++index];
      if (value === undefined) throw new InputError(`${name} needs a value`);
      values.set(name, value);
    } else if (PLAIN.includes(name) && rest.length === 0) given.add(name);
    else throw new InputError(`Unknown option: ${arg}`);
  }
  if (given.has("--help") || given.has("-h")) return undefined;
  for (const names of EXCLUSIVE) {
    if (names.filter((name) => given.has(name)).length < 2) continue;
    throw new InputError(`Only one of ${names.join(", ")} can be used`);
  }
  if (inputs.length !== 1) {
    throw new InputError(`One FILE, HEX or - is needed, not ${inputs.length}`);
  }
  const count = (name: string, least: number, most: number) => {
    const value = values.get(name);
    if (value === undefined) return undefined;
    if (/^\d+$/.test(value) && Number(value) >= least && Number(value) <= most) {
      return Number(value);
    }
    throw new InputError(`${name} must be a number from ${least} to ${most}, not ${value}`);
  };
  return {
    input: inputs[0]!,
    as: given.has("--mailbox") ? "mailbox" : given.has("--segment") ? "segment" : undefined,
    channel: count("--channel", 0, 1023),
    limit: count("--limit", 0, LIMIT_MAX),
    now: toMoment(values.get("--at")),
    output: given.has("--json") ? "json" : given.has("--raw") ? "raw" : "text",
    watch: given.has("--watch"),
    intervalMs: count("--interval", 10, INTERVAL_MAX) ?? 500,
    color: given.has("--color") ? true : given.has("--no-color") ? false : undefined,
  };
}

const VALUED = ["--channel", "--limit", "--at", "--interval"];
const EXCLUSIVE = [
  ["--segment", "--mailbox"],
  ["--color", "--no-color"],
  ["--json", "--raw", "--watch"],
];
const PLAIN = ["--help", "-h", ...EXCLUSIVE.flat()];

function toMoment(text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  const ms = Date.parse(text);
  if (Number.isNaN(ms)) throw new InputError(`--at must be a time such as 2026-01-31T12:00Z`);
  return ms;
}

// What the inspector and `top` print.

/** Writes all of a text, or as much as a reader that goes away early wants. */
export function write(text: string): void {
  const bytes = new TextEncoder().encode(text);
  try {
    for (let at = 0; at < bytes.length;) at += Deno.stdout.writeSync(bytes.subarray(at));
  } catch (error) {
    if (!(error instanceof Deno.errors.BrokenPipe)) throw error;
  }
}
