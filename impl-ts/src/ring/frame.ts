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
  /**
   * Whole messages with codec 0: of kind data, and of the first and the last kind of calls, between
   * which is only another one.
   */
  WHOLE_DATA = WHOLE << FLAGS_SHIFT | 1,
  WHOLE_CALL = WHOLE << FLAGS_SHIFT | 3,
  WHOLE_THROW = WHOLE << FLAGS_SHIFT | 5,
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
 * object and overwrites it for each frame, so that reading allocates nothing.
 */
export class FrameReader {
  /** How many bytes of the message the frame has: its payload without the first `lead` bytes. */
  declare size: number;
  /** How many bytes of the payload come before those: a header extension, and the preamble. */
  declare lead: number;
  /** How many bytes the frame takes in the ring. */
  declare extent: number;
  declare kind: number;
  /** The flags without `extended`, which has no meaning after the checks. [frame.skip_extension] */
  declare flags: number;
  declare codec: number;
  declare tag: number;
  /**
   * How many bytes the whole message has, or Infinity, if its writer did not know that when it
   * began.
   */
  declare total: number;
  /** How many bytes of the message in progress were accepted so far. */
  received = 0;
  /** Whether a multipart message has begun and its last frame has not come. */
  inProgress = false;
  /** Whether the reader drops the message in progress, and has reported that. */
  dropped = false;
  /**
   * Whether the reader dropped that message at its first frame. The sum of its parts is not
   * checked.
   */
  unsummed = false;
  /** Kind and codec, tag, and total of the message in progress. */
  begun = 0;
  begunTag = 0;
  begunTotal = 0;

  /** Whether this is the first of several frames of a message. */
  get isFirst(): boolean {
    return this.flags === layout.FRAME_FLAG_FIRST;
  }

  /** Whether this is the last frame of its message. */
  get isLast(): boolean {
    return (this.flags & layout.FRAME_FLAG_LAST) > 0;
  }

  /** Whether the writer did not know the size of the message when it began to write it. */
  get isUnknown(): boolean {
    return this.total === Infinity;
  }

  /**
   * Loads the header at word `index` once, and makes all checks in the order of the specification's
   * table. Returns 0, or the number of the reason of the first check that fails. `available`,
   * `toEnd` and `half` are in bytes, and multiples of 16; `available` is at least 16. Changes only
   * the fields that describe this frame, not those of the message in progress. [frame.check]
   */
  check(words: Int32Array, index: number, available: number, toEnd: number, half: number): number {
    const size = words[index]! >>> 0;
    const word = words[index + 1]!;
    this.size = this.total = size;
    this.lead = 0;
    this.extent = extentOf(size);
    this.kind = word & 0xff;
    this.flags = (word >>> Head.FLAGS_SHIFT) & 0xff;
    this.codec = (word >>> Head.CODEC_SHIFT) & 0xff;
    this.tag = words[index + 2]!;
    const room = available < toEnd ? available : toEnd;
    const form = word & ~Head.CODEC_MASK;
    const isCommon = form === Head.WHOLE_DATA ||
      (form >= Head.WHOLE_CALL && form <= Head.WHOLE_THROW);
    if (!isCommon || this.inProgress) {
      return checkOther(this, words, index, word, room, toEnd, half);
    }
    // For the most common frames only the size is left to check. This function is kept short for
    // speed: V8 inlines it into its callers together with other functions, which it would call
    // instead if this one were longer.
    return size > (room < half ? room : half) - layout.FRAME_HEADER_SIZE
      ? layout.REASON_FRAME_SIZE
      : 0;
  }
}

/** Makes all checks of a frame that is not one of the most common, or comes inside a message. */
function checkOther(
  frame: FrameReader,
  words: Int32Array,
  index: number,
  word: number,
  room: number,
  toEnd: number,
  half: number,
): number {
  const { kind, codec } = frame;
  let { size, flags } = frame;
  const isPad = kind === layout.FRAME_KIND_PAD;
  const isBare = isPad || kind === layout.FRAME_KIND_END;
  const isExtension = kind >= layout.FRAME_KIND_EXTENSION_MIN;
  if (kind < layout.FRAME_KIND_DATA || (kind > layout.FRAME_KIND_PAD && !isExtension)) {
    return layout.REASON_FRAME_KIND;
  }
  if (!isExtension) {
    if (word >>> Head.RESERVED_SHIFT) return layout.REASON_FRAME_RESERVED;
    if (isBare ? flags : !areMessageFlags(flags, codec)) return layout.REASON_FRAME_FLAGS;
  }
  // The extent of `size` is at most a multiple of 16 exactly when 16 + `size` is. So `size` is
  // compared without rounding it up, and nothing can overflow.
  const most = isPad || room < half ? room : half;
  if (size > most - layout.FRAME_HEADER_SIZE) return layout.REASON_FRAME_SIZE;
  if (isPad) return frame.extent === toEnd ? 0 : layout.REASON_FRAME_PAD;
  if (isBare) return size && layout.REASON_FRAME_SIZE;
  if (isExtension) return 0;

  // What follows applies to frames of messages only.
  let at = index + layout.FRAME_HEADER_SIZE / 4;
  if (flags & layout.FRAME_FLAG_EXTENDED) { // [frame.skip_extension]
    // If the payload has no room for it, this is some other word, and too large for the payload.
    const lead = words[at + layout.EXTENSION_SIZE_OFFSET / 4]! >>> 0;
    const isOdd = lead % layout.HEADER_EXTENSION_ALIGN;
    if (isOdd || lead < layout.HEADER_EXTENSION_SIZE || lead > size) {
      return layout.REASON_FRAME_EXTENSION;
    }
    frame.flags = flags &= ~layout.FRAME_FLAG_EXTENDED;
    frame.lead = lead;
    frame.size = frame.total = size -= lead;
    at += lead / 4;
  }
  const { inProgress, isFirst } = frame;
  if (flags === Head.WHOLE) return inProgress ? layout.REASON_FRAME_SEQUENCE : 0;
  const isCancel = flags > Head.WHOLE;
  const least = isFirst ? layout.MESSAGE_PREAMBLE_SIZE : 1;
  if (isCancel ? size : size < least) return layout.REASON_FRAME_SIZE;
  if (isFirst === inProgress) return layout.REASON_FRAME_SEQUENCE;
  let total = frame.begunTotal;
  if (isFirst) { // [frame.preamble]
    const low = words[at + layout.PREAMBLE_TOTAL_OFFSET / 4]!;
    const high = words[at + layout.PREAMBLE_TOTAL_OFFSET / 4 + 1]!;
    const reserved = at + layout.PREAMBLE_RESERVED_OFFSET / 4;
    if (words[reserved] || words[reserved + 1]) return layout.REASON_FRAME_RESERVED;
    // A total above 2^53 loses its lowest bits here, but it is above every limit anyway.
    total = (low & high) === -1 ? Infinity : (low >>> 0) + (high >>> 0) * 2 ** 32;
    frame.lead += layout.MESSAGE_PREAMBLE_SIZE;
    frame.size = size -= layout.MESSAGE_PREAMBLE_SIZE;
  }
  frame.total = total;
  if (isFirst) return size <= total ? 0 : layout.REASON_FRAME_TOTAL;
  if (packKind(kind, 0, codec) !== frame.begun || frame.tag !== frame.begunTag) {
    return layout.REASON_FRAME_SEQUENCE;
  }
  if (isCancel || frame.unsummed) return 0; // [frame.check_total]
  const sum = frame.received + size;
  const isRight = frame.isLast && total < Infinity ? sum === total : sum <= total;
  return isRight ? 0 : layout.REASON_FRAME_TOTAL;
}

/** Updates the progress of the message to which this frame belongs. */
export function accept(frame: FrameReader): void {
  const { kind, flags } = frame;
  if (kind === layout.FRAME_KIND_END || kind > layout.FRAME_KIND_THROW) return;
  if (flags === layout.FRAME_FLAG_FIRST) {
    frame.dropped = frame.unsummed = false;
    frame.begun = packKind(kind, 0, frame.codec);
    frame.begunTag = frame.tag;
    frame.begunTotal = frame.total;
    frame.received = 0;
  }
  frame.received += frame.size;
  frame.inProgress = (flags & layout.FRAME_FLAG_LAST) === 0;
}
