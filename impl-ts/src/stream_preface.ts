/**
 * The first bytes of each direction of a stream. See `spec/stream.md`.
 *
 * @module
 */

import * as layout from "./layout.ts";

/** What a side states about what it reads. */
export interface Preface {
  /** Largest extent of a frame, in bytes: a multiple of 16. */
  readonly largest: number;
  /** Bytes of frames that may come beyond those that were given back: a multiple of 16. */
  readonly window: number;
}

/** Bytes that no text begins with, and that what changes line ends changes. */
const MAGIC = [0x4d, 0x49, 0x4c, 0x4c, 0xff, 0x0d, 0x0a, 0x0a];
const MAJOR = 1;
const MINOR = 0;
/** What this version understands beyond itself. */
const FEATURES = 0;

/** Writes a preface, every field of it. [stream.preface] */
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

/** Whether that is a size of a frame, or of a window of frames up to `least`, in bytes. */
export function isStreamSize(value: number, least: number): boolean {
  return value % layout.FRAME_ALIGN === 0 && value >= least && value <= layout.STREAM_WINDOW_MAX;
}

/** Collects the preface of the peer, however it comes. */
export class PrefaceReader {
  readonly #bytes = new Uint8Array(layout.STREAM_PREFACE_SIZE);
  #count = 0;
  /** What the peer has stated, once all of it has come and is as it must be. */
  preface: Preface | undefined;

  /** Takes what belongs to the preface off the front; returns how many bytes that were. */
  take(bytes: Uint8Array): number {
    const before = this.#count;
    const size = Math.min(bytes.length, layout.STREAM_PREFACE_SIZE - before);
    this.#bytes.set(bytes.subarray(0, size), before);
    this.#count += size;
    return size;
  }

  /**
   * The number of the reason for which what has come so far is no preface, or 0: the magic is
   * looked at as soon as it is there. [stream.preface_check]
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
    if ((view.getUint32(layout.STREAM_REQUIRED_FEATURES_OFFSET, true) & ~FEATURES) !== 0) {
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
