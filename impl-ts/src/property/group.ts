/**
 * Several properties in one segment, found by their names. See `spec/property.md`.
 *
 * @module
 */

import {
  type AnyCodec,
  type Codec,
  type CodecName,
  codecTable,
  requireCodec,
} from "../codec/codec.ts";
import { type MillraceError, PeerClosedError, raise, requireOptions } from "../error.ts";
import { layout } from "../memory/layout.ts";
import { closeLink, Link } from "../pipe/link.ts";
import { deadlineOfCall, requireWait, type WaitOptions } from "../pipe/options.ts";
import { ownError } from "../pipe/tend.ts";
import { propertyChannel, type PropertyPlan } from "./name.ts";
import { PropertyReader } from "./reader.ts";
import { PropertyError, Slots } from "./slots.ts";
import { PropertyWriter, requireWriter } from "./writer.ts";
import { isPast, type Memory, Segment } from "../memory/segment.ts";
import { requireInteger } from "../memory/plan.ts";
import { Several, type Waitable, waitFor, waitForAsync } from "../wait/waitable.ts";
import { attachEndpoint, type EndpointOptions } from "../wait/endpoint.ts";
import { hasLeft } from "../wait/state.ts";

/**
 * How one end of a group of properties writes and reads values, and how it waits.
 *
 * @example
 * ```ts
 * import { SharedProperties, type SharedPropertiesOptions } from "@millrace/millrace/property";
 * import { cbor } from "@millrace/millrace/cbor";
 *
 * const options: SharedPropertiesOptions = { codec: cbor, codecs: [cbor] };
 * const properties = { seen: { writer: 0 } };
 * using here = SharedProperties.create<{ seen: Set<string> }>({ properties, ...options });
 * using there = SharedProperties.attach<{ seen: Set<string> }>(here.memory, options);
 * here.set("seen", new Set(["a", "b"]));
 * console.log(there.get("seen")?.has("b")); // true
 * ```
 */
export interface SharedPropertiesOptions extends EndpointOptions {
  /** The endpoint of this thread. Default: 0 for `create`, 1 for `attach`. */
  readonly endpoint?: number | undefined;
  /** How this end writes values. Default `"json"`; typed arrays are written as their bytes. */
  readonly codec?: CodecName | Codec<unknown, never> | undefined;
  /** Codecs of the application in which the values that this end reads may be written. */
  readonly codecs?: readonly Codec<unknown, never>[] | undefined;
  /** Milliseconds to wait for another thread to finish formatting the memory. Default 5,000. */
  readonly timeout?: number | undefined;
}

/**
 * The contents of a group of properties: their names, and for each the endpoint that sets it.
 *
 * @typeParam T The type of each property.
 *
 * @example
 * ```ts
 * import { type SharedPropertiesPlan, SharedProperties } from "@millrace/millrace/property";
 *
 * interface Game {
 *   keys: string[];
 *   frame: Uint8Array;
 * }
 * const plan: SharedPropertiesPlan<Game> = {
 *   endpoints: 3, // a third thread only looks on
 *   properties: { keys: { writer: 0 }, frame: { writer: 1, size: 64 * 1024 } },
 * };
 * using properties = SharedProperties.create<Game>(plan);
 * console.log(properties.names); // [ "keys", "frame" ]
 * ```
 */
export interface SharedPropertiesPlan<T extends object = Record<string, unknown>> {
  /** The properties, by their names. */
  readonly properties: { readonly [K in keyof T & string]: Omit<PropertyPlan, "name"> };
  /** The number of endpoints. Default: two, or as many as the highest index of a writer needs. */
  readonly endpoints?: number | undefined;
  /** Shared memory to create the group in. Default: new memory of the size that is needed. */
  readonly memory?: Memory | undefined;
}

/**
 * A group of named properties. Each is set by one thread and read by all. One thread creates the
 * group, and the others attach to its `memory`, each with an endpoint of its own.
 *
 * @typeParam T The type of each property. Nothing checks that the writers keep to it.
 *
 * @example
 * ```ts
 * import { SharedProperties } from "@millrace/millrace/property";
 *
 * type Synth = { cutoff: number; level: number };
 * using page = SharedProperties.create<Synth>({
 *   properties: { cutoff: { writer: 0 }, level: { writer: 1 } },
 * });
 * using worker = SharedProperties.attach<Synth>(page.memory); // usually in another thread
 * page.set("cutoff", 880);
 * worker.set("level", 0.5);
 * console.log(worker.get("cutoff"), page.get("level")); // 880 0.5
 * ```
 */
export class SharedProperties<T extends object = Record<string, unknown>> {
  /** The name, which a bundler would shorten. @internal */
  static readonly name: string = "SharedProperties";

  readonly #segment: Segment;
  readonly #link: Link;
  readonly #options: SharedPropertiesOptions;
  readonly #slots: Map<string, Slots> = new Map();
  readonly #readers: Map<string, PropertyReader> = new Map();
  readonly #writers: Map<string, PropertyWriter> = new Map();

  private constructor(segment: Segment, index: number, options: SharedPropertiesOptions) {
    const { codec = "json", codecs } = options;
    requireInteger("endpoint", index, 0, layout.ENDPOINT_COUNT_MAX - 1);
    requireCodec(codec);
    codecTable("json", codecs as readonly AnyCodec[] | undefined);
    // If two properties have the same name, it means the first. [property.find]
    for (const slots of Slots.all(segment).values()) {
      if (slots.name !== "" && !this.#slots.has(slots.name)) this.#slots.set(slots.name, slots);
    }
    this.#segment = segment;
    this.#options = options;
    this.#link = new Link(attachEndpoint(segment, index, options), index);
  }

  /**
   * Creates a group, and takes endpoint 0 of it unless another is given. If `memory` is given,
   * several threads may create the group in it with the same plan; the first one formats the
   * memory.
   *
   * @throws {RangeError} if a writer, a size or a name is out of range.
   * @throws {SegmentError} as `Segment.create` does; `segment.endpoint` if the endpoint is not
   * vacant.
   */
  static create<T extends object = Record<string, unknown>>(
    options: SharedPropertiesPlan<T> & SharedPropertiesOptions,
  ): SharedProperties<T> {
    const { memory, properties, endpoint = 0, timeout } = requireOptions(options);
    const plans = Object.entries<Omit<PropertyPlan, "name">>(properties);
    const channels = plans.map(([name, plan]) => propertyChannel({ ...plan, name }));
    const least = Math.max(endpoint, ...channels.map(({ writer }) => writer)) + 1;
    const geometry = { endpoints: options.endpoints ?? Math.max(2, least), channels };
    const segment = memory === undefined
      ? Segment.allocate(geometry)
      : Segment.create(memory, geometry, { timeout });
    return new SharedProperties<T>(segment, endpoint, options);
  }

  /**
   * Joins a group that another thread has created, with endpoint 1 unless another is given.
   *
   * @throws {SegmentError} as `Segment.attach` does; `segment.endpoint` if the endpoint is not
   * vacant.
   */
  static attach<T extends object = Record<string, unknown>>(
    memory: Memory,
    options: SharedPropertiesOptions = {},
  ): SharedProperties<T> {
    const segment = Segment.attach(memory, { timeout: requireOptions(options).timeout });
    return new SharedProperties<T>(segment, options.endpoint ?? 1, options);
  }

  /** The memory of the group: post it to the other threads. */
  get memory(): Memory {
    return this.#segment.memory;
  }

  /** The segment of the group. */
  get segment(): Segment {
    return this.#segment;
  }

  /** The index of this thread's endpoint. */
  get endpoint(): number {
    return this.#link.endpoint.index;
  }

  /** The names of all properties, in the order of their creation. */
  get names(): (keyof T & string)[] {
    return [...this.#slots.keys()] as (keyof T & string)[];
  }

  /** Gets a value: `null` if it was never set, or was taken back. See `PropertyReader.get`. */
  get<K extends keyof T & string>(name: K): T[K] | null {
    return this.reader(name).get();
  }

  /** Copies the bytes of a value into an array. See `PropertyReader.getInto`. */
  getInto(name: keyof T & string, array: ArrayBufferView): number | null {
    return this.reader(name).getInto(array);
  }

  /**
   * Sets a value; `null` takes the value back. See `PropertyWriter.set`.
   *
   * @throws {PropertyError} `property.channel` if another endpoint sets this property;
   * `property.size` if the value is too large.
   */
  set<K extends keyof T & string>(name: K, value: T[K] | ArrayBufferView | null): void {
    this.writer(name).set(value);
  }

  /** How often a property was set: 0 if it never was. See `PropertyReader.version`. */
  version(name: keyof T & string): number {
    return this.reader(name).version;
  }

  /**
   * Returns the reader of one property, always the same object. Use it to get the property often,
   * and for its `watch`.
   *
   * @throws {PropertyError} `property.channel` if there is no such property.
   */
  reader<K extends keyof T & string>(name: K): PropertyReader<T[K]> {
    let reader = this.#readers.get(name);
    if (reader === undefined) {
      const codecs = codecTable("json", this.#options.codecs as readonly AnyCodec[] | undefined);
      reader = new PropertyReader(this.#link.endpoint, this.#find(name), codecs);
      this.#readers.set(name, reader);
    }
    return reader as PropertyReader<T[K]>;
  }

  /**
   * Returns the writer of one property, always the same object.
   *
   * @throws {PropertyError} `property.channel` if there is no such property, or another endpoint
   * sets it.
   */
  writer<K extends keyof T & string>(name: K): PropertyWriter<T[K]> {
    let writer = this.#writers.get(name);
    if (writer === undefined) {
      const slots = this.#find(name);
      requireWriter(slots, this.endpoint);
      writer = new PropertyWriter(this.#link.endpoint, slots, this.#options.codec);
      this.#writers.set(name, writer);
    }
    return writer as PropertyWriter<T[K]>;
  }

  /**
   * Blocks until one of the listed properties has changed since this end got it last, and returns
   * its name; `undefined` at the timeout. If several have changed, it returns the first of the
   * list. Without a list it waits for all properties of the group.
   *
   * @throws {PeerClosedError | PeerFailedError} if nothing has changed and the writers of all these
   * properties are gone.
   * @throws {ClosedError} if this end is closed or was marked failed.
   * @throws {ForbiddenError} on a thread that must not block, after a few looks.
   *
   * @example
   * ```ts
   * import { SharedProperties } from "@millrace/millrace/property";
   *
   * type State = { a: number; b: number };
   * const properties = { a: { writer: 0 }, b: { writer: 0 } };
   * using here = SharedProperties.create<State>({ properties });
   * using there = SharedProperties.attach<State>(here.memory); // usually in another thread
   * here.set("b", 1);
   * console.log(there.wait(), there.get("b")); // b 1
   * console.log(there.wait(["a", "b"], { timeout: 10 })); // undefined
   * ```
   */
  wait<K extends keyof T & string>(
    names?: readonly K[],
    options: WaitOptions = {},
  ): K | undefined {
    const readers = this.#readersOf(names);
    const deadline = deadlineOfCall(options);
    for (let waits = 0;; waits++) {
      const name = this.#changed(readers);
      if (name !== undefined || isPast(deadline)) return name as K | undefined;
      waitFor(this.#link.endpoint, this.#waitableOf(readers), deadline, waits);
    }
  }

  /** Waits as `wait` does, without blocking. If the signal aborts, it rejects with its reason. */
  async waitAsync<K extends keyof T & string>(
    names?: readonly K[],
    options: WaitOptions = {},
  ): Promise<K | undefined> {
    requireWait(options);
    const readers = this.#readersOf(names);
    const deadline = deadlineOfCall(options);
    for (;;) {
      const name = this.#changed(readers);
      if (name !== undefined || isPast(deadline)) return name as K | undefined;
      const what = this.#waitableOf(readers);
      await waitForAsync(this.#link.endpoint, what, deadline, options.signal);
    }
  }

  /**
   * Yields each change as a pair of name and value. It begins with the properties that were set
   * before; of several values that were set meanwhile it yields the last one. It ends when this end
   * is closed, or when the writers of all the properties have closed.
   *
   * It throws what `get` and `waitAsync` throw otherwise, and the reason of a signal that aborts.
   *
   * @example
   * ```ts
   * import { SharedProperties } from "@millrace/millrace/property";
   *
   * type State = { x: number; y: number };
   * const properties = { x: { writer: 0 }, y: { writer: 0 } };
   * const here = SharedProperties.create<State>({ properties });
   * using there = SharedProperties.attach<State>(here.memory); // usually in another thread
   * here.set("y", 2);
   * here.set("x", 1);
   * for await (const [name, value] of there.watch()) {
   *   console.log(name, value); // x 1, then y 2
   *   if (name === "y") here.close();
   * }
   * ```
   */
  async *watch<K extends keyof T & string>(
    names?: readonly K[],
    options: Pick<WaitOptions, "signal"> = {},
  ): AsyncGenerator<[K, T[K] | null], void> {
    for (;;) {
      let name: K | undefined;
      try {
        name = await this.waitAsync(names, options);
      } catch (error) {
        const { code } = error as Partial<MillraceError>;
        if (error instanceof PeerClosedError || code === "pipe.closed") return;
        throw error;
      }
      if (name !== undefined) yield [name, this.get(name)];
    }
  }

  /** Closes this thread's endpoint, and wakes all waits for its properties. Values stay. */
  close(): void {
    if (this.#link.isClosed) return;
    closeLink(this.#link);
    if (!this.#link.endpoint.words.length) return;
    for (const [name, slots] of this.#slots) {
      if (slots.writer === this.endpoint) this.writer(name as keyof T & string).wake();
    }
  }

  /** Closes the endpoint; see `close`. */
  [Symbol.dispose](): void {
    this.close();
  }

  #find(name: string): Slots {
    const slots = this.#slots.get(name);
    if (slots !== undefined) return slots;
    const text = `Cannot open property ${JSON.stringify(name)}: the group does not have it`;
    throw new PropertyError("property.channel", text);
  }

  #readersOf(names: readonly string[] = this.names): PropertyReader[] {
    if (names.length === 0) throw new TypeError("Cannot wait for properties: there are none");
    return names.map((name) => this.reader(name as keyof T & string)) as PropertyReader[];
  }

  /**
   * Returns the name of a property that has changed, if any. @throws {MillraceError} if nothing can
   * change any more.
   */
  #changed(readers: readonly PropertyReader[]): string | undefined {
    const { endpoint } = this.#link;
    if (this.#link.isClosed || hasLeft(endpoint)) raise(ownError(this.#link, "wait"));
    const changed = readers.find(({ change }) => change.look());
    if (changed !== undefined) return changed.name;
    const gone = readers.map((reader) => reader.gone);
    if (gone.every((error) => error !== undefined)) throw gone[0];
    return undefined;
  }

  /**
   * What to wait for: the properties whose writers are not gone, or all of them if every writer is.
   */
  #waitableOf(readers: readonly PropertyReader[]): Waitable {
    const parts = readers.filter(({ gone }) => gone === undefined).map(({ change }) => change);
    return new Several(parts.length > 0 ? parts : readers.map(({ change }) => change));
  }
}
