/**
 * The memory of one property: four slots that take turns, the version, and who watches. See
 * `spec/property.md`.
 *
 * A version is a `u32`, kept as a signed integer, as `Atomics` gives it.
 *
 * @module
 */

import { copyInto, NO_WORDS } from "./codec.ts";
import { MillraceError } from "./error.ts";
import * as layout from "./layout.ts";
import { nameIn } from "./property_name.ts";
import type { Segment } from "./segment.ts";
import type { Channel } from "./segment_geometry.ts";

// Constants of this module are part of the machine code; V8 looks imported ones up each time.
const SLOTS = layout.PROPERTY_SLOT_COUNT;
const HEADER = layout.PROPERTY_SLOT_SIZE;
const VERSION = layout.PROPERTY_VERSION_WORD;
const WATCHERS = layout.PROPERTY_WATCHERS_WORD;
const SEQUENCE = layout.SLOT_SEQUENCE_WORD;
const SIZE = layout.SLOT_SIZE_OFFSET >> 2;
/** `present`, `codec` and two of the reserved bytes; behind it, the other four. */
const FORM = layout.SLOT_PRESENT_OFFSET >> 2;
const CODEC_SHIFT = 8 * (layout.SLOT_CODEC_OFFSET - layout.SLOT_PRESENT_OFFSET);
const REST = FORM + 1;
const PRESENT = 1;
const CODEC_MASK = 0xff;
/**
 * A reader that is overtaken begins so often, within the bounds of `property.again`: a hostile
 * writer, which can overtake it each time, has it copy 4 MiB, or 16 values that are larger.
 */
const TRIES_SIZE = 1 << 22;

/** What `take` returns where there is no value. */
export const NONE = -1;

/**
 * What is wrong with a property, or with what a caller asks of it: codes `property.*`.
 *
 * - `property.channel`: there is no such property, or the endpoint may not set it.
 * - `property.size`: the value that was to be set is too large; the one before stays.
 * - `property.slot`: the writer has stored what no writer may. The next value mends it.
 * - `property.busy`: the value was overwritten each time that it was read. Nothing is wrong: ask
 *   again.
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
  /** The name of the class. */
  override name = "PropertyError";
}

/** The memory of a property, of which the descriptor was checked. */
export class Slots {
  readonly name: string;
  /** Index of the endpoint that sets it. */
  readonly writer: number;
  /** Most bytes of a value. */
  readonly capacity: number;
  /** The codec of the value that was taken last. */
  codec = 0;
  /** The version that was taken last. */
  taken = 0;
  readonly #control: Int32Array;
  readonly #words: Int32Array;
  readonly #bytes: Uint8Array;
  readonly #slotWords: number;
  /** How many words of `watchers` have bits of endpoints of the segment. */
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

  /** The properties of a segment that pass the checks, by the index of their channels. */
  static all(segment: Segment): Map<number, Slots> {
    const found = new Map<number, Slots>();
    segment.channels.forEach((channel, index) => {
      if (isProperty(segment, channel)) found.set(index, new Slots(segment, channel));
    });
    return found;
  }

  /**
   * The property of a channel, or the first of a name; without either, the first of all.
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

  /** The number of the last complete value, loaded once. */
  version(): number {
    return Atomics.load(this.#control, VERSION);
  }

  /**
   * Stores a value as the version behind this one, and returns that. Nobody is woken. The first
   * bytes of `source` are the value; by its words, where it has them.
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
    // [property.next] Behind the last one, slot 0 is the next that is due, and 0 no version.
    const version = (before + 1 | 0) || SLOTS;
    const slot = (version & (SLOTS - 1)) * this.#slotWords;
    // [property.sequence] From here on, nobody takes what stood there.
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
    // [property.publish] Sequentially consistent: the watchers are looked at next.
    Atomics.store(this.#control, VERSION, version);
    return version;
  }

  /**
   * Takes out who watches, and calls back for each endpoint that the segment has. [property.wake]
   */
  wake(ring: (endpoint: number) => void, endpointCount: number): void {
    const control = this.#control;
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
   * Copies the value into the target, whose words those are, if it has any; returns its bytes, or
   * `NONE`. What is in the target when this throws has no meaning.
   *
   * @throws {PropertyError} `property.slot`, `property.busy`.
   * @throws {RangeError} if the target is too small.
   */
  take(target: Uint8Array, targetWords: Int32Array = NO_WORDS): number {
    const words = this.#words;
    let version = Atomics.load(this.#control, VERSION); // [property.version]
    for (let tries = this.#tries; tries > 0; tries--) {
      if (version === 0) {
        this.taken = this.codec = 0;
        return NONE;
      }
      const slot = (version & (SLOTS - 1)) * this.#slotWords;
      // [property.bounds] Each once, into a local: the writer may change them between two loads.
      const size = words[slot + SIZE]! >>> 0;
      const form = words[slot + FORM]!;
      const isSound = words[slot + REST] === 0 &&
        (form === 0
          ? size === 0
          : (form & ~(CODEC_MASK << CODEC_SHIFT)) === PRESENT && size <= this.capacity);
      const isCopied = isSound && size <= target.length;
      const at = (slot << 2) + HEADER;
      if (isCopied) copyInto(this.#bytes, words, at, size, target, targetWords);
      // [property.whole] An exchange and not a load, which the copy might sink behind.
      if (Atomics.or(words, slot + SEQUENCE, 0) === version) {
        if (!isSound) throw fault("a slot that no writer may leave");
        if (!isCopied) {
          throw new RangeError(
            `Cannot get property: ${size} bytes, the target has ${target.length}`,
          );
        }
        this.taken = version;
        this.codec = form >> CODEC_SHIFT & CODEC_MASK;
        return form === 0 ? NONE : size;
      }
      const next = Atomics.load(this.#control, VERSION);
      // The writer exchanges the sequence of a slot when other versions have come.
      if (next === version) throw fault(`version ${version >>> 0} in no slot`); // [property.fault]
      version = next;
    }
    const text = "Cannot get property: it was overwritten each time that it was read";
    throw new PropertyError("property.busy", text);
  }

  /** Asks for a ring when the version changes. [property.watch] */
  watch(endpoint: number): void {
    Atomics.or(this.#control, WATCHERS + (endpoint >> 5), 1 << (endpoint & 31));
  }

  /** Takes that back. [property.unwatch] */
  unwatch(endpoint: number): void {
    Atomics.and(this.#control, WATCHERS + (endpoint >> 5), ~(1 << (endpoint & 31)));
  }
}

/** Up to so many bytes a loop over words takes no longer than `set`, which needs a view. */
const LOOP_SIZE = 2048;
/** The same for bytes. */
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
