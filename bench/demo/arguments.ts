// The demo's command line.

import { parseArgs } from "node:util";

export interface Arguments {
  readonly path: string | undefined;
  /** Number of the message, from 1, in which one byte is flipped in flight; 0 for none. */
  readonly corrupt: number;
  readonly help: boolean;
}

/** A mistake in the command line, or a file that cannot be read: one line, exit code 2. */
export class UsageError extends Error {
  override name = "UsageError";
}

export const USAGE = `Usage: ./millrace demo [--corrupt N] [FILE]

Streams FILE, or one composed from the repository, from a TypeScript worker to a Zig WebAssembly
worker and back through shared memory, and compares the digests.

  --corrupt N   flips one byte of message N (from 1) in the ring; the digests then differ
  --help        prints this

Exit codes: 0 the digests are equal; 1 they differ, or the demo failed; 2 a wrong argument or a file
that cannot be read; 130 interrupted.`;

/** Reads the arguments. @throws {UsageError} for an unknown option or a value that is no number. */
export function readArguments(args: readonly string[]): Arguments {
  const { values, positionals } = parseStrictly(args);
  if (positionals.length > 1) throw new UsageError("Only one file can be streamed");
  return {
    path: positionals[0],
    corrupt: readCorrupt(values.corrupt),
    help: values.help === true,
  };
}

function parseStrictly(args: readonly string[]) {
  try {
    return parseArgs({
      args: [...args],
      allowPositionals: true,
      options: { corrupt: { type: "string" }, help: { type: "boolean", short: "h" } },
    });
  } catch (error) {
    throw new UsageError((error as Error).message);
  }
}

function readCorrupt(text: string | undefined): number {
  if (text === undefined) return 0;
  const value = /^[0-9]{1,9}$/.test(text) ? Number(text) : 0;
  if (value >= 1) return value;
  throw new UsageError("--corrupt takes the number of a message, from 1");
}
