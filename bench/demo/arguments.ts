// The demo's command line.

import { parseArgs } from "node:util";

export interface Arguments {
  readonly path: string | undefined;
  /** Number of the message, from 1, in which one byte is flipped in flight; 0 for none. */
  readonly corrupt: number;
  /** To show pages in place of the stream. */
  readonly page: Page | undefined;
  readonly help: boolean;
}

/** How the pages are shown. */
export interface Page {
  /** 0 for any that is free. */
  readonly port: number;
  /** Whether the user's browser is opened. */
  readonly open: boolean;
}

/** A mistake in the command line, or a file that cannot be read: one line, exit code 2. */
export class UsageError extends Error {
  override name = "UsageError";
}

export const USAGE = `Usage: ./millrace demo [--corrupt N] [FILE]
       ./millrace demo --page [--port N] [--no-open]

Streams FILE, or one composed from the repository, from a TypeScript worker to a Zig WebAssembly
worker and back through shared memory, and compares the digests.

  --corrupt N   flips one byte of message N (from 1) in the ring; the digests then differ
  --page        opens pages in your browser instead, until Ctrl-C: live curves of Millrace beside
                MessagePort, a meter, Python that waits for its user, and sound
  --port N      serves them on this port of this machine; without it, on any that is free
  --no-open     prints their address, and opens no browser
  --help        prints this

Exit codes: 0 the digests are equal; 1 they differ, or the demo failed; 2 a wrong argument or a file
that cannot be read; 130 interrupted.`;

/** Reads the arguments. @throws {UsageError} for an unknown option or a value that is no number. */
export function readArguments(args: readonly string[]): Arguments {
  const { values, positionals } = parseStrictly(args);
  const { page = false, port, "no-open": isClosed = false, corrupt, help = false } = values;
  if (positionals.length > 1) throw new UsageError("Only one file can be streamed");
  if (page && (positionals.length > 0 || corrupt !== undefined)) {
    throw new UsageError("--page streams no file");
  }
  if (!page && (port !== undefined || isClosed)) {
    throw new UsageError("--port and --no-open go with --page");
  }
  return {
    path: positionals[0],
    corrupt: readCorrupt(corrupt),
    page: page ? { port: readPort(port), open: !isClosed } : undefined,
    help,
  };
}

function parseStrictly(args: readonly string[]) {
  try {
    return parseArgs({
      args: [...args],
      allowPositionals: true,
      options: {
        corrupt: { type: "string" },
        page: { type: "boolean" },
        port: { type: "string" },
        "no-open": { type: "boolean" },
        help: { type: "boolean", short: "h" },
      },
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

function readPort(text: string | undefined): number {
  if (text === undefined) return 0;
  const value = /^[0-9]{1,5}$/.test(text) ? Number(text) : 0;
  if (value >= 1 && value <= 65_535) return value;
  throw new UsageError("--port takes a number from 1 to 65535");
}
