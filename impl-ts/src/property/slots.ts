/**
 * The memory of one property: four slots that are used in turn, the version, and the watchers. See
 * `spec/property.md`.
 *
 * A version is a `u32`. It is kept as a signed integer here, because `Atomics` returns it as one.
 *
 * @module
 */

import { copyInto, NO_WORDS } from "../codec/payload.ts";
import { MillraceError } from "../error.ts";
import { layout } from "../memory/layout.ts";
import { nameIn } from "./name.ts";
import { type Segment, throwGone } from "../memory/segment.ts";
import type { Channel } from "../memory/plan.ts";

// V8 compiles constants of this module into the machine code, but looks up imported ones each time.
const SLOTS = layout.PROPERTY_SLOT_COUNT;
const HEADER = layout.PROPERTY_SLOT_SIZE;
const VERSION = layout.PROPERTY_VERSION_WORD;
const WATCHERS = layout.PROPERTY_WATCHERS_WORD;
const SEQUENCE = layout.SLOT_SEQUENCE_WORD;
const SIZE = layout.SLOT_SIZE_OFFSET >> 2;
/**
 * The word with `present`, `codec` and two of the reserved bytes. `REST` has the other four bytes.
 */
const FORM = layout.SLOT_PRESENT_OFFSET >> 2;
const CODEC_SHIFT = 8 * (layout.SLOT_CODEC_OFFSET - layout.SLOT_PRESENT_OFFSET);
const REST = FORM + 1;
const PRESENT = 1;
const CODEC_MASK = 0xff;
/**
 * Bytes from which the number of a reader's attempts follows, within the bounds of
 * `property.again`. A hostile writer can overtake each attempt: it makes a reader copy at most
 * about 4 MiB, or 16 values if those are larger.
 */
const TRIES_SIZE = 1 << 22;

/** Returned by `read` if there is no value. */
export const NONE = -1;

/**
 * A fault of a property, or a mistake in what a caller asks of it: codes `property.*`.
 *
 * - `property.channel`: there is no such property, or the endpoint may not set it.
 * - `property.size`: the value to be set is too large; the value before it stays.
 * - `property.slot`: the writer has stored something that no writer may store. The next value that
 *   is set repairs it.
 * - `property.busy`: the value was overwritten during each attempt to read it. Nothing is wrong:
 *   ask again.
 *
 * @example
 * ```ts
 * import { PropertyError, SharedProperties } from "@millrace/millrace/property";
 *
 * using properties = SharedProperties.create({ properties: { title: { writer: 0, size: 100 } } });
 * try {
 *   properties.set("title", "?".repeat(1000));
 * } catch (error) {
 *   console.log(error instanceof PropertyError && error.code); // "property.size"
 * }
 * console.log(properties.get("title")); // null
 * ```
 */
export class PropertyError extends MillraceError {
  /** The name, which a bundler would shorten. @internal */
  static override readonly name: string = "PropertyError";

  /** The name of the class. */
  override name = "PropertyError";
}

/** The memory of a property whose descriptor has been checked. */
export class Slots {
  readonly name: string;
  /** The index of the endpoint that sets the property. */
  readonly writer: number;
  /** The largest size of a value in bytes. */
  readonly capacity: number;
  /** The codec of the value that was read last. */
  codec = 0;
  /** The version that was read last. */
  seen = 0;
  readonly #control: Int32Array;
  readonly #words: Int32Array;
  readonly #bytes: Uint8Array;
  readonly #slotWords: number;
  /** The number of words of `watchers` that hold bits of the segment's endpoints. */
  readonly #watcherWords: number;
  readonly #tries: number;

  private constructor(segment: Segment, channel: Channel) {
    const { controlOffset, dataOffset, dataSize, writer } = channel;
    this.#control = segment.words(controlOffset, layout.PROPERTY_CONTROL_SIZE);
    this.#words = segment.words(dataOffset, dataSize);
    this.#bytes = segment.bytes(dataOffset, dataSize);
    this.#slotWords = dataSize / SLOTS >> 2;
    this.#watcherWords = Math.ceil(segment.endpointCount / 32);
    this.capacity = dataSize / SLOTS - HEADER;
    const tries = Math.floor(TRIES_SIZE / this.capacity);
    this.#tries = Math.min(layout.PROPERTY_TRIES_MAX, Math.max(layout.PROPERTY_TRIES_MIN, tries));
    this.writer = writer;
    this.name = nameIn(this.#control);
  }

  /** The properties of a segment that pass the checks, by the index of their channel. */
  static all(segment: Segment): Map<number, Slots> {
    const found = new Map<number, Slots>();
    segment.channels.forEach((channel, index) => {
      if (isProperty(segment, channel)) found.set(index, new Slots(segment, channel));
    });
    return found;
  }

  /**
   * Finds a property by the index of its channel or by its name; without either, the first one.
   * [property.open] [property.find]
   *
   * @throws {PropertyError} `property.channel` if there is none.
   */
  static find(segment: Segment, which: number | string | undefined): Slots {
    const all = Slots.all(segment);
    const slots = typeof which === "number"
      ? all.get(which)
      : [...all.values()].find(({ name }) =>
        which === undefined || (name === which && name !== "")
      );
    if (slots !== undefined) return slots;
    const what = which === undefined ? "no property" : `no property ${JSON.stringify(which)}`;
    throw new PropertyError("property.channel", `Cannot open property: the segment has ${what}`);
  }

  /** The version of the last complete value, loaded once. */
  version(): number {
    if (this.#control.length === 0) throwGone();
    return Atomics.load(this.#control, VERSION);
  }

  /**
   * Stores a value as the version after `before`, and returns that version. It wakes no one. The
   * value is the first `size` bytes of `source`. `sourceWords` are the same bytes as words, and
   * empty if `source` is not aligned.
   */
  put(
    before: number,
    source: Uint8Array,
    sourceWords: Int32Array,
    size: number,
    codec: number,
    present: number,
  ): number {
    const words = this.#words;
    // [property.next] After the last version comes 4: its slot, number 0, is due next, and version
    // 0 means no value.
    const version = (before + 1 | 0) || SLOTS;
    const slot = (version & (SLOTS - 1)) * this.#slotWords;
    // [property.sequence] From here on, no reader takes what the slot held before.
    Atomics.exchange(words, slot + SEQUENCE, version);
    words[slot + SIZE] = size;
    words[slot + FORM] = present | codec << CODEC_SHIFT;
    words[slot + REST] = 0;
    const first = slot + (HEADER >> 2);
    const count = size <= LOOP_SIZE ? Math.min(size >> 2, sourceWords.length) : 0;
    for (let i = 0; i < count; i++) {
      words[first + i] = sourceWords[i]!;
    }
    const done = count << 2;
    if (size - done > TAIL_SIZE) {
      this.#bytes.set(source.subarray(done, size), (first << 2) + done);
    } else {
      for (let i = done; i < size; i++) {
        this.#bytes[(first << 2) + i] = source[i]!;
      }
    }
    // [property.publish] Sequentially consistent, because `wake` loads the watchers next.
    Atomics.store(this.#control, VERSION, version);
    return version;
  }

  /**
   * Takes the bits out of `watchers`, and calls `ring` for each endpoint that the segment has.
   * [property.wake]
   */
  wake(ring: (endpoint: number) => void, endpointCount: number): void {
    const control = this.#control;
    if (control.length === 0) return; // the memory is gone, and its watchers with it
    for (let word = 0; word < this.#watcherWords; word++) {
      if (Atomics.load(control, WATCHERS + word) === 0) continue;
      let bits = Atomics.exchange(control, WATCHERS + word, 0);
      while (bits !== 0) {
        const bit = 31 - Math.clz32(bits);
        bits &= ~(1 << bit);
        if (word * 32 + bit < endpointCount) ring(word * 32 + bit);
      }
    }
  }

  /**
   * Copies the value into the target, and returns its size in bytes, or `NONE`. `targetWords` are
   * the target's bytes as words, if it is aligned. If this throws, the contents of the target have
   * no meaning.
   *
   * @throws {PropertyError} `property.slot`, `property.busy`.
   * @throws {RangeError} if the target is too small.
   */
  read(target: Uint8Array, targetWords: Int32Array = NO_WORDS): number {
    const words = this.#words;
    let version = Atomics.load(this.#control, VERSION); // [property.version]
    for (let tries = this.#tries; tries > 0; tries--) {
      if (version === 0) {
        this.seen = this.codec = 0;
        return NONE;
      }
      const slot = (version & (SLOTS - 1)) * this.#slotWords;
      // [property.bounds] Load each field once: the writer may change it between two loads.
      const size = words[slot + SIZE]! >>> 0;
      const form = words[slot + FORM]!;
      const isSound = words[slot + REST] === 0 &&
        (form === 0
          ? size === 0
          : (form & ~(CODEC_MASK << CODEC_SHIFT)) === PRESENT && size <= this.capacity);
      const isCopied = isSound && size <= target.length;
      const at = (slot << 2) + HEADER;
      if (isCopied) copyInto(this.#bytes, words, at, size, target, targetWords);
      // [property.whole] An atomic OR, because the copy could be moved after a plain load.
      if (Atomics.or(words, slot + SEQUENCE, 0) === version) {
        if (!isSound) throw fault("a slot that no writer may leave");
        if (!isCopied) {
          throw new RangeError(
            `Cannot get property: ${size} bytes, the target has ${target.length}`,
          );
        }
        this.seen = version;
        this.codec = form >> CODEC_SHIFT & CODEC_MASK;
        return form === 0 ? NONE : size;
      }
      const next = Atomics.load(this.#control, VERSION);
      // A writer that reuses a slot has stored other versions before it exchanges the slot's
      // sequence.
      if (next === version) throw fault(`version ${version >>> 0} in no slot`); // [property.fault]
      version = next;
    }
    const text = "Cannot get property: it was overwritten each time that it was read";
    throw new PropertyError("property.busy", text);
  }

  /** Asks to be rung when the version changes. [property.watch] */
  watch(endpoint: number): void {
    Atomics.or(this.#control, WATCHERS + (endpoint >> 5), 1 << (endpoint & 31));
  }

  /** Withdraws that request. [property.unwatch] */
  unwatch(endpoint: number): void {
    Atomics.and(this.#control, WATCHERS + (endpoint >> 5), ~(1 << (endpoint & 31)));
  }
}

/** Up to this many bytes, a loop over words is as fast as `set`, which needs a view. */
const LOOP_SIZE = 2048;
/** Up to this many bytes, a loop over bytes is as fast as `set`. */
const TAIL_SIZE = 64;

/** Whether a channel passes the checks of a property. [property.open] */
function isProperty(segment: Segment, channel: Channel): boolean {
  const { kind, writer, reader, controlSize, dataSize } = channel;
  return kind === layout.CHANNEL_KIND_PROPERTY && writer < segment.endpointCount &&
    reader === layout.ENDPOINT_NONE && controlSize >= layout.PROPERTY_CONTROL_SIZE &&
    dataSize > 0 && dataSize % layout.PROPERTY_DATA_UNIT === 0;
}

function fault(what: string): PropertyError {
  return new PropertyError("property.slot", `Cannot get property: its writer has stored ${what}`);
}
