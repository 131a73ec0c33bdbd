/**
 * Bytes as a person reads them: lines of sixteen in hexadecimal, zeros left away.
 *
 * @module
 */

/** A run of bytes at an offset; everything between two runs is 0. */
export interface Run {
  offset: number;
  hex: string;
}

/** Memory: its size, and what in it is not 0. */
export interface Image {
  size: number;
  bytes: Run[];
}

const LINE = 16;

/** Two digits for each byte, and the byte for each of them. */
const DIGITS = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, "0"));
const VALUES = Object.fromEntries(DIGITS.map((digits, byte) => [digits, byte]));

/** Turns hexadecimal, with any spaces between the bytes, into bytes. */
export function fromHex(hex: string): Uint8Array {
  const digits = hex.replaceAll(" ", "");
  const bytes = new Uint8Array(digits.length / 2);
  for (let index = 0; index < bytes.length; index++) {
    const byte = VALUES[digits.slice(2 * index, 2 * index + 2)];
    if (byte === undefined) throw new Error(`not hexadecimal: ${hex}`);
    bytes[index] = byte;
  }
  if (digits.length % 2 !== 0) throw new Error(`not hexadecimal: ${hex}`);
  return bytes;
}

/** Turns bytes into hexadecimal, a space between two, two after every eighth. */
export function toHex(bytes: Uint8Array): string {
  let text = "";
  for (let index = 0; index < bytes.length; index++) {
    if (index > 0) text += index % 8 === 0 ? "  " : " ";
    text += DIGITS[bytes[index]!]!;
  }
  return text;
}

/** The lines that hold anything, each without the zeros at its end. */
export function toImage(bytes: Uint8Array): Image {
  const runs: Run[] = [];
  for (let offset = 0; offset < bytes.length; offset += LINE) {
    const line = bytes.slice(offset, offset + LINE);
    const size = line.findLastIndex((byte) => byte !== 0) + 1;
    if (size > 0) runs.push({ offset, hex: toHex(line.subarray(0, size)) });
  }
  return { size: bytes.length, bytes: runs };
}

/** The memory that an image describes; what lies after its size is cut off. */
export function fromImage({ size, bytes }: Image): Uint8Array {
  const memory = new Uint8Array(size);
  for (const { offset, hex } of bytes) {
    if (offset < size) memory.set(fromHex(hex).subarray(0, size - offset), offset);
  }
  return memory;
}

/** All pieces, one after the other. */
export function concat(pieces: readonly Uint8Array[]): Uint8Array {
  const all = new Uint8Array(pieces.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const piece of pieces) {
    all.set(piece, at);
    at += piece.length;
  }
  return all;
}

/** A number as little-endian bytes. */
export function little(value: number, size: number): Uint8Array {
  return Uint8Array.from({ length: size }, (_, index) => Math.floor(value / 256 ** index) % 256);
}

/** Four little-endian bytes in hexadecimal; negative numbers are two's complement. */
export function word(value: number): string {
  return toHex(little(value < 0 ? value + 2 ** 32 : value, 4));
}

/** A little-endian number. */
export function number(bytes: Uint8Array): number {
  return bytes.reduce((sum, byte, index) => sum + byte * 256 ** index, 0);
}
