/**
 * The small port: what a frame is, and the checks of its header.
 *
 * @module
 */

import { has, hold } from "./faults.ts";
import { type Memory, minus, roundUp } from "./small_memory.ts";
import type { Channel } from "./small_segment.ts";

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
