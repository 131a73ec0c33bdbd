/**
 * `./millrace inspect`: see `options.ts` for its arguments.
 *
 * @module
 */

import { annotate, formatLines } from "./diff.ts";
import { format, formatVerdict } from "./format.ts";
import { checkSize, decodeInput, INPUT_MAX, InputError, parseText } from "./input.ts";
import { inspect } from "./inspect.ts";
import type { InspectOptions } from "./inspection.ts";
import { type Options, parseOptions, USAGE, write } from "./options.ts";
import { watch } from "./live.ts";

/** Runs the tool and returns its exit code. */
export async function main(args: readonly string[]): Promise<number> {
  try {
    const options = parseOptions(args);
    if (options === undefined) {
      write(USAGE);
      return 0;
    }
    return await (options.watch ? watchFile(options) : inspectOnce(options));
  } catch (error) {
    if (!(error instanceof InputError)) throw error;
    console.error(`millrace inspect: ${error.message}\nSee ./millrace inspect --help`);
    return 2;
  }
}

async function inspectOnce(options: Options): Promise<number> {
  const { bytes, name } = await readInput(options.input);
  const { text, code } = draw(bytes, name, options);
  write(text);
  return code;
}

async function watchFile(options: Options): Promise<number> {
  const { input } = options;
  if (await statOf(input) === undefined) throw new InputError(`Cannot watch ${input}: no file`);
  const stop = new AbortController();
  const end = () => stop.abort();
  const signals: Deno.Signal[] = ["SIGINT", "SIGTERM"];
  for (const signal of signals) Deno.addSignalListener(signal, end);
  try {
    return await watch({
      path: input,
      intervalMs: options.intervalMs,
      draw: (bytes) => draw(bytes, input, options),
      isTerminal: Deno.stdout.isTerminal(),
      write,
      signal: stop.signal,
    });
  } finally {
    for (const signal of signals) Deno.removeSignalListener(signal, end);
  }
}

/** What is printed of the bytes, and the exit code that goes with it. */
function draw(
  bytes: Uint8Array,
  name: string,
  { as, channel, limit, now, output, color }: Options,
): { text: string; code: number } {
  const options: InspectOptions = {
    ...(as !== undefined && { as }),
    ...(channel !== undefined && { channel }),
    ...(limit !== undefined && { limit }),
    ...(now !== undefined && { now }),
  };
  const found = inspect(bytes, options);
  // Where something is wrong, that comes first.
  if (channel !== undefined && !found.channels?.length && found.fault === null) {
    const count = found.header?.channel_count ?? 0;
    throw new InputError(`There is no channel ${channel}: ${found.shape} has ${count}`);
  }
  const code = found.fault === null ? 0 : 1;
  const look = { name, color: color ?? (Deno.stdout.isTerminal() && !Deno.noColor) };
  if (output === "json") return { text: `${JSON.stringify(found, null, 2)}\n`, code };
  if (output === "text") return { text: format(found, look), code };
  return { text: `${formatVerdict(found, look)}\n${formatLines(annotate(bytes, options))}`, code };
}

/** The bytes that an argument stands for. */
async function readInput(input: string): Promise<{ bytes: Uint8Array; name: string }> {
  if (input === "-") {
    const { bytes } = decodeInput(await readStdin());
    return { bytes, name: "standard input" };
  }
  const stat = await statOf(input);
  if (stat === undefined) {
    try {
      return { bytes: parseText(input).bytes, name: "argument" };
    } catch (error) {
      const fact = (error as Error).message;
      throw new InputError(`There is no file ${JSON.stringify(input.slice(0, 100))}. ${fact}`);
    }
  }
  if (!stat.isFile) throw new InputError(`Cannot inspect ${input}: no regular file`);
  checkSize(stat.size);
  try {
    return { bytes: decodeInput(await Deno.readFile(input)).bytes, name: input };
  } catch (error) {
    if (error instanceof InputError) throw error;
    throw new InputError(`Cannot read ${input}: ${(error as Error).message}`);
  }
}

/** What a path leads to; `undefined` where it leads nowhere. */
async function statOf(path: string): Promise<Deno.FileInfo | undefined> {
  try {
    return await Deno.stat(path);
  } catch (error) {
    if (error instanceof Deno.errors.PermissionDenied) {
      throw new InputError(`Cannot read ${path}: permission denied`);
    }
    // No name is as long as bytes in hexadecimal, or holds a NUL.
    return undefined;
  }
}

async function readStdin(): Promise<Uint8Array> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of Deno.stdin.readable) {
    chunks.push(chunk);
    size += chunk.length;
    if (size > INPUT_MAX) checkSize(size);
  }
  const bytes = new Uint8Array(size);
  let at = 0;
  for (const chunk of chunks) {
    bytes.set(chunk, at);
    at += chunk.length;
  }
  return bytes;
}

if (import.meta.main) Deno.exit(await main(Deno.args));
