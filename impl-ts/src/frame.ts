/**
 * The 16-byte header before every payload, and its checks. See `spec/frame.md`.
 *
 * @module
 */

import * as layout from "./layout.ts";
import { FRAME_KIND_DATA, FRAME_KIND_END, FRAME_KIND_PAD, FRAME_KIND_THROW } from "./layout.ts";

const HEADER_SIZE = layout.FRAME_HEADER_SIZE;
const ALIGN = layout.FRAME_ALIGN;
const FIRST = layout.FRAME_FLAG_FIRST;
const LAST = layout.FRAME_FLAG_LAST;
const CANCEL = layout.FRAME_FLAG_CANCEL;
const EXTENDED = layout.FRAME_FLAG_EXTENDED;
const KIND_SHIFT = 8 * (layout.FRAME_KIND_OFFSET - 4);
const FLAGS_SHIFT = 8 * (layout.FRAME_FLAGS_OFFSET - 4);
const CODEC_SHIFT = 8 * (layout.FRAME_CODEC_OFFSET - 4);
const RESERVED_SHIFT = 8 * (layout.FRAME_RESERVED_OFFSET - 4);

/** The `total` of a message whose size its writer does not know: no number of bytes reaches it. */
export const TOTAL_UNKNOWN: number = Infinity;

/** Flags of the only frame of a message. [frame.whole] */
export const WHOLE: number = FIRST | LAST;

/** The second word of the usual frame, a whole message of data, but for its codec. */
const WHOLE_DATA = /* @__PURE__ */ packKind(FRAME_KIND_DATA, WHOLE, 0);
const CODEC_MASK = 0xff << CODEC_SHIFT;

/** Bytes that a frame takes in the ring. [frame.extent] */
export function extentOf(size: number): number {
  return (size + HEADER_SIZE + ALIGN - 1) & -ALIGN;
}

/** Packs the second word of a header; its reserved byte is 0. */
export function packKind(kind: number, flags: number, codec: number): number {
  return (kind << KIND_SHIFT) | (flags << FLAGS_SHIFT) | (codec << CODEC_SHIFT);
}

/** Whether a message, or a part of one, of that codec may have these flags. [frame.check] */
export function areMessageFlags(flags: number, codec: number): boolean {
  const others = flags & ~EXTENDED;
  if (codec === layout.CODEC_JSON_BATCH) return others === WHOLE;
  return others <= WHOLE || flags === (LAST | CANCEL);
}

/** Writes a header, every field of it. [frame.header] */
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
  words[index + 3] = 0; // `time`: nothing here measures yet.
}

/**
 * The frame that a reader stands before, and the message that it is in the middle of. One object
 * for each reader, overwritten by each frame: nothing is allocated.
 */
export class FrameReader {
  /** Bytes of the message in this frame: what its payload has behind `lead`. */
  size = 0;
  /** Bytes that its payload begins with: a header extension, and the preamble. */
  lead = 0;
  /** Bytes that it takes in the ring. */
  extent = 0;
  kind = 0;
  /** Without `extended`, which makes no difference behind the checks. [frame.skip_extension] */
  flags = 0;
  codec = 0;
  tag = 0;
  /** Bytes of the whole message, or `TOTAL_UNKNOWN`. */
  total = 0;
  /** Bytes of the parts accepted so far of the message in progress. */
  received = 0;
  /** Whether a multipart message has begun and not ended. */
  inProgress = false;
  /** Whether the reader drops the message in progress, and has reported it. */
  dropped = false;
  /** Whether it has done so at the first frame, so that the sum is not checked. */
  unsummed = false;
  #kindCodec = 0;
  #tag = 0;
  #total = 0;

  /** Whether it is the first frame of several. */
  get isFirst(): boolean {
    return this.flags === FIRST;
  }

  /** Whether its message ends with it. */
  get isLast(): boolean {
    return (this.flags & LAST) !== 0;
  }

  /** Whether the writer of the message did not know its size as it began. */
  get isUnknown(): boolean {
    return this.total === TOTAL_UNKNOWN;
  }

  /** Kind and tag of the message in progress. */
  get pendingKind(): number {
    return this.#kindCodec & 0xff;
  }

  get pendingTag(): number {
    return this.#tag >>> 0;
  }

  /** Whether the frame carries a message or a piece of one. */
  get #isMessage(): boolean {
    return this.kind !== FRAME_KIND_END && this.kind <= FRAME_KIND_THROW;
  }

  /**
   * Loads the header at word `index` once and makes all checks in the order of the table; returns
   * 0, or the number of the reason of the first that fails. Sizes in bytes, multiples of 16;
   * `available` is at least 16. Changes nothing but the fields of this frame. [frame.check]
   */
  check(words: Int32Array, index: number, available: number, toEnd: number, half: number): number {
    const size = words[index]! >>> 0;
    const word = words[index + 1]!;
    const kind = (word >>> KIND_SHIFT) & 0xff;
    this.size = size;
    this.lead = 0;
    this.kind = kind;
    this.flags = (word >>> FLAGS_SHIFT) & 0xff;
    this.codec = (word >>> CODEC_SHIFT) & 0xff;
    this.tag = words[index + 2]!;
    const room = available < toEnd ? available : toEnd;
    if ((word & ~CODEC_MASK) !== WHOLE_DATA || this.inProgress) {
      return this.#checkOther(words, index, word, room, toEnd, half);
    }
    // Of the usual frame only the size is left to be checked. This function is so short for the
    // sake of speed: what V8 would make part of its callers with it, it otherwise calls.
    this.total = size;
    this.extent = extentOf(size);
    const most = room < half ? room : half;
    return size > most - layout.FRAME_HEADER_SIZE ? layout.REASON_FRAME_SIZE : 0;
  }

  #checkOther(
    words: Int32Array,
    index: number,
    word: number,
    room: number,
    toEnd: number,
    half: number,
  ): number {
    const { size, kind } = this;
    if (kind < FRAME_KIND_DATA || (kind > FRAME_KIND_PAD && !isExtension(kind))) {
      return layout.REASON_FRAME_KIND;
    }
    if (word >>> RESERVED_SHIFT !== 0 && !isExtension(kind)) return layout.REASON_FRAME_RESERVED;
    if (!this.#flagsValid()) return layout.REASON_FRAME_FLAGS;
    // The extent of `size` is at most a multiple of 16 exactly when 16 + size is: compared
    // without rounding up, the sum cannot overflow.
    const most = kind === FRAME_KIND_PAD || room < half ? room : half;
    if (size > most - layout.FRAME_HEADER_SIZE) return layout.REASON_FRAME_SIZE;
    this.extent = extentOf(size);
    if (kind === FRAME_KIND_PAD) return this.extent === toEnd ? 0 : layout.REASON_FRAME_PAD;
    if (kind === FRAME_KIND_END) return size === 0 ? 0 : layout.REASON_FRAME_SIZE;
    if (isExtension(kind)) return 0;
    return this.#checkMessage(words, index);
  }

  /** Takes the frame into the account of the message in progress. */
  accept(): void {
    if (!this.#isMessage) return;
    if (this.isFirst) {
      this.inProgress = true;
      this.dropped = this.unsummed = false;
      this.#kindCodec = this.kind | (this.codec << 8);
      this.#tag = this.tag;
      this.#total = this.total;
      this.received = this.size;
    } else {
      this.received += this.size;
      this.inProgress = !this.isLast;
    }
  }

  #flagsValid(): boolean {
    const { kind, flags } = this;
    if (kind === FRAME_KIND_PAD || kind === FRAME_KIND_END) return flags === 0;
    if (isExtension(kind)) return true;
    return areMessageFlags(flags, this.codec);
  }

  #checkMessage(words: Int32Array, index: number): number {
    const at = index + (layout.FRAME_HEADER_SIZE >> 2);
    if ((this.flags & EXTENDED) !== 0 && !this.#skipExtension(words, at)) {
      return layout.REASON_FRAME_EXTENSION;
    }
    const { size, flags, isFirst } = this;
    if (flags === WHOLE) {
      this.total = size;
      return this.inProgress ? layout.REASON_FRAME_SEQUENCE : 0;
    }
    const cancel = (flags & CANCEL) !== 0;
    const least = isFirst ? layout.MESSAGE_PREAMBLE_SIZE : 1;
    if (cancel ? size !== 0 : size < least) return layout.REASON_FRAME_SIZE;
    if (isFirst === this.inProgress) return layout.REASON_FRAME_SEQUENCE;
    if (isFirst) return this.#checkPreamble(words, at + (this.lead >> 2));
    this.total = this.#total;
    if ((this.kind | (this.codec << 8)) !== this.#kindCodec || this.tag !== this.#tag) {
      return layout.REASON_FRAME_SEQUENCE;
    }
    if (cancel || this.unsummed) return 0; // [frame.check_total]
    const sum = this.received + size;
    return (this.isLast && !this.isUnknown ? sum === this.total : sum <= this.total)
      ? 0
      : layout.REASON_FRAME_TOTAL;
  }

  /** Skips the header extension at word `at`. False: it is none. [frame.skip_extension] */
  #skipExtension(words: Int32Array, at: number): boolean {
    if (this.size < layout.HEADER_EXTENSION_SIZE) return false;
    const size = words[at + (layout.EXTENSION_SIZE_OFFSET >> 2)]! >>> 0;
    const isAligned = size % layout.HEADER_EXTENSION_ALIGN === 0;
    if (!isAligned || size < layout.HEADER_EXTENSION_SIZE || size > this.size) return false;
    this.flags &= ~EXTENDED;
    this.lead = size;
    this.size -= size;
    return true;
  }

  /** Skips the preamble at word `at`, and takes its total. [frame.preamble] */
  #checkPreamble(words: Int32Array, at: number): number {
    const total = at + (layout.PREAMBLE_TOTAL_OFFSET >> 2);
    const reserved = at + (layout.PREAMBLE_RESERVED_OFFSET >> 2);
    const low = words[total]!;
    const high = words[total + 1]!;
    // One above 2^53 loses its last bits; it is above every limit all the same.
    this.total = (low & high) === -1 ? TOTAL_UNKNOWN : (low >>> 0) + (high >>> 0) * 2 ** 32;
    if (words[reserved] !== 0 || words[reserved + 1] !== 0) return layout.REASON_FRAME_RESERVED;
    this.lead += layout.MESSAGE_PREAMBLE_SIZE;
    this.size -= layout.MESSAGE_PREAMBLE_SIZE;
    return this.size <= this.total ? 0 : layout.REASON_FRAME_TOTAL;
  }
}

function isExtension(kind: number): boolean {
  return kind >= layout.FRAME_KIND_EXTENSION_MIN;
}
