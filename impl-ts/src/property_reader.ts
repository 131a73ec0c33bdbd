/**
 * The end of a property that gets it, and waits for a change. See `spec/property.md`.
 *
 * @module
 */

import { type AnyCodec, type Codec, type CodecTable, codecTable, copyOut } from "./codec.ts";
import { decodeForeign, decodeJson, decodeText } from "./codec.ts";
import { type MillraceError, PeerClosedError, raise } from "./error.ts";
import { CODEC_BYTES, CODEC_JSON, CODEC_TEXT, ENDPOINT_COUNT_MAX } from "./layout.ts";
import { deadlineOfCall, Link, requireWait, type WaitOptions } from "./pipe.ts";
import { NONE, Slots } from "./property_slots.ts";
import { type View, viewOf } from "./property_writer.ts";
import { isPast, type Segment } from "./segment.ts";
import { requireInteger } from "./segment_geometry.ts";
import { Endpoint, type EndpointOptions } from "./wait_endpoint.ts";
import type { Waitable } from "./wait.ts";

/**
 * Which property to open, from which endpoint, and what reads its values.
 *
 * @typeParam T What is got.
 *
 * @example
 * ```ts
 * import { PropertyReader, type PropertyReaderOptions } from "@millrace/millrace/property";
 * import { propertyChannel } from "@millrace/millrace/property";
 * import { cbor } from "@millrace/millrace/cbor";
 * import { Segment } from "@millrace/millrace";
 *
 * const channels = [propertyChannel({ writer: 0, name: "state" })];
 * const segment = Segment.allocate({ endpoints: 2, channels });
 * const options: PropertyReaderOptions = { endpoint: 1, property: "state", codecs: [cbor] };
 * using reader = PropertyReader.attach(segment, options);
 * console.log(reader.get()); // null
 * ```
 */
export interface PropertyReaderOptions<T = unknown> extends EndpointOptions {
  /** The index of its channel, or its name. Default: the first property of the segment. */
  readonly property?: number | string | undefined;
  /** The endpoint to take, which anybody may be. Default 1. */
  readonly endpoint?: number | undefined;
  /** Codecs of the application that its values may have, beside JSON, texts and bytes. */
  readonly codecs?: readonly Codec<T, never>[] | undefined;
}

/**
 * Gets a property. To get takes nothing away, waits for nobody, and never gives a value that is
 * half one and half another. All methods belong to the thread that attached it.
 *
 * @typeParam T What is got. Nothing checks that the writer sets that.
 *
 * @example
 * ```ts
 * import { propertyChannel, PropertyReader, PropertyWriter } from "@millrace/millrace/property";
 * import { Segment } from "@millrace/millrace";
 *
 * const channels = [propertyChannel({ writer: 0, name: "level", size: 8 * 4 })];
 * const segment = Segment.allocate({ endpoints: 2, channels });
 * using writer = PropertyWriter.attach(segment);
 * using reader = PropertyReader.attach(segment, { endpoint: 1 }); // usually in another thread
 * writer.set(Float32Array.of(0.25, 0.75));
 * const levels = new Float32Array(8);
 * console.log(reader.getInto(levels), levels[1]); // 8 0.75
 * ```
 */
export class PropertyReader<T = unknown> {
  readonly #slots: Slots;
  readonly #link: Link;
  readonly #codecs: CodecTable;
  readonly #change: Change;
  /** Where values are copied before they are decoded; made when the first one is. */
  #copy: View | undefined;
  readonly #views: WeakMap<ArrayBufferView, View> = new WeakMap();

  /**
   * Joins a property to an attached endpoint. Use `PropertyReader.attach`.
   *
   * @internal
   */
  constructor(endpoint: Endpoint, slots: Slots, codecs: CodecTable) {
    this.#slots = slots;
    this.#link = new Link(endpoint, slots.writer);
    this.#codecs = codecs;
    this.#change = new Change(endpoint, slots);
  }

  /**
   * Attaches an endpoint that gets a property.
   *
   * @throws {PropertyError} `property.channel` if there is no such property.
   * @throws {SegmentError} `segment.endpoint` if the endpoint does not exist, or is not vacant.
   */
  static attach<T = unknown>(
    segment: Segment,
    options: PropertyReaderOptions<T> = {},
  ): PropertyReader<T> {
    const { property, endpoint = 1, codecs } = options;
    requireInteger("endpoint", endpoint, 0, ENDPOINT_COUNT_MAX - 1);
    const table = codecTable("json", codecs as readonly AnyCodec[] | undefined);
    Endpoint.requireVacant(segment, endpoint);
    const slots = Slots.find(segment, property);
    return new PropertyReader<T>(Endpoint.attach(segment, endpoint, options), slots, table);
  }

  /** What it is called; empty where it has no name. */
  get name(): string {
    return this.#slots.name;
  }

  /** Most bytes of a value, encoded. */
  get capacity(): number {
    return this.#slots.capacity;
  }

  /**
   * How often it was set: 0 where it never was, and 4 behind 4,294,967,295. A look at it costs a
   * few nanoseconds, and says whether to get is worth while.
   */
  get version(): number {
    return this.#slots.version() >>> 0;
  }

  /** The version of the value that was got last; 0 before the first. */
  get seen(): number {
    return this.#slots.taken >>> 0;
  }

  /** The codec of the value that was got last, as a number. */
  get codec(): number {
    return this.#slots.codec;
  }

  /**
   * Gets the value: `null` where it was never set, or taken back.
   *
   * @throws {PropertyError} `property.slot` if the writer has stored what no writer may;
   * `property.busy` if it set values faster than they could be read, a thousand times in a row.
   * @throws {MessageError} `message.text`, `message.json` or `message.codec` if the value cannot be
   * decoded; the next one that is set may be.
   * @throws {ClosedError} if this end is closed or was marked failed.
   */
  get(): T | null {
    this.#requireOpen();
    const { bytes, words } = this.#copy ??= viewOf(new Uint8Array(this.#slots.capacity));
    const size = this.#slots.take(bytes, words);
    return size === NONE ? null : this.#decode(bytes, size) as T;
  }

  /**
   * Copies the bytes of the value into an array of any type, and returns how many there are;
   * `null` where there is no value. Nothing is allocated for an array that was given before, and
   * it runs where there is no `TextDecoder`, in a worklet for audio for one. What is in the array
   * when this throws has no meaning.
   *
   * @throws {RangeError} if the array is too small: `capacity` bytes are always enough.
   * @throws {PropertyError} `property.slot` or `property.busy`, as `get` does.
   * @throws {ClosedError} if this end is closed or was marked failed.
   */
  getInto(array: ArrayBufferView): number | null {
    this.#requireOpen();
    let view = this.#views.get(array);
    if (view === undefined || view.bytes.length !== array.byteLength) {
      this.#views.set(array, view = viewOf(array));
    }
    const size = this.#slots.take(view.bytes, view.words);
    return size === NONE ? null : size;
  }

  /**
   * Blocks until there is another version than the one that was got last; false at the timeout.
   *
   * @throws {PeerClosedError} if there is none, and the writer has closed.
   * @throws {PeerFailedError} if there is none, and the writer is marked failed.
   * @throws {ClosedError} if this end is closed or was marked failed.
   * @throws {ForbiddenError} on a thread that must not block, after a few looks.
   */
  wait(options: WaitOptions = {}): boolean {
    const deadline = deadlineOfCall(options);
    const { endpoint } = this.#link;
    for (let waits = 0; !this.#hasChanged(); waits++) {
      if (isPast(deadline)) return false;
      endpoint.wait(this.#change, deadline, waits);
    }
    return true;
  }

  /** `wait` without blocking. A signal that aborts ends it with its reason. */
  async waitAsync(options: WaitOptions = {}): Promise<boolean> {
    requireWait(options);
    const deadline = deadlineOfCall(options);
    while (!this.#hasChanged()) {
      if (isPast(deadline)) return false;
      await this.#link.endpoint.waitAsync(this.#change, deadline, options.signal);
    }
    return true;
  }

  /**
   * Gets the value whenever it has changed: the one that is there first, if it was ever set, and
   * then, of several that were set meanwhile, the last. Ends when the writer or this end closes.
   *
   * Throws what `get` and `waitAsync` throw otherwise, and the reason of a signal that aborts.
   *
   * @example
   * ```ts
   * import { SharedProperties } from "@millrace/millrace/property";
   *
   * using here = SharedProperties.create<{ count: number }>({
   *   properties: { count: { writer: 0 } },
   * });
   * using there = SharedProperties.attach<{ count: number }>(here.memory); // in another thread
   * here.set("count", 1);
   * here.set("count", 2);
   * for await (const count of there.reader("count").watch()) {
   *   console.log(count); // 2, then 3
   *   if (count === 3) break;
   *   here.set("count", 3);
   * }
   * ```
   */
  async *watch(options: Pick<WaitOptions, "signal"> = {}): AsyncGenerator<T | null, void> {
    for (;;) {
      try {
        await this.waitAsync(options);
      } catch (error) {
        const { code } = error as Partial<MillraceError>;
        if (error instanceof PeerClosedError || code === "pipe.closed") return;
        throw error;
      }
      yield this.get();
    }
  }

  /** Closes the endpoint, and every wait of it ends. */
  close(): void {
    this.#link.close();
  }

  /** Closes. */
  [Symbol.dispose](): void {
    this.close();
  }

  /**
   * What a wait for a change waits for.
   *
   * @internal
   */
  get change(): Waitable {
    return this.#change;
  }

  /**
   * Why nothing can change any more, or undefined: it has changed, or may. [property.gone]
   *
   * @internal
   */
  get gone(): MillraceError | undefined {
    const gone = this.#link.peerError("wait for property");
    // Behind the state: what was set before it is still to be got.
    return gone !== undefined && this.#change.look() ? undefined : gone;
  }

  #requireOpen(): void {
    const link = this.#link;
    if (link.closed || link.endpoint.hasEnded()) raise(link.ownError("get property"));
  }

  /** @throws {MillraceError} if nothing can change any more. */
  #hasChanged(): boolean {
    this.#requireOpen();
    raise(this.gone);
    return this.#change.look();
  }

  #decode(copy: Uint8Array, size: number): unknown {
    switch (this.#slots.codec) {
      case CODEC_JSON:
        return decodeJson(copy.subarray(0, size));
      case CODEC_TEXT:
        return decodeText(copy.subarray(0, size));
      case CODEC_BYTES:
        return copyOut(copy, 0, size);
      default:
        return decodeForeign(copyOut(copy, 0, size), this.#slots.codec, this.#codecs);
    }
  }
}

/** What ends a wait for another version than the last that was got. */
class Change implements Waitable {
  readonly peer: number;
  readonly #endpoint: Endpoint;
  readonly #slots: Slots;
  /** Waits that need the bit. */
  #arms = 0;

  constructor(endpoint: Endpoint, slots: Slots) {
    this.#endpoint = endpoint;
    this.#slots = slots;
    this.peer = slots.writer;
  }

  /** [property.changed] */
  look(): boolean {
    return this.#slots.version() !== this.#slots.taken;
  }

  lookAround(): boolean {
    return this.#endpoint.hasChanged(this.peer);
  }

  arm(): void {
    this.#arms++;
    this.#slots.watch(this.#endpoint.index);
  }

  /** The writer takes the bit out when it rings. */
  stayArmed(): void {
    this.#slots.watch(this.#endpoint.index);
  }

  disarm(): void {
    if (--this.#arms === 0) this.#slots.unwatch(this.#endpoint.index);
  }
}
