/**
 * In what two memories differ, said by the fields of their structures.
 *
 * @module
 */

import { toHex } from "../reference/bytes.ts";
import type { AnnotateOptions } from "./annotate.ts";
import { toCount, toHexNumber } from "./names.ts";
import { quote } from "./payload.ts";
import { type Span, spansOf } from "./spans.ts";

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

const WIDTH = 16;
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
