/**
 * What a port can be told when it is made, and how it is handed over. See `spec/port.md`.
 *
 * @module
 */

import type { Codec, CodecName } from "../codec/codec.ts";
import { requireOptions, throwCannot, throwSegmentError, throwTypeError } from "../error.ts";
import {
  type Channel,
  type Geometry,
  requireAmount,
  requireInteger,
  segmentSize,
} from "../memory/plan.ts";
import { type AttachOptions, type Memory, type Segment, sharedMemory } from "../memory/segment.ts";
import {
  findRing,
  type ReaderOptions,
  requireReaderOptions,
  requireWriterOptions,
  type WriterOptions,
} from "../pipe/options.ts";
import { type DeliveryOptions, requireDeliveryOptions } from "./delivery.ts";

/**
 * Options of the queue of posted messages.
 *
 * @example
 * ```ts
 * import { Port, type PostingOptions } from "@millrace/millrace";
 *
 * const bounded: PostingOptions = { queueLimit: 1, overflow: "reject" };
 * using port = Port.create<number>({ capacity: 256, ...bounded });
 * while (port.tryWrite(0)); // nobody reads
 * port.postMessage(1);
 * console.log((await port.postMessage(2).catch((error) => error)).code); // "port.overflow"
 * ```
 */
export interface PostingOptions {
  /** The most messages that are posted and not in the ring yet, from 1. Default 1,024. */
  readonly queueLimit?: number | undefined;
  /**
   * What becomes of a message that is posted when the queue is full. Default `wait`.
   *
   * - `wait`: it is queued all the same. A caller that awaits each promise never fills it.
   * - `reject`: its promise rejects with an `OverflowError`.
   */
  readonly overflow?: "wait" | "reject" | undefined;
}

/**
 * Options of one posted message.
 *
 * @example
 * ```ts
 * import { Port } from "@millrace/millrace";
 *
 * using port = Port.create<string>({ capacity: 256 });
 * while (port.tryWrite("nobody reads"));
 * const changing = new AbortController();
 * const posted = port.postMessage("take me back", { signal: changing.signal });
 * changing.abort("changed my mind");
 * console.log(await posted.catch((reason) => reason)); // "changed my mind"
 * ```
 */
export interface PostOptions {
  /**
   * Takes back the message if it is not in the ring yet: its promise rejects with the signal's
   * reason.
   */
  readonly signal?: AbortSignal | undefined;
}

/**
 * Which end of a port: `a` is endpoint 0, `b` is endpoint 1.
 *
 * @example
 * ```ts
 * import { Port, portMemory, type Side } from "@millrace/millrace";
 *
 * // Whoever comes first formats the memory; each side names its own.
 * const memory = portMemory();
 * const [a, b] = (["a", "b"] satisfies Side[]).map((side) => Port.create<Side>({ memory, side }));
 * a!.write("a");
 * console.log(b!.read()); // "a"
 * ```
 */
export type Side = "a" | "b";

/**
 * Options of a port, on either side.
 *
 * @example
 * ```ts
 * import { Port, type PortOptions } from "@millrace/millrace";
 *
 * const options: PortOptions<string, string> = { codec: "text", spin: 0, inboxCount: 16 };
 * using here = Port.create<string>(options);
 * using there = Port.attach<string>(here.memory, options); // usually in another thread
 * here.write("hello");
 * console.log(there.read({ timeout: 1000 })); // "hello"
 * ```
 */
export interface PortOptions<In = unknown, Out = In>
  extends WriterOptions<Out>, ReaderOptions<In>, PostingOptions, DeliveryOptions {
  /** How values become payloads: a codec of this library, or your own. Default `json`. */
  readonly codec?: CodecName | Codec<In, Out> | undefined;
  /** Which end this is. `create` takes `a` by default, `attach` takes `b`. */
  readonly side?: Side | undefined;
  /**
   * The most messages that the inbox keeps while a write waits for room; 0 for none. Default 1,024.
   */
  readonly inboxCount?: number | undefined;
  /** The most bytes that the inbox keeps. Default 16 MiB. */
  readonly inboxSize?: number | undefined;
}

/**
 * Options for attaching to a port.
 *
 * @example
 * ```ts
 * import { Port } from "@millrace/millrace";
 * import { Hub } from "@millrace/millrace/hub";
 *
 * using hub = Hub.create<string>(3);
 * using third = Port.attach<string>(hub.memory, { endpoint: 3 }); // usually in another thread
 * third.write("client 2");
 * console.log(hub.ports[2]?.read()); // "client 2"
 * ```
 */
export interface PortAttachOptions<In = unknown, Out = In> extends PortOptions<In, Out> {
  /** Index of the endpoint, instead of `side`. Client `i` of a hub is endpoint `i + 1`. */
  readonly endpoint?: number | undefined;
}

/**
 * Options for making a port.
 *
 * @example
 * ```ts
 * import { Port, type PortCreateOptions } from "@millrace/millrace";
 *
 * // Much one way, little the other.
 * const options: PortCreateOptions<string, Uint8Array> = { capacity: [1 << 20, 4096] };
 * using port = Port.create<string, Uint8Array>(options);
 * console.log(port.segment.channels.map(({ dataSize }) => dataSize)); // [ 1048576, 4096 ]
 * ```
 */
export interface PortCreateOptions<In = unknown, Out = In>
  extends PortOptions<In, Out>, AttachOptions {
  /**
   * Blank memory. The other side may create a port on it at the same time, with the same capacity
   * and start. By default fresh shared memory.
   */
  readonly memory?: Memory | undefined;
  /** Bytes of each ring; or a pair, for the rings from a to b and from b to a. Default 262,144. */
  readonly capacity?: number | readonly [number, number] | undefined;
  /** The position at which the cursors begin; for tests. */
  readonly start?: number | undefined;
}

const DEFAULT_CAPACITY = 256 * 1024;

/**
 * Returns the geometry of a port: two endpoints, and a ring each way. [port.layout]
 *
 * @example
 * ```ts
 * import { portGeometry, segmentSize } from "@millrace/millrace";
 *
 * segmentSize(portGeometry({ capacity: [256, 1024] })); // 2816
 * ```
 */
export function portGeometry(options: PortCreateOptions<unknown, never> = {}): Geometry {
  const { capacity = DEFAULT_CAPACITY, start = 0 } = requireOptions(options);
  const [there, back] = typeof capacity === "number" ? [capacity, capacity] : capacity;
  return {
    endpoints: 2,
    channels: [
      { writer: 0, reader: 1, capacity: there, start },
      { writer: 1, reader: 0, capacity: back, start },
    ],
  };
}

/**
 * Allocates blank shared memory of the size that a port takes. Either side may `create` on it.
 *
 * @throws {TypeError} in a page that is not cross-origin isolated, which has no shared memory.
 *
 * @example
 * ```ts
 * import { Port, portMemory } from "@millrace/millrace";
 *
 * const memory = portMemory();
 * using b = Port.create({ memory, side: "b" }); // usually in another thread
 * using a = Port.create({ memory });
 * ```
 */
export function portMemory(options: PortCreateOptions<unknown, never> = {}): SharedArrayBuffer {
  return sharedMemory(segmentSize(portGeometry(options)));
}

/** The index of the endpoint to attach to. */
export function endpointOf({ side, endpoint }: PortAttachOptions<unknown, never>): number {
  if (endpoint === undefined) return side === "a" ? 0 : 1;
  if (side === undefined) return endpoint;
  throwCannot("attach port: side and endpoint are both given");
}

/** Throws for options that a port cannot use. */
export function requirePortOptions(options: PortOptions<unknown, never>): void {
  const { inboxCount = 0, inboxSize = 0, queueLimit = 1, spin = 0 } = options;
  requireInteger("inboxCount", inboxCount, 0);
  requireInteger("inboxSize", inboxSize, 0);
  requireInteger("queueLimit", queueLimit, 1);
  requireAmount("spin", spin);
  requireOneOf("side", options.side, "a", "b");
  requireOneOf("overflow", options.overflow, "wait", "reject");
  requireDeliveryOptions(options);
  requireWriterOptions(options);
  requireReaderOptions(options);
}

function requireOneOf(name: string, value: unknown, one: string, other: string): void {
  if (value === undefined || value === one || value === other) return;
  throwTypeError(`${name} must be ${one} or ${other}: ${value}`);
}

/** The rings that an endpoint writes to and reads from. [port.find] [port.find_none] */
export function findRings(segment: Segment, index: number): [Channel, Channel] {
  const ringOf = (end: "writer" | "reader") =>
    findRing(segment, undefined, (channel) => channel[end] === index);
  const outgoing = ringOf("writer");
  const incoming = ringOf("reader");
  if (outgoing.reader === incoming.writer) return [outgoing, incoming];
  throwSegmentError("channel", "attach port: its rings have different peers");
}

/**
 * A plain object from which `Port.from` makes the other end of a port in another thread.
 *
 * @example
 * ```ts
 * import { isPortHandoff, Port, type PortHandoff } from "@millrace/millrace";
 *
 * const handoff: PortHandoff & { name: string } = Port.create().handoff({ name: "log" });
 * console.log(isPortHandoff(structuredClone(handoff)), handoff.endpoint); // true 1
 * ```
 */
export interface PortHandoff {
  /** Marks the object as a handoff. */
  readonly millrace: "port";
  /** The memory of the port. */
  readonly memory: Memory;
  /** Index of the endpoint that is handed over. */
  readonly endpoint: number;
}

/** Makes a handoff, with the properties that the caller adds. */
export function makeHandoff<Extra extends object>(
  segment: Segment,
  endpoint: number,
  extra: Extra | undefined,
): PortHandoff & Extra {
  if (!segment.shared) throwCannot("hand port over: its memory is not shared");
  const handoff: PortHandoff = { millrace: "port", memory: segment.memory, endpoint };
  const taken = Object.keys(handoff).find((name) => Object.hasOwn(extra ?? {}, name));
  if (taken === undefined) return { ...extra as Extra, ...handoff };
  throwCannot(`hand port over: ${taken} is a property of every handoff`);
}

/**
 * Whether a value was made by `port.handoff()`, as far as that can be seen without attaching.
 * `Extra` is the type of what the caller of that has added.
 *
 * @example
 * ```ts
 * import { isPortHandoff, Port } from "@millrace/millrace";
 *
 * const posted: unknown = Port.create().handoff({ name: "log" });
 * if (isPortHandoff<{ name: string }>(posted)) console.log(posted.name); // log
 * console.log(isPortHandoff({ name: "log" })); // false
 * ```
 */
export function isPortHandoff<Extra extends object = object>(
  value: unknown,
): value is PortHandoff & Extra {
  const { millrace, memory, endpoint }: Partial<PortHandoff> = Object(value);
  return millrace === "port" && Object(memory) === memory && Number.isInteger(endpoint);
}
