/**
 * The small port: what a frame is, and the checks of its header.
 *
 * @module
 */

import { has, hold } from "./faults.ts";
import { CborError, type Item, readCbor, writeCbor } from "./small_cbor.ts";
import { type Memory, minus, PortError, Refused, roundUp } from "./small_memory.ts";
import type { Message } from "./small_reader.ts";
import type { Channel, Geometry } from "./small_segment.ts";

export const [DATA, END, CALL, THROW, PAD, EXTENSION] = [1, 2, 3, 5, 6, 128] as const;
export const [FIRST, LAST, CANCEL] = [1, 2, 4] as const;
export const WHOLE = FIRST | LAST;
/** Bytes of a frame's header, and of a preamble. */
export const HEADER = 16;
export const PREAMBLE = 16;
export const BATCH = 3;
const EXTENDED = 8;
const WORD = 0xffffffff;

/** A frame, as it would be without its header extension. */
export interface Frame {
  size: number;
  kind: number;
  flags: number;
  codec: number;
  tag: number;
  /** Where its payload begins in the memory. */
  at: number;
  extent: number;
}

/** The message in progress. */
export interface Progress {
  kind: number;
  codec: number;
  tag: number;
  /** Nothing where the writer does not know it. */
  total: number | undefined;
  sum: number;
  parts: Uint8Array[];
  /** It was reported already, and is only skipped. */
  isDropped: boolean;
  /** It was dropped at its first frame: its parts are not added up. [frame.check_total] */
  isUncounted: boolean;
}

/** Throws a fault of this code, where a condition holds. */
type Refuse = (condition: boolean, code: string) => void;

/** Loads the header at `head`, and makes all checks in the order of the table. [frame.check] */
export function checkFrame(
  memory: Memory,
  { capacity, data }: Channel,
  { head, known }: { head: number; known: number },
  progress: Progress | undefined,
  refuse: Refuse,
): Frame {
  const place = head % capacity;
  const at = data + place;
  const [size, second, tag] = [memory.u32(at), memory.u32(at + 4), memory.u32(at + 8)];
  const [kind, flags, codec, reserved] = [0, 8, 16, 24].map((shift) => second >>> shift & 255) as [
    number,
    number,
    number,
    number,
  ];
  const isMessage = kind === DATA || kind >= CALL && kind <= THROW;
  const isSpecial = kind === END || kind === PAD;
  const extent = roundUp(HEADER + size, 16);
  const [available, toEnd] = [minus(known, head), capacity - place];
  refuse(kind === 0 || kind > PAD && kind < EXTENSION, "frame.kind");
  const isReserved = kind < EXTENSION && reserved !== 0 && !has("reserved_ignored");
  refuse(isReserved, "frame.reserved");
  const isLarge = !has("size_trusted") && (extent > available || extent > toEnd) ||
    kind !== PAD && extent > capacity / 2 && !has("half_ignored");
  if (has("checks_swapped")) refuse(isLarge, "frame.size");
  refuse(isSpecial && flags !== 0, "frame.flags");
  const plain = flags & ~EXTENDED;
  const isKnown = [0, FIRST, LAST, WHOLE, LAST | CANCEL].includes(plain) &&
    (plain === flags || plain !== (LAST | CANCEL) || has("cancel_extended"));
  refuse(isMessage && (!isKnown || codec === BATCH && plain !== WHOLE), "frame.flags");
  refuse(isLarge, "frame.size");
  refuse(kind === PAD && extent !== toEnd && !has("pad_loose"), "frame.pad");
  refuse(kind === END && size !== 0, "frame.size");
  hold("fetch");
  // [frame.check] A header is loaded once; whoever loads it again uses what it has not checked.
  const used = has("fetched_twice") ? memory.u32(at) : size;
  const skipped = isMessage && flags !== plain ? extensionOf(memory, at, used, refuse) : 0;
  const frame: Frame = {
    size: used - skipped,
    kind,
    flags: plain,
    codec,
    tag,
    at: at + HEADER + skipped,
    extent,
  };
  if (isMessage) checkMessage(memory, frame, progress, refuse);
  return frame;
}

/** The bytes of a frame's header extension. [frame.extension] */
function extensionOf(memory: Memory, frame: number, size: number, refuse: Refuse): number {
  refuse(size < 16, "frame.extension");
  const own = memory.u32(frame + HEADER);
  const isGood = own % 16 === 0 && own >= 16 && (own <= size || has("extension_trusted"));
  refuse(!isGood, "frame.extension");
  return has("extension_handed_out") ? 0 : own;
}

function checkMessage(
  memory: Memory,
  { size, flags, kind, codec, tag, at }: Frame,
  progress: Progress | undefined,
  refuse: Refuse,
): void {
  const isCancel = (flags & CANCEL) !== 0;
  const isSize = isCancel
    ? size === 0
    : flags === FIRST
    ? size >= PREAMBLE
    : flags === WHOLE || size >= 1;
  refuse(!isSize, "frame.size");
  const isFirst = (flags & FIRST) !== 0;
  const isExpected = isFirst === (progress === undefined) || has("sequence_ignored");
  refuse(!isExpected, "frame.sequence");
  if (!isFirst && progress !== undefined) {
    const isSame = kind === progress.kind && codec === progress.codec && tag === progress.tag;
    refuse(!isSame, "frame.sequence");
  }
  if (flags === FIRST) {
    refuse(memory.u32(at + 8) !== 0 || memory.u32(at + 12) !== 0, "frame.reserved");
    const total = totalOf(memory.u32(at), memory.u32(at + 4)) ?? Infinity;
    refuse(size - PREAMBLE > total && !has("total_trusted"), "frame.total");
    return;
  }
  if (isFirst || isCancel || progress === undefined || progress.isUncounted) return;
  if (progress.total === undefined) return;
  const sum = progress.sum + size;
  const isLast = (flags & LAST) !== 0;
  const isTotal = isLast ? sum === progress.total : sum <= progress.total;
  refuse(!isTotal && !has("total_trusted"), "frame.total");
}

/** A `total`, from its two words; nothing where it is 2^64 - 1: not known yet. */
export function totalOf(low: number, high: number): number | undefined {
  const isUnknown = low === WORD && high === WORD && !has("unknown_ignored");
  return isUnknown ? undefined : low + high * 2 ** 32;
}

// The small port: the channels that are no rings.

export const [PROPERTY, FANOUT] = [2, 3] as const;
const NOBODY = 0xffffffff;
/** Where the name of a property stands: its size first. */
const [NAME_SIZE, NAME, NAME_MOST] = [256, 260, 124];
const PROPERTY_CONTROL_SIZE = 384;
const [FANOUT_CONTROL_SIZE, RECORD_SIZE] = [256, 128];
const ERA_SIZE = 2 ** 31;

/** The kind and the size of the control area of what is no ring. Refuses what cannot be made. */
export function otherKind(
  { kind, readers, writer, reader, capacity, name = "", start = 0 }: Geometry["channels"][number],
  endpoints: number,
): { kind: number; controlSize: number } | undefined {
  const isWritten = Number.isInteger(writer) && writer >= 0 && writer < endpoints &&
    reader === NOBODY;
  if (readers !== undefined) {
    const isCounted = readers >= 1 && readers < endpoints;
    const isPlaced = isCapacity(capacity) && (start - start % 2) % 16 === 0;
    if (!isWritten || !isCounted || !isPlaced) throw new Refused("no fanout");
    return { kind: FANOUT, controlSize: FANOUT_CONTROL_SIZE + RECORD_SIZE * readers };
  }
  if (kind !== PROPERTY) return undefined;
  // [property.areas], [property.name]
  const isArea = capacity > 0 && capacity % 512 === 0 && start === 0;
  const isNamed = new TextEncoder().encode(name).length <= NAME_MOST;
  if (!isWritten || !isArea || !isNamed) throw new Refused("no property");
  return { kind, controlSize: PROPERTY_CONTROL_SIZE };
}

/** Fills in a control area in which all bytes are 0. */
export function beginOther(
  memory: Memory,
  kind: number,
  control: number,
  start: number,
  name: string,
): void {
  if (kind === PROPERTY) {
    const bytes = new TextEncoder().encode(has("property_unnamed") ? "" : name);
    memory.setU32(control + NAME_SIZE, bytes.length);
    memory.bytes.set(bytes, control + NAME);
    return;
  }
  // [fanout.start]
  const position = start - start % 2;
  memory.store(control, position);
  memory.store(control + 4, position);
  memory.store(control + 8, Math.floor(position / ERA_SIZE));
}

/** The name of a property; empty where it has none that is in order. */
export function nameOf(memory: Memory, control: number): string {
  const size = memory.u32(control + NAME_SIZE);
  if (size > NAME_MOST) return "";
  const bytes = memory.bytes.slice(control + NAME, control + NAME + size);
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return "";
  }
}

/** Whether a channel passes the checks of a property. [property.open] */
export function isProperty(
  { kind, writer, reader, controlSize, capacity }: Channel,
  endpoints: number,
): boolean {
  if (kind !== PROPERTY) return false;
  const isArea = capacity >= 512 && capacity % 512 === 0;
  return controlSize >= PROPERTY_CONTROL_SIZE && isArea && writer < endpoints && reader === NOBODY;
}

/** The endpoints that read a fanout, in the order of their records; none where it fails a check. */
export function readersOf(
  { kind, writer, reader, controlSize, capacity, start }: Channel,
  endpoints: number,
): number[] {
  const count = (controlSize - FANOUT_CONTROL_SIZE) / RECORD_SIZE;
  const isFanout = kind === FANOUT && writer < endpoints && reader === NOBODY &&
    Number.isInteger(count) && count >= 1 && count < endpoints && isCapacity(capacity) &&
    (start - start % 2) % 16 === 0;
  if (!isFanout) return [];
  return Array.from({ length: count }, (_, index) => (writer + 1 + index) % endpoints);
}

export function isCapacity(capacity: number): boolean {
  return Number.isInteger(Math.log2(capacity)) && capacity >= 256 && capacity <= 2 ** 30;
}

// The small port: payloads as values.

/** What the codec byte says. */
export const CBOR = 5;
const [BYTES, TEXT, JSON_TEXT] = [0, 1, 2];

/** A message that was decoded. */
export interface Value {
  kind: number;
  codec: number;
  tag: number;
  text?: string;
  json?: unknown;
  payload?: Uint8Array;
}

/** The values in a message: one, or the elements of a batch. Throws the report of a lost one. */
export function decode({ kind, codec, tag, payload }: Message): Value[] {
  if (codec === BYTES) return [{ kind, codec, tag, payload }];
  if (codec === CBOR && !has("cbor_unknown")) {
    const anew = has("cbor_unchecked") ? payload : writeCbor(read(payload));
    return [{ kind, codec, tag, payload: has("cbor_cut") ? anew.subarray(1) : anew }];
  }
  if (codec > BATCH) throw new PortError("message.codec");
  const text = tryOr("message.text", () => strict.decode(payload)); // [codec.bad_text]
  if (codec === TEXT) return [{ kind, codec, tag, text }];
  const json = tryOr("message.json", () => parse(text)); // [codec.bad_json]
  if (codec === JSON_TEXT) return [{ kind, codec, tag, json }];
  if (!Array.isArray(json) || json.length === 0) throw new PortError("message.json");
  // [codec.batch_read]
  return json.map((element: unknown) => ({ kind, codec: JSON_TEXT, tag, json: element }));
}

/** Some parsers take zeros before a number for nothing. */
function parse(text: string): unknown {
  return JSON.parse(has("json_zeros") ? text.replace(/^0+(?=\d)/, "") : text);
}

const strict = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** [codec.bad_cbor] */
function read(payload: Uint8Array): Item {
  try {
    return readCbor(payload);
  } catch (error) {
    if (error instanceof CborError) throw new PortError("message.codec");
    throw error;
  }
}

function tryOr<T>(code: string, call: () => T): T {
  try {
    return call();
  } catch {
    throw new PortError(code);
  }
}
