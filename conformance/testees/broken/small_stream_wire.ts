/**
 * The small side of a stream: what stands in its bytes, and the checks of what arrives.
 *
 * @module
 */

import { has } from "./faults.ts";

export const [DATA, END, THROW, EXTENSION] = [1, 2, 5, 128] as const;
export const [CREDIT, CLOSE, FAIL] = [16, 17, 18] as const;
export const [HEADER, PREFACE] = [16, 32] as const;
export const START = 2 ** 32 - 256;
const MAGIC = [0x4d, 0x49, 0x4c, 0x4c, 0xff, 0x0d, 0x0a, 0x0a];
const MOST = 2 ** 30;
const LEAST = 128;

/** What a side states. */
export interface Sizes {
  largest: number;
  window: number;
}

/** A header. */
export interface Header {
  size: number;
  kind: number;
  flags: number;
  codec: number;
  reserved: number;
  tag: number;
}

/** A frame that has come. */
export interface Frame extends Header {
  extent: number;
  payload: Uint8Array;
}

/** What is wrong with what has come. */
export interface Fault {
  code: string;
}

function fault(code: string): Fault {
  return { code };
}

const NUMBERS: Readonly<Record<string, number>> = {
  "frame.kind": 32,
  "frame.flags": 33,
  "frame.reserved": 34,
  "frame.size": 35,
  "frame.sequence": 37,
  "frame.total": 38,
  "frame.extension": 39,
  "stream.magic": 104,
  "stream.version": 105,
  "stream.feature": 106,
  "stream.preface": 107,
  "stream.credit": 108,
};

/** The number of a reason code. */
export function numberOf(code: string): number {
  return NUMBERS[code]!;
}

export function nameOf(number: number): string | number {
  return Object.keys(NUMBERS).find((name) => NUMBERS[name] === number) ?? number;
}

export function roundUp(size: number): number {
  return Math.ceil(size / 16) * 16;
}

/** Whether a frame of this kind takes credit. */
export function counts(kind: number): boolean {
  const isSkipped = kind >= EXTENSION;
  if (isSkipped && has("extension_free")) return false;
  return kind !== END && !isControl(kind);
}

function isControl(kind: number): boolean {
  return kind >= CREDIT && kind <= FAIL;
}

export function prefaceBytes({ largest, window }: Sizes): Uint8Array {
  const bytes = new Uint8Array(PREFACE);
  const view = new DataView(bytes.buffer);
  bytes.set(MAGIC);
  view.setUint16(8, 1, true);
  view.setUint32(12, has("preface_swapped") ? window : largest, true);
  view.setUint32(16, has("preface_swapped") ? largest : window, true);
  if (has("preface_reserved")) bytes[28] = 1;
  return bytes;
}

export function controlBytes(kind: number, tag: number): Uint8Array {
  const bytes = new Uint8Array(HEADER);
  const view = new DataView(bytes.buffer);
  bytes[4] = kind;
  if (has("control_flagged")) bytes[5] = 3;
  view.setUint32(8, tag, true);
  return bytes;
}

/** What the peer states, or what is wrong with it, or nothing yet. [stream.preface_check] */
export function checkPreface(bytes: Uint8Array): Sizes | Fault | undefined {
  if (bytes.length < 8 || has("magic_late") && bytes.length < PREFACE) return undefined;
  const isMagic = MAGIC.every((byte, index) => bytes[index] === byte);
  if (!isMagic && !has("magic_ignored")) return fault("stream.magic");
  if (bytes.length < PREFACE) return undefined;
  const view = new DataView(bytes.buffer, bytes.byteOffset);
  if (view.getUint16(8, true) !== 1) return fault("stream.version");
  const minor = view.getUint16(10, true);
  if (has("minor_judged") && minor !== 0) return fault("stream.version");
  const required = view.getUint32(20, true);
  if (required !== 0 && !has("features_ignored")) return fault("stream.feature");
  const sizes = { largest: view.getUint32(12, true), window: view.getUint32(16, true) };
  const isGood = (size: number, least: number) => size % 16 === 0 && size >= least && size <= MOST;
  if (isGood(sizes.largest, LEAST) && isGood(sizes.window, sizes.largest)) return sizes;
  if (has("window_ignored")) return { largest: LEAST, window: 256 };
  return fault("stream.preface");
}

/** What is wrong with a header, in the order of the table. [stream.check] */
export function headerFault(
  { size, kind, flags, codec, reserved }: Header,
  largest: number,
  hasEnded: boolean,
  left: number,
): Fault | undefined {
  const isSkipped = kind >= EXTENSION;
  const isMessage = kind >= DATA && kind <= THROW && kind !== END;
  const isBare = kind === END || isControl(kind);
  if (!isSkipped && !isMessage && !isBare && !has("kinds_skipped")) {
    return fault("frame.kind");
  }
  if (has("extension_refused") && isSkipped) return fault("frame.kind");
  if (!isSkipped && reserved !== 0) return fault("frame.reserved");
  const isFlagged = isBare ? flags !== 0 : isMessage && !areFlags(flags, codec);
  if (isFlagged && !has("flags_ignored")) return fault("frame.flags");
  if (isBare && size !== 0) return fault("frame.size");
  if (HEADER + size > largest && !has("largest_trusted")) return fault("frame.size");
  const isBehind = hasEnded && (isMessage || kind === END);
  if (isBehind && !has("behind_end_read")) return fault("frame.sequence");
  const isTooMuch = counts(kind) && roundUp(HEADER + size) > left;
  return isTooMuch && !has("flood_taken") ? fault("stream.credit") : undefined;
}

function areFlags(flags: number, codec: number): boolean {
  const plain = flags & ~8;
  const isKnown = plain <= 3 || plain === 6 && plain === flags;
  return isKnown && (codec !== 3 || plain === 3);
}

/** Nobody looks at the fill of what is skipped. */
export function isFillGood({ kind }: Header, fill: Uint8Array): boolean {
  return kind >= EXTENSION || has("fill_ignored") || fill.every((byte) => byte === 0);
}
