// The command line of the demo, and what it prints: a progress bar while it runs, and a table at
// the end.
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

const BAR_WIDTH = 30;
const clear = "\r\x1b[2K";

/** A bar on stderr that redraws itself on a terminal, and prints every tenth step elsewhere. */
export class ProgressBar {
  readonly #total: number;
  readonly #label: string;
  readonly #live = Deno.stderr.isTerminal();
  readonly #start = performance.now();
  #tenth = -1;

  /** @param total What `update` counts up to, in bytes. */
  constructor(label: string, total: number) {
    this.#label = label;
    this.#total = total;
  }

  /** Shows that `done` bytes are through. */
  update(done: number): void {
    const part = this.#total === 0 ? 1 : Math.min(1, done / this.#total);
    const tenth = Math.floor(part * 10);
    if (!this.#live && tenth === this.#tenth) return;
    this.#tenth = tenth;
    const full = Math.round(part * BAR_WIDTH);
    const bar = "#".repeat(full) + ".".repeat(BAR_WIDTH - full);
    const seconds = (performance.now() - this.#start) / 1000;
    const left = part > 0 && part < 1 ? `, ${(seconds / part - seconds).toFixed(1)} s left` : "";
    const line = `${this.#label} [${bar}] ${Math.floor(part * 100)} %, ${bytes(done)}${left}`;
    write(this.#live ? clear + line : line + "\n");
  }

  /** Ends the line of the bar. */
  finish(): void {
    if (this.#live) write("\n");
  }
}

/** Shows a step that has no measure of its own, for instance a build. */
export function showStep(text: string): void {
  write(`${text}\n`);
}

function write(text: string): void {
  Deno.stderr.writeSync(new TextEncoder().encode(text));
}

/** Formats a count of bytes with a decimal unit. */
export function bytes(count: number): string {
  if (count < 1e3) return `${count} B`;
  if (count < 1e6) return `${(count / 1e3).toFixed(1)} kB`;
  return `${(count / 1e6).toFixed(1)} MB`;
}

/** Formats a time in microseconds. */
export function microseconds(value: number): string {
  return value < 1000 ? `${value.toFixed(2)} us` : `${(value / 1000).toFixed(2)} ms`;
}

/** Formats rows of two columns, the first one padded. */
export function table(rows: readonly (readonly [string, string])[]): string {
  const width = Math.max(...rows.map(([name]) => name.length));
  return rows.map(([name, value]) => `  ${name.padEnd(width)}  ${value}`).join("\n");
}

/** The value below which `part` of the sorted samples lie. Asserts that there are samples. */
export function percentile(sorted: Float64Array, part: number): number {
  const value = sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))];
  if (value === undefined) throw new Error("Cannot take a percentile: no samples");
  return value;
}
