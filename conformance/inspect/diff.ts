/**
 * In what two memories differ, said by the fields of their structures.
 *
 * @module
 */

import { toHex } from "../reference/bytes.ts";
import type { InspectOptions } from "./inspection.ts";
import { toCount, toHexNumber, toPlural } from "./names.ts";
import { quote } from "./payload.ts";
import { type Span, spansOf } from "./spans.ts";

// A dump of memory in which each line says what it is.

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

/** Bytes with what they are in one of the two memories. */
export interface DifferenceSide {
  hex: string;
  /** The structure: `endpoint 1`, `channel 0, frame at 0x400`. */
  place: string;
  field: string;
  /** What the field says. */
  value: string;
}

/** A field, or a line of bytes, that is not as it must be. */
export interface Difference {
  offset: number;
  size: number;
  expected: DifferenceSide;
  got: DifferenceSide;
}
/** Differences that are printed; the rest are counted. */
const MOST = 64;

/**
 * The fields and lines in which two memories differ, in the order of the memory, as far as both
 * reach. Never fails, whatever the bytes are.
 */
export function differences(
  expected: Uint8Array,
  got: Uint8Array,
  options: AnnotateOptions = {},
): Difference[] {
  const [must, is] = [expected.slice(), got.slice()];
  const [wanted, found] = [spansOf(must, options), spansOf(is, options)];
  const result: Difference[] = [];
  const end = Math.min(must.length, is.length);
  let [a, b] = [0, 0];
  for (let offset = 0; offset < end;) {
    const [left, right] = [wanted[a]!, found[b]!];
    // As fine as either memory tells: where one has nothing, the other may have a frame.
    const last = Math.min(left.offset + left.size, right.offset + right.size, end);
    const size = Math.min(WIDTH, last - offset);
    if (!isEqual(must, is, offset, size)) {
      const expected = sideOf(must, left, offset, size);
      result.push({ offset, size, expected, got: sideOf(is, right, offset, size) });
    }
    offset += size;
    if (offset === left.offset + left.size) a += 1;
    if (offset === right.offset + right.size) b += 1;
  }
  return result;
}

function isEqual(a: Uint8Array, b: Uint8Array, offset: number, size: number): boolean {
  for (let at = offset; at < offset + size; at++) {
    if (a[at] !== b[at]) return false;
  }
  return true;
}

function sideOf(bytes: Uint8Array, span: Span, offset: number, size: number): DifferenceSide {
  const shown = bytes.slice(offset, offset + size);
  const isWhole = span.offset === offset && span.size <= size;
  const text = span.isText ? quote(new TextDecoder().decode(shown)) : "";
  return {
    hex: toHex(shown),
    place: span.place,
    field: span.field,
    value: isWhole && !span.isText ? span.value : text,
  };
}

/** The same as text, two lines for each; empty where the memories are equal. */
export function diff(
  expected: Uint8Array,
  got: Uint8Array,
  options: AnnotateOptions = {},
): string {
  const lines: string[] = [];
  if (expected.length !== got.length) {
    lines.push(`${toCount(expected.length)} bytes expected, got ${toCount(got.length)}`);
  }
  const found = differences(expected, got, options);
  for (const difference of found.slice(0, MOST)) {
    const { offset, expected, got } = difference;
    const [must, is] = [nameOf(expected), nameOf(got)];
    lines.push(`${toHexNumber(offset)}  ${must}`);
    lines.push(`  expected  ${formatSide(expected)}`);
    lines.push(`  got       ${formatSide(got)}${must === is ? "" : `  (${is})`}`);
  }
  if (found.length > MOST) lines.push(`… ${toCount(found.length - MOST)} more differences`);
  return lines.map((line) => `${line}\n`).join("");
}

function nameOf({ place, field }: DifferenceSide): string {
  return `${place}: ${field}`;
}

function formatSide({ hex, value }: DifferenceSide): string {
  return value === "" ? hex : `${hex}  ${value}`;
}
