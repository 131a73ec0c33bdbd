/**
 * The end of a property that gets the value and waits for changes. See `spec/property.md`.
 *
 * @module
 */

import {
  type AnyCodec,
  type Codec,
  type CodecTable,
  codecTable,
  copyOut,
  decodeForeign,
  decodeJson,
  decodeText,
} from "../codec/codec.ts";
import { type MillraceError, PeerClosedError, raise, requireOptions } from "../error.ts";
import { layout } from "../memory/layout.ts";
import { closeLink, Link } from "../pipe/link.ts";
import { deadlineOfCall, requireWait, type WaitOptions } from "../pipe/options.ts";
import { ownError, peerError } from "../pipe/tend.ts";
import { NONE, Slots } from "./slots.ts";
import { type View, viewOf } from "./writer.ts";
import { isPast, type Segment } from "../memory/segment.ts";
import { requireInteger } from "../memory/plan.ts";
import {
  attachEndpoint,
  type Endpoint,
  type EndpointOptions,
  requireVacant,
} from "../wait/endpoint.ts";
import { hasLeft } from "../wait/state.ts";
import { type Waitable, waitFor, waitForAsync } from "../wait/waitable.ts";

/**
 * Which property to open, through which endpoint, and which codecs read its values.
 *
 * @typeParam T The type of the values.
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
  /** The endpoint to take. Any endpoint of the segment may read. Default 1. */
  readonly endpoint?: number | undefined;
  /** Codecs of the application in which values may be written, beside JSON, text and bytes. */
  readonly codecs?: readonly Codec<T, never>[] | undefined;
}

/**
 * Gets a property. To get a value does not remove it, waits for no other thread, and never returns
 * a value that is partly old and partly new. All methods belong to the thread that attached the
 * reader.
 *
 * @typeParam T The type of the values. Nothing checks that the writer keeps to it.
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
  /** The name, which a bundler would shorten. @internal */
  static readonly name: string = "PropertyReader";

  readonly #slots: Slots;
  readonly #link: Link;
  readonly #codecs: CodecTable;
  readonly #change: Change;
  /**
   * The memory into which values are copied before they are decoded; allocated at the first `get`.
   */
  #copy: View | undefined;
  readonly #views: WeakMap<ArrayBufferView, View> = new WeakMap();

  /**
   * Opens a property on an endpoint that is attached already. Use `PropertyReader.attach`.
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
   * Attaches an endpoint, and opens a property to get it.
   *
   * @throws {PropertyError} `property.channel` if there is no such property.
   * @throws {SegmentError} `segment.endpoint` if the endpoint does not exist, or is not vacant.
   */
  static attach<T = unknown>(
    segment: Segment,
    options: PropertyReaderOptions<T> = {},
  ): PropertyReader<T> {
    const { property, endpoint = 1, codecs } = requireOptions(options);
    requireInteger("endpoint", endpoint, 0, layout.ENDPOINT_COUNT_MAX - 1);
    const table = codecTable("json", codecs as readonly AnyCodec[] | undefined);
    requireVacant(segment, endpoint);
    const slots = Slots.find(segment, property);
    return new PropertyReader<T>(attachEndpoint(segment, endpoint, options), slots, table);
  }

  /** The name of the property; empty if it has none. */
  get name(): string {
    return this.#slots.name;
  }

  /** The largest size of an encoded value, in bytes. */
  get capacity(): number {
    return this.#slots.capacity;
  }

  /**
   * How often the property was set: 0 if it never was; 4,294,967,295 is followed by 4. Reading the
   * version costs a few nanoseconds, and tells whether it is worth while to get the value.
   */
  get version(): number {
    return this.#slots.version() >>> 0;
  }

  /** The version of the value that this reader got last; 0 before the first. */
  get seen(): number {
    return this.#slots.seen >>> 0;
  }

  /** The number of the codec in which the value that this reader got last was written. */
  get codec(): number {
    return this.#slots.codec;
  }

  /**
   * Gets the value: `null` if it was never set, or was taken back.
   *
   * @throws {PropertyError} `property.slot` if the writer has stored something that no writer may
   * store; `property.busy` if, up to a thousand times in a row, the writer overwrote the value
   * while it was being read.
   * @throws {MessageError} `message.text`, `message.json` or `message.codec` if the value cannot be
   * decoded; the next value that is set may be decodable.
   * @throws {ClosedError} if this end is closed or was marked failed.
   */
  get(): T | null {
    this.#requireOpen();
    const { bytes, words } = this.#copy ??= viewOf(new Uint8Array(this.#slots.capacity));
    const size = this.#slots.read(bytes, words);
    return size === NONE ? null : this.#decode(bytes, size) as T;
  }

  /**
   * Copies the bytes of the value into an array of any type, and returns their number; `null` if
   * there is no value. It allocates nothing for an array that it was given before. It also works
   * where there is no `TextDecoder`, for example in an audio worklet. If it throws, the contents of
   * the array have no meaning.
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
    const size = this.#slots.read(view.bytes, view.words);
    return size === NONE ? null : size;
  }

  /**
   * Blocks until the version is not the one that this reader got last. Returns false at the
   * timeout.
   *
   * @throws {PeerClosedError} if there is no other version, and the writer has closed.
   * @throws {PeerFailedError} if there is no other version, and the writer is marked failed.
   * @throws {ClosedError} if this end is closed or was marked failed.
   * @throws {ForbiddenError} on a thread that must not block, after a few looks.
   */
  wait(options: WaitOptions = {}): boolean {
    const deadline = deadlineOfCall(options);
    const { endpoint } = this.#link;
    for (let waits = 0; !this.#hasChanged(); waits++) {
      if (isPast(deadline)) return false;
      waitFor(endpoint, this.#change, deadline, waits);
    }
    return true;
  }

  /** Waits as `wait` does, without blocking. If the signal aborts, it rejects with its reason. */
  async waitAsync(options: WaitOptions = {}): Promise<boolean> {
    requireWait(options);
    const deadline = deadlineOfCall(options);
    while (!this.#hasChanged()) {
      if (isPast(deadline)) return false;
      await waitForAsync(this.#link.endpoint, this.#change, deadline, options.signal);
    }
    return true;
  }

  /**
   * Yields the value each time it has changed. It begins with the present value, if the property
   * was ever set; of several values that were set meanwhile it yields the last one. It ends when
   * the writer or this end closes.
   *
   * It throws what `get` and `waitAsync` throw otherwise, and the reason of a signal that aborts.
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

  /** Closes the endpoint, and ends its waits. */
  close(): void {
    closeLink(this.#link);
  }

  /** Closes the endpoint; see `close`. */
  [Symbol.dispose](): void {
    this.close();
  }

  /**
   * The waitable for a change of this property.
   *
   * @internal
   */
  get change(): Waitable {
    return this.#change;
  }

  /**
   * The error that says why the property can change no more. Undefined if its writer is not gone,
   * or if there is a change that this reader has not got yet. [property.gone]
   *
   * @internal
   */
  get gone(): MillraceError | undefined {
    const gone = peerError(this.#link, "wait for property");
    // Loads the version after the state: a value that was set before the writer ended can still be
    // got.
    return gone !== undefined && this.#change.look() ? undefined : gone;
  }

  #requireOpen(): void {
    const link = this.#link;
    if (link.isClosed || hasLeft(link.endpoint)) raise(ownError(link, "get property"));
  }

  /** Whether there is a new version. @throws {MillraceError} if the property can change no more. */
  #hasChanged(): boolean {
    this.#requireOpen();
    raise(this.gone);
    return this.#change.look();
  }

  #decode(copy: Uint8Array, size: number): unknown {
    switch (this.#slots.codec) {
      case layout.CODEC_JSON:
        return decodeJson(copy.subarray(0, size));
      case layout.CODEC_TEXT:
        return decodeText(copy.subarray(0, size));
      case layout.CODEC_BYTES:
        return copyOut(copy, 0, size);
      default:
        return decodeForeign(copyOut(copy, 0, size), this.#slots.codec, this.#codecs);
    }
  }
}

/** Waits for a version other than the one that the reader got last. */
class Change implements Waitable {
  readonly peer: number;
  readonly #endpoint: Endpoint;
  readonly #slots: Slots;
  /** The number of waits that need this endpoint's bit in `watchers`. */
  #arms = 0;

  constructor(endpoint: Endpoint, slots: Slots) {
    this.#endpoint = endpoint;
    this.#slots = slots;
    this.peer = slots.writer;
  }

  /** Whether there is another version. [property.changed] */
  look(): boolean {
    return this.#slots.version() !== this.#slots.seen;
  }

  arm(): void {
    this.#arms++;
    this.#slots.watch(this.#endpoint.index);
  }

  /** Sets the bit again, because the writer takes it out when it rings. */
  stayArmed(): void {
    this.#slots.watch(this.#endpoint.index);
  }

  disarm(): void {
    if (--this.#arms === 0) this.#slots.unwatch(this.#endpoint.index);
  }
}
