/**
 * The 16-byte header before every payload, and its checks. See `spec/frame.md`.
 *
 * @module
 */

import { layout } from "../memory/layout.ts";

/**
 * The second word of a header: where its fields stand in it, and what is in those of the most
 * common frames. An `enum`, as bundlers put its members in place.
 */
export const enum Head {
  FLAGS_SHIFT = 8,
  CODEC_SHIFT = 16,
  RESERVED_SHIFT = 24,
  CODEC_MASK = 0xff << CODEC_SHIFT,
  /** The flags of a frame that is a whole message: `first` and `last`. [frame.whole] */
  WHOLE = 3,
  /** A whole message of kind data with codec 0. */
  WHOLE_DATA = WHOLE << FLAGS_SHIFT | 1,
}

/** How many bytes a frame with a payload of `size` bytes takes in the ring. [frame.extent] */
export const extentOf = (size: number): number =>
  (size + layout.FRAME_HEADER_SIZE + layout.FRAME_ALIGN - 1) & -layout.FRAME_ALIGN;

/** Packs kind, flags and codec into the second word of a header; the reserved byte is 0. */
export const packKind = (kind: number, flags: number, codec: number): number =>
  kind | (flags << Head.FLAGS_SHIFT) | (codec << Head.CODEC_SHIFT);

/**
 * Whether a frame of a message with this codec, whole or a chunk, may have these flags.
 * [frame.check]
 */
export function areMessageFlags(flags: number, codec: number): boolean {
  const others = flags & ~layout.FRAME_FLAG_EXTENDED;
  if (codec === layout.CODEC_JSON_BATCH) return others === Head.WHOLE;
  return others <= Head.WHOLE ||
    flags === (layout.FRAME_FLAG_LAST | layout.FRAME_FLAG_CANCEL);
}

/** Writes all fields of a frame's header at word `index`. [frame.header] */
export function writeHeader(
  words: Int32Array,
  index: number,
  size: number,
  kindWord: number,
  tag: number,
): void {
  words[index] = size;
  words[index + 1] = kindWord;
  words[index + 2] = tag;
  words[index + 3] = 0; // `time`: this writer does not measure it.
}

/**
 * The frame that a reader is at, and its progress in a multipart message. A reader has one such
 * record and overwrites it for each frame, so that reading allocates nothing.
 */
export interface Frame {
  /** Where the message's bytes begin: after a header extension, and the preamble. */
  at: number;
  /** How many bytes of the message the frame has. */
  size: number;
  /** How many bytes the frame takes in the ring. */
  extent: number;
  kind: number;
  /** The flags without `extended`, which has no meaning after the checks. [frame.skip_extension] */
  flags: number;
  codec: number;
  tag: number;
  /** The `time` of the message whose first frame was looked at last. */
  time: number;
  /**
   * How many bytes the whole message has, or Infinity, if its writer did not know that when it
   * began.
   */
  total: number;
  /** How many bytes of the message in progress were accepted so far. */
  received: number;
  /**
   * Kind and codec of the message in progress: one whose first frame has come, and not its last. 0
   * if there is none.
   */
  begun: number;
  /** Its tag, and its total; Infinity also if the sum of its parts is not to be checked. */
  begunTag: number;
  begunTotal: number;
  /** Whether the reader drops it, and has reported that. */
  dropped: boolean;
}

/** Makes the record of a reader, of which the first check sets the rest. */
export const makeFrame = (): Frame =>
  ({ flags: 0, size: 0, time: 0, begun: 0, dropped: false }) as Frame;

/**
 * Makes all checks of the frame whose header stands at word `index`, in the order of the
 * specification's table. Its first two words were loaded already; this loads the others. Returns 0,
 * or the number of the reason of the first check that fails. `available`, `toEnd` and `half` are in
 * bytes, and multiples of 16; `available` is at least 16. Changes only what the record says of this
 * frame, not of the message in progress. [frame.check]
 */
export function checkFrame(
  frame: Frame,
  words: Int32Array,
  index: number,
  size: number,
  word: number,
  available: number,
  toEnd: number,
  half: number,
): number {
  const kind = frame.kind = word & 0xff;
  const codec = frame.codec = (word >>> Head.CODEC_SHIFT) & 0xff;
  const tag = frame.tag = words[index + 2]! >>> 0;
  const extent = frame.extent = extentOf(size);
  let flags = frame.flags = (word >>> Head.FLAGS_SHIFT) & 0xff;
  frame.size = frame.total = size;
  frame.at = 4 * index + layout.FRAME_HEADER_SIZE;
  const isPad = kind === layout.FRAME_KIND_PAD;
  const isBare = isPad || kind === layout.FRAME_KIND_END;
  const isExtension = kind >= layout.FRAME_KIND_EXTENSION_MIN;
  if (!isExtension) {
    if (kind < layout.FRAME_KIND_DATA || kind > layout.FRAME_KIND_PAD) {
      return layout.REASON_FRAME_KIND;
    }
    if (word >>> Head.RESERVED_SHIFT) return layout.REASON_FRAME_RESERVED;
    if (isBare ? flags : !areMessageFlags(flags, codec)) return layout.REASON_FRAME_FLAGS;
  }
  // The extent of `size` is at most a multiple of 16 exactly when 16 + `size` is. So `size` is
  // compared without rounding it up, and nothing can overflow.
  const most = Math.min(available, toEnd, isPad ? toEnd : half);
  if (size > most - layout.FRAME_HEADER_SIZE) return layout.REASON_FRAME_SIZE;
  if (isPad) return extent === toEnd ? 0 : layout.REASON_FRAME_PAD;
  if (isBare) return size && layout.REASON_FRAME_SIZE;
  if (isExtension) return 0;

  // What follows applies to frames of messages only.
  if (flags & layout.FRAME_FLAG_FIRST) frame.time = words[index + layout.FRAME_TIME_OFFSET / 4]!;
  if (flags & layout.FRAME_FLAG_EXTENDED) { // [frame.skip_extension]
    // If the payload has no room for it, this is some other word, and too large for the payload.
    const lead = words[(frame.at + layout.EXTENSION_SIZE_OFFSET) / 4]! >>> 0;
    const isOdd = lead % layout.HEADER_EXTENSION_ALIGN;
    if (isOdd || lead < layout.HEADER_EXTENSION_SIZE || lead > size) {
      return layout.REASON_FRAME_EXTENSION;
    }
    frame.flags = flags &= ~layout.FRAME_FLAG_EXTENDED;
    frame.at += lead;
    frame.size = frame.total = size -= lead;
  }
  const { begun } = frame;
  if (flags === Head.WHOLE) return begun && layout.REASON_FRAME_SEQUENCE;
  const isFirst = flags === layout.FRAME_FLAG_FIRST;
  const least = isFirst ? layout.MESSAGE_PREAMBLE_SIZE : 1;
  if (flags > Head.WHOLE ? size : size < least) return layout.REASON_FRAME_SIZE; // a cancel: none
  if (isFirst) { // [frame.preamble]
    if (begun) return layout.REASON_FRAME_SEQUENCE;
    const at = frame.at / 4;
    const low = words[at + layout.PREAMBLE_TOTAL_OFFSET / 4]!;
    const high = words[at + layout.PREAMBLE_TOTAL_OFFSET / 4 + 1]!;
    const reserved = at + layout.PREAMBLE_RESERVED_OFFSET / 4;
    if (words[reserved] || words[reserved + 1]) return layout.REASON_FRAME_RESERVED;
    frame.at += layout.MESSAGE_PREAMBLE_SIZE;
    frame.size = size -= layout.MESSAGE_PREAMBLE_SIZE;
    // A total above 2^53 loses its lowest bits here, but it is above every limit anyway.
    const total = (low >>> 0) + (high >>> 0) * 2 ** 32;
    frame.total = (low & high) === -1 ? Infinity : total;
    return size <= total ? 0 : layout.REASON_FRAME_TOTAL;
  }
  if (packKind(kind, 0, codec) !== begun || tag !== frame.begunTag) {
    return layout.REASON_FRAME_SEQUENCE;
  }
  const total = frame.total = frame.begunTotal;
  const sum = frame.received + size;
  // [frame.check_total]
  const isRight = flags === layout.FRAME_FLAG_LAST && total < Infinity
    ? sum === total
    : sum <= total;
  return isRight ? 0 : layout.REASON_FRAME_TOTAL;
}

/** Updates the progress of the message to which this frame belongs. */
export function accept(frame: Frame): void {
  const { kind, flags } = frame;
  if (kind === layout.FRAME_KIND_END || kind > layout.FRAME_KIND_THROW) return;
  if (flags === layout.FRAME_FLAG_FIRST) {
    frame.begun = packKind(kind, 0, frame.codec);
    frame.begunTag = frame.tag;
    frame.begunTotal = frame.total;
    frame.received = 0;
  }
  frame.received += frame.size;
  if (flags & layout.FRAME_FLAG_LAST) {
    frame.begun = 0;
    frame.dropped = false;
  }
}
