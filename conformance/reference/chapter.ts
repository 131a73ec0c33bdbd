/**
 * The examples of the chapters as bytes, so that cases hold them as they are printed.
 *
 * @module
 */

import { fromHex, type Run, toHex } from "./bytes.ts";

/** What `..`, a byte without a meaning, becomes. */
const FILL = "ee";

/**
 * Lines of an example: an offset in hexadecimal, the bytes, and a comment, which is cut off. Throws
 * where the chapter does not hold such a line any more.
 */
export function fromChapter(name: string, lines: string[]): Run[] {
  const text = Deno.readTextFileSync(new URL(`../../spec/${name}.md`, import.meta.url));
  const printed = text.split("\n").map((line) => line.trim());
  return lines.map((line) => {
    const isThere = printed.some((found) => found.startsWith(line));
    if (!isThere) throw new Error(`spec/${name}.md does not show: ${line}`);
    const [offset, ...rest] = line.split(/ +/) as [string, ...string[]];
    const end = rest.findIndex((token) => !/^(?:[0-9a-f]{2}|\.\.)$/.test(token));
    const bytes = rest.slice(0, end < 0 ? undefined : end).map((x) => x === ".." ? FILL : x);
    return { offset: parseInt(offset, 16), hex: toHex(fromHex(bytes.join(""))) };
  });
}

/** Puts such lines into memory, their offsets counted from `at`. */
export function place(bytes: Uint8Array, at: number, runs: Run[]): void {
  for (const { offset, hex } of runs) bytes.set(fromHex(hex), at + offset);
}

/** Throws where memory does not hold what a chapter shows. */
export function mustHold(bytes: Uint8Array, at: number, runs: Run[]): void {
  for (const { offset, hex } of runs) {
    const found = toHex(bytes.slice(at + offset, at + offset + fromHex(hex).length));
    if (found !== hex) throw new Error(`at ${offset}: ${found}, and in the chapter ${hex}`);
  }
}
