/**
 * The end of a property that sets it. See `spec/property.md`.
 *
 * @module
 */

import { type AnyCodec, type Codec, type CodecName, encode, makePayload } from "./codec.ts";
import { NO_BYTES, NO_WORDS, requireCodec, takeBytes } from "./codec.ts";
import { raise } from "./error.ts";
import { CODEC_BYTES } from "./layout.ts";
import { Link } from "./pipe.ts";
import { PropertyError, Slots } from "./property_slots.ts";
import type { Segment } from "./segment.ts";
import { Endpoint, type EndpointOptions } from "./wait_endpoint.ts";

/**
 * Which property to open, and how its values are written. `endpoint` is that of the writer unless
 * it is given.
 *
 * @typeParam T What it is set to.
 *
 * @example
 * ```ts
 * import { type PropertyWriterOptions, SharedProperties } from "@millrace/millrace/property";
 *
 * const options: PropertyWriterOptions<string> = { codec: "text" };
 * using properties = SharedProperties.create<{ title: string }>({
 *   properties: { title: { writer: 0 } },
 *   ...options,
 * });
 * properties.set("title", "not JSON, but text");
 * ```
 */
export interface PropertyWriterOptions<T = unknown> extends EndpointOptions {
  /** The index of its channel, or its name. Default: the first property of the segment. */
  readonly property?: number | string | undefined;
  /**
   * How values are written: `"json"`, which is the default, `"text"`, `"bytes"`, or a codec of the
   * application's. A typed array is written as its bytes, whatever the codec.
   */
  readonly codec?: CodecName | Codec<T> | undefined;
}

/**
 * Sets a property. All methods belong to the thread that attached it, and none waits for anybody.
 *
 * @typeParam T What it is set to.
 *
 * @example
 * ```ts
 * import { propertyChannel, PropertyReader, PropertyWriter } from "@millrace/millrace/property";
 * import { Segment } from "@millrace/millrace";
 *
 * const channels = [propertyChannel({ writer: 0, name: "score" })];
 * const segment = Segment.allocate({ endpoints: 2, channels });
 * using score = PropertyWriter.attach<{ home: number; away: number }>(segment);
 * using board = PropertyReader.attach<{ home: number; away: number }>(segment, { endpoint: 1 });
 * score.set({ home: 0, away: 0 });
 * score.set({ home: 1, away: 0 });
 * console.log(board.get(), board.version); // { home: 1, away: 0 } 2
 * score.set(null);
 * console.log(board.get()); // null
 * ```
 */
export class PropertyWriter<T = unknown> {
  readonly #slots: Slots;
  readonly #link: Link;
  readonly #codec: CodecName | AnyCodec;
  /** The own version. [property.begin] */
  #version: number;
  #isEncoding = false;
  readonly #payload = makePayload();
  readonly #ring: (endpoint: number) => void;
  /** The views of arrays that were set before, so that the next time needs none. */
  readonly #views: WeakMap<ArrayBufferView, View> = new WeakMap();

  /**
   * Joins a property to an attached endpoint, its writer. Use `PropertyWriter.attach`.
   *
   * @internal
   */
  constructor(endpoint: Endpoint, slots: Slots, codec: CodecName | AnyCodec = "json") {
    this.#slots = slots;
    this.#link = new Link(endpoint, slots.writer);
    this.#codec = codec;
    this.#version = slots.version();
    this.#ring = (index) => endpoint.ring(index);
  }

  /**
   * Attaches the endpoint that sets a property.
   *
   * @throws {PropertyError} `property.channel` if there is no such property.
   * @throws {SegmentError} `segment.endpoint` if its endpoint is not vacant.
   */
  static attach<T = unknown>(
    segment: Segment,
    options: PropertyWriterOptions<T> & { readonly endpoint?: number | undefined } = {},
  ): PropertyWriter<T> {
    const { property, codec = "json" } = options;
    requireCodec(codec);
    const slots = Slots.find(segment, property);
    const index = options.endpoint ?? slots.writer;
    Endpoint.requireVacant(segment, index);
    requireWriter(slots, index);
    return new PropertyWriter<T>(Endpoint.attach(segment, index, options), slots, codec);
  }

  /** What it is called; empty where it has no name. */
  get name(): string {
    return this.#slots.name;
  }

  /** Most bytes of a value, encoded. */
  get capacity(): number {
    return this.#slots.capacity;
  }

  /** How often it was set, so far: the version that readers find. 4 follows upon 4,294,967,295. */
  get version(): number {
    return this.#version >>> 0;
  }

  /**
   * Sets the value, and wakes those who wait for it. `null` takes it back: readers then get `null`.
   * A typed array is copied, and nothing is allocated for one that was set before.
   *
   * @throws {PropertyError} `property.size` if it is too large; the value before stays.
   * @throws {TypeError} if the codec cannot carry it.
   * @throws {ClosedError} if this end is closed or was marked failed.
   */
  set(value: T | ArrayBufferView | null): void {
    const link = this.#link;
    if (link.closed || link.endpoint.hasEnded()) raise(link.ownError("set property"));
    if (this.#isEncoding) throw new TypeError("Cannot set property: a value is being encoded");
    if (value === null) return this.#put(NO_BYTES, NO_WORDS, 0, 0, 0);
    if (ArrayBuffer.isView(value)) {
      const { bytes, words } = this.#viewOf(value);
      return this.#put(bytes, words, bytes.length, CODEC_BYTES, 1);
    }
    const payload = this.#payload;
    this.#isEncoding = true; // the application's own code may run, and must not set meanwhile
    try {
      encode(value, this.#codec, payload);
    } finally {
      this.#isEncoding = false;
    }
    const { source, size, code } = payload;
    this.#put(source, NO_WORDS, size, code, 1);
    takeBytes(NO_BYTES, 0, payload);
  }

  /**
   * Closes the endpoint, and wakes those who watch: the last value stays. Of an endpoint that has
   * several properties, all of them. [property.close]
   */
  close(): void {
    const { closed } = this.#link;
    this.#link.close();
    if (!closed) this.wake();
  }

  /** Closes. */
  [Symbol.dispose](): void {
    this.close();
  }

  /**
   * Wakes those who watch.
   *
   * @internal
   */
  wake(): void {
    const { endpoint } = this.#link;
    this.#slots.wake(this.#ring, endpoint.segment.endpointCount);
  }

  #put(source: Uint8Array, words: Int32Array, size: number, codec: number, present: number): void {
    const slots = this.#slots;
    if (size > slots.capacity) { // [property.size]
      const text = `Cannot set property: ${size} bytes are more than ${slots.capacity}`;
      throw new PropertyError("property.size", text);
    }
    this.#version = slots.put(this.#version, source, words, size, codec, present);
    this.wake();
  }

  #viewOf(array: ArrayBufferView): View {
    const known = this.#views.get(array);
    // One over memory that can grow, or was transferred, may have another size by now.
    if (known !== undefined && known.bytes.length === array.byteLength) return known;
    const view = viewOf(array);
    this.#views.set(array, view);
    return view;
  }
}

/** An array of any type, as its bytes, and as words as far as it is aligned to them. */
export interface View {
  readonly bytes: Uint8Array;
  readonly words: Int32Array;
}

/** Makes the views of an array. */
export function viewOf({ buffer, byteOffset, byteLength }: ArrayBufferView): View {
  const bytes = new Uint8Array(buffer, byteOffset, byteLength);
  const isAligned = byteOffset % 4 === 0;
  const words = isAligned ? new Int32Array(buffer, byteOffset, byteLength >> 2) : NO_WORDS;
  return { bytes, words };
}

/** @throws {PropertyError} `property.channel` unless the endpoint may set it. [property.owner] */
export function requireWriter(slots: Slots, endpoint: number): void {
  if (slots.writer === endpoint) return;
  const text = `Cannot set property ${JSON.stringify(slots.name)}: endpoint ${slots.writer} does`;
  throw new PropertyError("property.channel", text);
}
