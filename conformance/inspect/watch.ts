/**
 * Looks at a file again and again, and draws what it holds.
 *
 * @module
 */

import { checkSize } from "./input.ts";
import { type LiveMemory, snapshot } from "./live.ts";

/** What is watched, and how. */
export interface WatchOptions {
  path: string;
  intervalMs: number;
  /** Turns what was read into text, and says whether it is sound. */
  draw(bytes: Uint8Array): { text: string; code: number };
  /** Whether to draw over what was drawn before. */
  isTerminal: boolean;
  write(text: string): void;
  signal: AbortSignal;
}

/** The other screen, no cursor, and no line that goes on in the next row; and back. */
export const ENTER = "\x1b[?1049h\x1b[?25l\x1b[?7l";
export const LEAVE = "\x1b[?7h\x1b[?25h\x1b[?1049l";
/** To the beginning of an empty screen. */
export const HOME = "\x1b[H\x1b[J";

/** Draws until the signal comes. Returns the code of the last look, 2 where there was no file. */
export async function watch(options: WatchOptions): Promise<number> {
  const { path, intervalMs, draw, isTerminal, write, signal } = options;
  let code = 2;
  let last: string | undefined;
  if (isTerminal) write(ENTER);
  try {
    while (!signal.aborted) {
      let text: string;
      try {
        ({ text, code } = draw(look(path)));
      } catch (error) {
        // It may come back: whoever creates a segment replaces the file that is left.
        [text, code] = [`${path}: ${(error as Error).message}\n`, 2];
      }
      // A pipe or a file gets what has changed, and no more.
      if (isTerminal) write(HOME + clip(`${statusOf(intervalMs)}\n\n${text.trimEnd()}`));
      else if (text !== last) write(`${last === undefined ? "" : "\n"}${text}`);
      last = text;
      await sleep(intervalMs, signal);
    }
  } finally {
    if (isTerminal) write(LEAVE);
  }
  return code;
}

/** The file as it is now, opened anew each time: it may have been replaced. */
function look(path: string): Uint8Array {
  using file = Deno.openSync(path, { read: true });
  const memory: LiveMemory = {
    size: () => {
      const { size } = file.statSync();
      checkSize(size);
      return size;
    },
    read: (offset, size) => {
      file.seekSync(offset, Deno.SeekMode.Start);
      const bytes = new Uint8Array(size);
      let count = 0;
      while (count < size) {
        const got = file.readSync(bytes.subarray(count));
        if (got === null) break;
        count += got;
      }
      return bytes.subarray(0, count);
    },
  };
  return snapshot(memory);
}

function statusOf(intervalMs: number): string {
  const time = new Date().toISOString().slice(11, 19);
  return `${time} UTC, every ${intervalMs} ms; Ctrl-C ends`;
}

/** As many lines as the terminal shows: what scrolls cannot be drawn over. */
export function clip(text: string): string {
  let rows = Infinity;
  try {
    rows = Deno.consoleSize().rows;
  } catch {
    // No terminal after all, so nothing scrolls.
  }
  const lines = text.split("\n");
  if (lines.length <= rows) return text;
  const rest = lines.length - rows + 1;
  return [...lines.slice(0, rows - 1), `… ${rest} lines more: use --channel`].join("\n");
}

/** Waits so long, or until the signal comes. */
export function sleep(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      clearTimeout(timer);
      signal.removeEventListener("abort", done);
      resolve();
    };
    const timer = setTimeout(done, ms);
    signal.addEventListener("abort", done);
    if (signal.aborted) done();
  });
}
