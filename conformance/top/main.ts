/**
 * `./millrace top`: the figures of a segment in use, again and again.
 *
 * @module
 */

import { checkSize, InputError } from "../inspect/input.ts";
import type { LiveMemory } from "../inspect/live.ts";
import { write } from "../inspect/options.ts";
import { clip, ENTER, HOME, LEAVE, sleep } from "../inspect/live.ts";
import { type Look, look } from "./look.ts";
import { figuresOf } from "./rates.ts";
import { view } from "./view.ts";

const USAGE = `Usage: ./millrace top [option...] FILE

Shows how busy a segment in a file is, once a second: of each channel the bytes written and read in
a second, the queue, and who waits; of each endpoint its state, how often it was given back, and how
often it was rung. It works on the mapping of any implementation, and stores nothing there.

  --once         looks twice, prints once, and ends
  --json         prints a line of JSON for each look
  --interval MS  looks so often, every 1000 ms without it
  --help         prints this

Exit codes: 0 it was shown, 2 the file is not there, or holds no segment.
`;

const INTERVAL_MAX = 3_600_000;

/** What is to be done. */
interface Options {
  path: string;
  intervalMs: number;
  isOnce: boolean;
  isJson: boolean;
}

/** Runs the tool and returns its exit code. */
export async function main(args: readonly string[]): Promise<number> {
  try {
    const options = parse(args);
    if (options === undefined) write(USAGE);
    else await show(options);
    return 0;
  } catch (error) {
    if (!(error instanceof InputError)) throw error;
    console.error(`millrace top: ${error.message}`);
    return 2;
  }
}

/** Reads the arguments; `undefined` if help is asked for. */
function parse(args: readonly string[]): Options | undefined {
  const paths: string[] = [];
  let intervalMs = 1000;
  const given = new Set<string>();
  for (let index = 0; index < args.length; index++) {
    const arg = args[index]!;
    if (arg === "--interval") {
      const value = Number(args[++index]);
      if (!Number.isInteger(value) || value < 10 || value > INTERVAL_MAX) {
        throw new InputError(`--interval must be a number from 10 to ${INTERVAL_MAX}`);
      }
      intervalMs = value;
    } else if (["--once", "--json", "--help", "-h"].includes(arg)) given.add(arg);
    else if (arg.startsWith("-")) throw new InputError(`Unknown option: ${arg}`);
    else paths.push(arg);
  }
  if (given.has("--help") || given.has("-h")) return undefined;
  const [path] = paths;
  if (path === undefined || paths.length > 1) {
    throw new InputError(`One FILE is needed, not ${paths.length}; see ./millrace top --help`);
  }
  return { path, intervalMs, isOnce: given.has("--once"), isJson: given.has("--json") };
}

async function show({ path, intervalMs, isOnce, isJson }: Options): Promise<void> {
  const stop = new AbortController();
  const end = () => stop.abort();
  const signals: Deno.Signal[] = ["SIGINT", "SIGTERM"];
  const isScreen = !isJson && !isOnce && Deno.stdout.isTerminal();
  let before: Look | undefined = lookAt(path); // before the screen is taken: it may throw
  for (const signal of signals) Deno.addSignalListener(signal, end);
  if (isScreen) write(ENTER);
  try {
    if (!isOnce) print(before, undefined);
    for (;;) {
      await sleep(intervalMs, stop.signal);
      if (stop.signal.aborted) return;
      const now = lookAt(path);
      print(now, before);
      if (isOnce) return;
      before = now;
    }
  } finally {
    if (isScreen) write(LEAVE);
    for (const signal of signals) Deno.removeSignalListener(signal, end);
  }

  function print(now: Look, last: Look | undefined): void {
    const figures = figuresOf(now, last);
    if (isJson) return write(`${JSON.stringify(figures)}\n`);
    const text = view(figures, path);
    if (!isScreen) return write(text);
    const time = new Date(now.at).toISOString().slice(11, 19);
    write(HOME + clip(`${time} UTC, every ${intervalMs} ms; Ctrl-C ends\n\n${text.trimEnd()}`));
  }
}

/** The file is opened anew each time: it may have been replaced. */
function lookAt(path: string): Look {
  try {
    using file = Deno.openSync(path, { read: true });
    const { isFile, size } = file.statSync();
    if (!isFile) throw new InputError("it is no regular file");
    checkSize(size);
    const memory: LiveMemory = {
      size: () => size,
      read: (offset, length) => {
        file.seekSync(offset, Deno.SeekMode.Start);
        const bytes = new Uint8Array(length);
        let count = 0;
        while (count < length) {
          const got = file.readSync(bytes.subarray(count));
          if (got === null) break;
          count += got;
        }
        return bytes;
      },
    };
    return look(memory, Date.now());
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) throw new InputError(`There is no file ${path}`);
    throw new InputError(`Cannot show ${path}: ${(error as Error).message}`);
  }
}

if (import.meta.main) Deno.exit(await main(Deno.args));
