/**
 * The preface: the first bytes of each direction of a stream. See `spec/stream.md`.
 *
 * @module
 */

import { layout } from "../memory/layout.ts";

/** What a side states about the frames that it accepts. */
export interface Preface {
  /** Largest extent of a frame, in bytes: a multiple of 16. */
  readonly largest: number;
  /** Bytes of frames that may be sent beyond those that were given back: a multiple of 16. */
  readonly window: number;
}

/** Bytes that no text begins with, and that a conversion of line ends would change. */
const MAGIC = [0x4d, 0x49, 0x4c, 0x4c, 0xff, 0x0d, 0x0a, 0x0a];
const MAJOR = 1;
const MINOR = 0;
/** The features that this version supports. */
const FEATURES = 0;

/** Encodes a preface with all its fields. [stream.preface] */
export function writePreface({ largest, window }: Preface): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(layout.STREAM_PREFACE_SIZE);
  const view = new DataView(bytes.buffer);
  bytes.set(MAGIC, layout.STREAM_MAGIC_OFFSET);
  view.setUint16(layout.STREAM_VERSION_MAJOR_OFFSET, MAJOR, true);
  view.setUint16(layout.STREAM_VERSION_MINOR_OFFSET, MINOR, true);
  view.setUint32(layout.STREAM_LARGEST_OFFSET, largest, true);
  view.setUint32(layout.STREAM_WINDOW_OFFSET, window, true);
  view.setUint32(layout.STREAM_REQUIRED_FEATURES_OFFSET, FEATURES, true);
  view.setUint32(layout.STREAM_OPTIONAL_FEATURES_OFFSET, FEATURES, true);
  return bytes;
}

/**
 * Whether a value is valid as `largest` or `window`: a multiple of 16, from `least` to the maximum.
 */
export function isStreamSize(value: number, least: number): boolean {
  return value % layout.FRAME_ALIGN === 0 && value >= least && value <= layout.STREAM_WINDOW_MAX;
}

/** Collects the peer's preface, in whatever pieces it arrives. */
export class PrefaceReader {
  readonly #bytes = new Uint8Array(layout.STREAM_PREFACE_SIZE);
  #count = 0;
  /** The peer's preface, once all of it has arrived and has passed the checks. */
  preface: Preface | undefined;

  /** Takes the bytes of the preface from the front of `bytes`. Returns how many it took. */
  take(bytes: Uint8Array): number {
    const before = this.#count;
    const size = Math.min(bytes.length, layout.STREAM_PREFACE_SIZE - before);
    this.#bytes.set(bytes.subarray(0, size), before);
    this.#count += size;
    return size;
  }

  /**
   * Checks what has arrived so far. Returns the number of the reason why it is not a preface, or 0.
   * The magic is checked as soon as it is complete. [stream.preface_check]
   */
  check(): number {
    if (this.#count < layout.STREAM_MAGIC_SIZE) return 0;
    const at = layout.STREAM_MAGIC_OFFSET;
    if (MAGIC.some((byte, index) => this.#bytes[at + index] !== byte)) {
      return layout.REASON_STREAM_MAGIC;
    }
    if (this.#count < layout.STREAM_PREFACE_SIZE) return 0;
    const view = new DataView(this.#bytes.buffer);
    if (view.getUint16(layout.STREAM_VERSION_MAJOR_OFFSET, true) !== MAJOR) {
      return layout.REASON_STREAM_VERSION;
    }
    if (view.getUint32(layout.STREAM_REQUIRED_FEATURES_OFFSET, true) & ~FEATURES) {
      return layout.REASON_STREAM_FEATURE;
    }
    const largest = view.getUint32(layout.STREAM_LARGEST_OFFSET, true);
    const window = view.getUint32(layout.STREAM_WINDOW_OFFSET, true);
    const isGood = isStreamSize(largest, layout.STREAM_LARGEST_MIN) &&
      isStreamSize(window, largest);
    if (!isGood) return layout.REASON_STREAM_PREFACE;
    this.preface = { largest, window };
    return 0;
  }
}
