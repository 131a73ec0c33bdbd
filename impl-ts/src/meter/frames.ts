/**
 * Walks over the frames in a ring by their headers, for a meter. See `spec/meter.md`.
 *
 * The other end may change any header at any moment. So each header is loaded once, and a walk ends
 * at a header that does not fit.
 *
 * @module
 */

import { layout } from "../memory/layout.ts";
import { extentOf, Head } from "../ring/frame.ts";
import type { Side } from "../ring/side.ts";

/** Where the kind and the flags stand in the second word of a header. */
const KIND_SHIFT: number = 8 * (layout.FRAME_KIND_OFFSET - 4);
const FLAGS_SHIFT: number = 8 * (layout.FRAME_FLAGS_OFFSET - 4);
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

/** Counts the messages in the frames between two positions. */
export function countBetween(side: Side, from: number, to: number): number {
  const passed: Passed = { messages: 0, bytes: 0, begun: 0 };
  walk(side, from, to, passed);
  return passed.messages;
}

/**
 * Passes the frames between two positions. `begin` is called with the word at which each first
 * frame of a message begins.
 */
export function walk(
  { words, base, capacity }: Side,
  from: number,
  to: number,
  passed: Passed,
  begin?: (index: number) => void,
): void {
  let left = (to - from) | 0;
  if (left > capacity) return;
  for (let at = from; left > 0;) {
    const index = (base + (at & (capacity - 1))) >> 2;
    const size = words[index]!;
    const word = words[index + 1]!;
    if (size < 0 || size > left - HEADER_SIZE) break;
    const extent = extentOf(size);
    if (isMessage((word >>> KIND_SHIFT) & 0xff)) {
      const flags = (word >>> FLAGS_SHIFT) & 0xff;
      pass(passed, flags, size);
      if ((flags & FIRST) !== 0) begin?.(index);
    }
    at = (at + extent) | 0;
    left -= extent;
  }
}

/** Counts a frame of a message; a message counts with its last one. */
function pass(passed: Passed, all: number, size: number): void {
  const flags = all & (FIRST | LAST | CANCEL);
  if (flags === Head.WHOLE) {
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
