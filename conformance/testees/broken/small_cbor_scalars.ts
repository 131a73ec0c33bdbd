/**
 * The small port: what texts and numbers of codec `cbor` are made of.
 *
 * @module
 */

import { has } from "./faults.ts";

/** The least character that takes so many bytes behind the first. */
const LEAST = [0, 0x80, 0x800, 0x10000];
const CHARACTER_MAX = 0x10ffff;

/** Whether bytes are UTF-8 as RFC 3629 has it. */
export function isUtf8(bytes: Uint8Array): boolean {
  if (has("cbor_utf8_unchecked")) return true;
  for (let at = 0; at < bytes.length;) {
    const first = bytes[at++]!;
    if (first < 0x80) continue;
    if (first < 0xc0 || first >= 0xf8) return false;
    const more = first < 0xe0 ? 1 : first < 0xf0 ? 2 : 3;
    let character = first & 0x3f >> more;
    for (let count = 0; count < more; count++) {
      const next = bytes[at++] ?? 0;
      if (next >> 6 !== 2) return false;
      character = character << 6 | next & 0x3f;
    }
    if (character < LEAST[more]! && !has("cbor_utf8_overlong")) return false;
    if (character >> 11 === 0xd800 >> 11 && !has("cbor_utf8_surrogate")) return false;
    if (character > CHARACTER_MAX && !has("cbor_utf8_beyond")) return false;
  }
  return true;
}

const DATE = /^\d{4}-(\d\d)-(\d\d)[Tt](\d\d):(\d\d):(\d\d)(?:\.\d+)?(?:[Zz]|[+-]\d\d:\d\d)$/;

/** Whether a text is a date as RFC 3339 writes it. */
export function isDateText(text: string): boolean {
  const parts = DATE.exec(text)?.slice(1).map(Number);
  if (parts === undefined) return false;
  const [month, day, hour, minute, second] = parts as [number, number, number, number, number];
  const isDay = month >= 1 && month <= 12 && day >= 1 && day <= 31;
  return isDay && hour < 24 && minute < 60 && second < 60;
}

/** The float of these sixteen bits. */
export function decodeHalf(bits: number): number {
  const [exponent, fraction] = [bits >> 10 & 31, bits & 1023];
  const sign = bits & 0x8000 ? -1 : 1;
  if (exponent === 31) return fraction === 0 ? sign * Infinity : NaN;
  // Without an exponent, there is no leading 1.
  if (exponent === 0) return has("cbor_half_zero") ? sign * 0 : sign * fraction * 2 ** -24;
  return sign * (1024 + fraction) * 2 ** (exponent - 25);
}

/** The same elements, the bytes of each the other way round. */
export function swapped(bytes: Uint8Array, size: number): Uint8Array {
  return bytes.map((_, at) => bytes[at - at % size + size - 1 - at % size]!);
}
