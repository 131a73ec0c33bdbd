/**
 * A dump of memory in which each line says what it is.
 *
 * @module
 */

import { toHex } from "../reference/bytes.ts";
import type { InspectOptions } from "./inspection.ts";
import { toCount, toPlural } from "./names.ts";
import { quote } from "./payload.ts";
import { type Span, spansOf } from "./spans.ts";

/** How much is annotated. `limit` is that of the frames of a channel, 64 if left out. */
export interface AnnotateOptions extends InspectOptions {
  /** Most lines of one payload or one unused range; 8 if left out. */
  lines?: number;
}

/** One line of a dump. */
export interface Line {
  offset: number;
  /** Bytes that the line stands for. */
  size: number;
  /** These bytes; or, where it says nothing more, so many zeros. */
  hex: string;
  /** The structure: `header`, `endpoint 1`, `channel 0, frame at 0x400`. */
  place: string;
  /** The field in it, or what else it is. */
  field: string;
  /** What it says. */
  value: string;
}

const WIDTH = 16;
const LINES = 8;

/**
 * A dump of all bytes, or of those of one channel, in the order of the memory; runs of zeros, and
 * what is long, are cut short. Never fails, whatever the bytes are.
 */
export function annotate(memory: Uint8Array, options: AnnotateOptions = {}): Line[] {
  const { lines: most = LINES, channel } = options;
  const bytes = memory.slice();
  const own = `channel ${channel}`;
  const isOwn = ({ place }: Span) =>
    channel === undefined || place === own || place.startsWith(`${own},`);
  return spansOf(bytes, options).filter(isOwn).flatMap((span) => linesOf(bytes, span, most));
}

function linesOf(bytes: Uint8Array, span: Span, most: number): Line[] {
  const { offset, size, place, field, value, isText } = span;
  const line = (from: number, length: number, hex: string, value: string) => ({
    offset: from,
    size: length,
    hex,
    place,
    field,
    value,
  });
  if (size <= WIDTH) return [line(offset, size, toHex(bytes.slice(offset, offset + size)), value)];
  const lines: Line[] = [];
  const end = offset + size;
  for (let at = offset; at < end;) {
    const zeros = countZeros(bytes, at, end);
    if (zeros > WIDTH || zeros === end - at) {
      lines.push(line(at, zeros, `00 * ${toCount(zeros)}`, ""));
      at += zeros;
    } else {
      const length = Math.min(WIDTH, end - at);
      const shown = bytes.slice(at, at + length);
      const text = isText ? quote(new TextDecoder().decode(shown)) : value;
      lines.push(line(at, length, toHex(shown), text));
      at += length;
    }
    if (lines.length < most || at >= end) continue;
    lines.push(line(at, end - at, `… ${toPlural(end - at, "byte")} more`, ""));
    break;
  }
  return lines;
}

function countZeros(bytes: Uint8Array, from: number, end: number): number {
  let at = from;
  while (at < end && bytes[at] === 0) at += 1;
  return at - from;
}

/** Such lines as text: the offset, the bytes, and what they are; structures apart. */
export function formatLines(lines: readonly Line[]): string {
  const bottom = lines.at(-1);
  const end = bottom === undefined ? 0 : bottom.offset + bottom.size;
  const digits = Math.max(4, end.toString(16).length);
  const width = Math.max(0, ...lines.map(({ hex }) => hex.length));
  let last: string | undefined;
  return lines.map(({ offset, hex, place, field, value }) => {
    const head = place === last ? "" : `${last === undefined ? "" : "\n"}${place}\n`;
    last = place;
    const at = offset.toString(16).padStart(digits, "0");
    return `${head}${at}  ${hex.padEnd(width)}  ${field} ${value}`.trimEnd() + "\n";
  }).join("");
}
