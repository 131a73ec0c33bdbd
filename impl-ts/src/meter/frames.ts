/**
 * Walks over the frames in a ring by their headers, for a meter. See `spec/meter.md`.
 *
 * The other end may change any header at any moment. So each header is loaded once, and a walk ends
 * at a header that does not fit.
 *
 * @module
 */

import * as layout from "../memory/layout.ts";
import { extentOf, WHOLE } from "../ring/frame.ts";
import type { Lane } from "../ring/ring.ts";

const KIND_SHIFT = 8 * (layout.FRAME_KIND_OFFSET - 4);
const FLAGS_SHIFT = 8 * (layout.FRAME_FLAGS_OFFSET - 4);
const TIME = layout.FRAME_TIME_OFFSET >> 2;
const FIRST = layout.FRAME_FLAG_FIRST;
const LAST = layout.FRAME_FLAG_LAST;
const CANCEL = layout.FRAME_FLAG_CANCEL;
const HEADER_SIZE = layout.FRAME_HEADER_SIZE;
const PREAMBLE_SIZE = layout.MESSAGE_PREAMBLE_SIZE;

/** The messages that a walk has passed, and the bytes of their payloads. */
export interface Passed {
  messages: number;
  bytes: number;
  /** Payload bytes of the message that has begun and not ended. */
  begun: number;
}

/** The `time` of the frame at a position. */
export function timeAt({ words, capacity }: Lane, position: number): number {
  return words[((position & (capacity - 1)) >> 2) + TIME]!;
}

/** The position of the next first frame of a message, or the end of what is known. */
export function nextMessage(lane: Lane, from: number): number {
  const { words, capacity, other } = lane;
  for (let at = from; at !== other;) {
    const index = (at & (capacity - 1)) >> 2;
    if (isMessage((words[index + 1]! >>> KIND_SHIFT) & 0xff)) return at;
    const size = words[index]!;
    const left = (other - at) | 0;
    if (size < 0 || size > left - HEADER_SIZE) return at;
    at = (at + extentOf(size)) | 0;
  }
  return other;
}

/**
 * Walks over the frames between two positions, and counts their messages. Where a message begins,
 * `time` is stored in its frame, unless `time` is 0.
 */
export function walk(lane: Lane, from: number, to: number, passed: Passed, time: number): void {
  const { words, capacity } = lane;
  let left = (to - from) | 0;
  if (left > capacity) return;
  for (let at = from; left > 0;) {
    const index = (at & (capacity - 1)) >> 2;
    const size = words[index]!;
    const kind = words[index + 1]!;
    if (size < 0 || size > left - HEADER_SIZE) return;
    const extent = extentOf(size);
    if (isMessage((kind >>> KIND_SHIFT) & 0xff)) {
      const flags = (kind >>> FLAGS_SHIFT) & (FIRST | LAST | CANCEL);
      if ((flags & FIRST) !== 0 && time !== 0) words[index + TIME] = time;
      pass(flags, size, passed);
    }
    at = (at + extent) | 0;
    left -= extent;
  }
}

function pass(flags: number, size: number, passed: Passed): void {
  if (flags === WHOLE) {
    passed.messages++;
    passed.bytes += size;
    return;
  }
  if ((flags & FIRST) !== 0) passed.begun = -PREAMBLE_SIZE;
  passed.begun += size;
  if ((flags & LAST) === 0) return;
  if ((flags & CANCEL) === 0) {
    passed.messages++;
    passed.bytes += passed.begun;
  }
  passed.begun = 0;
}

/** Whether frames of this kind belong to messages. */
function isMessage(kind: number): boolean {
  return kind === layout.FRAME_KIND_DATA ||
    (kind >= layout.FRAME_KIND_CALL && kind <= layout.FRAME_KIND_THROW);
}
