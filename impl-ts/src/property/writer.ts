/**
 * The end of a property that sets the value. See `spec/property.md`.
 *
 * @module
 */

import {
  type AnyCodec,
  type Codec,
  type CodecName,
  NO_BYTES,
  requireCodec,
} from "../codec/codec.ts";
import { encodePayload, makePayload, NO_WORDS, takeBytes } from "../codec/payload.ts";
import { raise, requireOptions } from "../error.ts";
import { layout } from "../memory/layout.ts";
import { closeLink, Link } from "../pipe/link.ts";
import { ownError } from "../pipe/tend.ts";
import { PropertyError, Slots } from "./slots.ts";
import { requireMemory } from "../memory/realm.ts";
import type { Segment } from "../memory/segment.ts";
import {
  attachEndpoint,
  type Endpoint,
  type EndpointOptions,
  requireVacant,
} from "../wait/endpoint.ts";
import { hasLeft, ring } from "../wait/state.ts";

/**
 * Which property to open, and how its values are written. The endpoint is that of the property's
 * writer, unless `endpoint` is given.
 *
 * @typeParam T The type of the values.
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
   * application. A typed array is written as its bytes, whatever the codec.
   */
  readonly codec?: CodecName | Codec<T> | undefined;
}

/**
 * Sets a property. All methods belong to the thread that attached the writer. None of them waits
 * for another thread.
 *
 * @typeParam T The type of the values.
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
  /** The name, which a bundler would shorten. @internal */
  static readonly name: string = "PropertyWriter";

  readonly #slots: Slots;
  readonly #link: Link;
  readonly #codec: CodecName | AnyCodec;
  /** The last version that this writer has set. [property.begin] */
  #version: number;
  #isEncoding = false;
  readonly #payload = makePayload();
  readonly #ring: (endpoint: number) => void;
  /** The views of arrays that were set before, so that setting them again creates no views. */
  readonly #views: WeakMap<ArrayBufferView, View> = new WeakMap();

  /**
   * Opens a property on its writer's endpoint, which is attached already. Use
   * `PropertyWriter.attach`.
   *
   * @internal
   */
  constructor(endpoint: Endpoint, slots: Slots, codec: CodecName | AnyCodec = "json") {
    this.#slots = slots;
    this.#link = new Link(endpoint, slots.writer);
    this.#codec = codec;
    this.#version = slots.version();
    this.#ring = (index) => ring(endpoint, index);
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
    const { property, codec = "json" } = requireOptions(options);
    requireCodec(codec);
    const slots = Slots.find(segment, property);
    const index = options.endpoint ?? slots.writer;
    requireVacant(segment, index);
    requireWriter(slots, index);
    return new PropertyWriter<T>(attachEndpoint(segment, index, options), slots, codec);
  }

  /** The name of the property; empty if it has none. */
  get name(): string {
    return this.#slots.name;
  }

  /** The largest size of an encoded value, in bytes. */
  get capacity(): number {
    return this.#slots.capacity;
  }

  /** How often it was set: the version that readers find. 4,294,967,295 is followed by 4. */
  get version(): number {
    return this.#version >>> 0;
  }

  /**
   * Sets the value, and wakes the threads that wait for it. `null` takes the value back: readers
   * then get `null`. A typed array is copied; an array that was set before costs no allocation.
   *
   * @throws {PropertyError} `property.size` if the value is too large; the value before it stays.
   * @throws {TypeError} if the codec cannot encode the value.
   * @throws {ClosedError} if this end is closed or was marked failed.
   */
  set(value: T | ArrayBufferView | null): void {
    const link = this.#link;
    if (link.isClosed || hasLeft(link.endpoint)) raise(ownError(link, "set property"));
    if (this.#isEncoding) throw new TypeError("Cannot set property: a value is being encoded");
    if (value === null) return this.#put(NO_BYTES, NO_WORDS, 0, 0, 0);
    if (ArrayBuffer.isView(value)) {
      requireMemory(value as Uint8Array);
      const { bytes, words } = this.#viewOf(value);
      return this.#put(bytes, words, bytes.length, layout.CODEC_BYTES, 1);
    }
    const payload = this.#payload;
    this.#isEncoding = true; // application code may run in the encoder, and must not set meanwhile
    try {
      encodePayload(value, this.#codec, payload);
    } finally {
      this.#isEncoding = false;
    }
    const { source, size, code } = payload;
    this.#put(source, NO_WORDS, size, code, 1);
    takeBytes(NO_BYTES, 0, payload);
  }

  /**
   * Closes the endpoint, and wakes the threads that wait for the property. The last value stays. If
   * the endpoint sets several properties, this closes all of them. [property.close]
   */
  close(): void {
    const { isClosed: closed } = this.#link;
    closeLink(this.#link);
    if (!closed) this.wake();
  }

  /** Closes the endpoint; see `close`. */
  [Symbol.dispose](): void {
    this.close();
  }

  /**
   * Rings the endpoints that wait for this property.
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
    // An array whose memory has grown or was transferred may have another size now.
    if (known !== undefined && known.bytes.length === array.byteLength) return known;
    const view = viewOf(array);
    this.#views.set(array, view);
    return view;
  }
}

/**
 * The memory of an array of any type as bytes, and as words; no words if it is not aligned to 4.
 */
export interface View {
  readonly bytes: Uint8Array;
  readonly words: Int32Array;
}

/** Makes the views of an array's memory. */
export function viewOf({ buffer, byteOffset, byteLength }: ArrayBufferView): View {
  const bytes = new Uint8Array(buffer, byteOffset, byteLength);
  const isAligned = byteOffset % 4 === 0;
  const words = isAligned ? new Int32Array(buffer, byteOffset, byteLength >> 2) : NO_WORDS;
  return { bytes, words };
}

/**
 * @throws {PropertyError} `property.channel` unless the endpoint may set the property.
 * [property.owner]
 */
export function requireWriter(slots: Slots, endpoint: number): void {
  if (slots.writer === endpoint) return;
  const text = `Cannot set property ${JSON.stringify(slots.name)}: endpoint ${slots.writer} does`;
  throw new PropertyError("property.channel", text);
}
