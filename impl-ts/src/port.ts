/**
 * Two pipes, both ways, between the same two threads. See `spec/port.md`.
 *
 * @module
 */

import { Endpoint, type Stats } from "./wait_endpoint.ts";
import { SegmentError } from "./error.ts";
import { type Channel, type Geometry, requireInteger, segmentSize } from "./segment_geometry.ts";
import type { Lent, Place } from "./pipe_lend.ts";
import { findRing, Link, type Message, type ReaderOptions, type WaitOptions } from "./pipe.ts";
import { requireReaderOptions, requireWriterOptions, type WriterOptions } from "./pipe.ts";
import { Reader } from "./pipe_reader.ts";
import { type AttachOptions, type Memory, Segment, sharedMemory } from "./segment.ts";
import { type ClaimOptions, type MessageInit, Writer } from "./pipe_writer.ts";
import { requireSpin } from "./wait_spinner.ts";

/** Which end of a port: `a` is endpoint 0, `b` is endpoint 1. */
export type Side = "a" | "b";

/** How a port works, on either side. */
export interface PortOptions extends WriterOptions, ReaderOptions {
  /** Which end this is. `create` takes `a` by default, `attach` takes `b`. */
  readonly side?: Side | undefined;
  /** Most messages kept in the inbox while a write waits for room; 0 for none. Default 1,024. */
  readonly inboxCount?: number | undefined;
  /** Most bytes kept there. Default 16 MiB. */
  readonly inboxSize?: number | undefined;
}

/** How to make a port. */
export interface PortCreateOptions extends PortOptions, AttachOptions {
  /**
   * Blank memory, which the other side may create a port on at the same time with the same
   * capacity and start. By default fresh shared memory.
   */
  readonly memory?: Memory | undefined;
  /** Bytes of each ring, or of the rings from a to b and from b to a. Default 262,144. */
  readonly capacity?: number | readonly [number, number] | undefined;
  /** The position at which the cursors begin; for tests. */
  readonly start?: number | undefined;
}

const DEFAULT_CAPACITY = 256 * 1024;
const DEFAULT_INBOX_COUNT = 1024;
const DEFAULT_INBOX_SIZE = 16 * 1024 * 1024;

/**
 * The geometry of a port: two endpoints, a ring each way. [port.layout]
 *
 * @example
 * ```ts
 * import { portGeometry, segmentSize } from "@millrace/millrace";
 *
 * segmentSize(portGeometry({ capacity: [256, 1024] })); // 2816
 * ```
 */
export function portGeometry(options: PortCreateOptions = {}): Geometry {
  const { capacity = DEFAULT_CAPACITY, start = 0 } = options;
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
 * One end of a pair that sends messages both ways, blocking or not. All methods belong to the
 * thread that made it.
 *
 * @typeParam In What it reads. @typeParam Out What it writes.
 *
 * @example
 * ```ts
 * import { Port } from "@millrace/millrace";
 *
 * using here = Port.create<string, { n: number }>();
 * // Usually in a worker, to which `here.memory` was posted:
 * using there = Port.attach<{ n: number }, string>(here.memory);
 *
 * here.write({ n: 1 });
 * console.log(there.read()); // { n: 1 }
 * there.write("got it");
 * console.log(here.read()); // "got it"
 * ```
 */
export class Port<In = unknown, Out = In> {
  /** The segment in which both pipes lie. */
  readonly segment: Segment;
  readonly #link: Link;
  readonly #writer: Writer<Out>;
  readonly #reader: Reader<In>;

  private constructor(segment: Segment, side: Side, options: PortOptions) {
    const { inboxCount = DEFAULT_INBOX_COUNT, inboxSize = DEFAULT_INBOX_SIZE } = options;
    requirePortOptions(options);
    const index = side === "a" ? 0 : 1;
    Endpoint.requireVacant(segment, index);
    const [outgoing, incoming] = findRings(segment, index);
    const endpoint = Endpoint.attach(segment, index, options);
    this.segment = segment;
    this.#link = new Link(endpoint, outgoing.reader);
    this.#reader = new Reader<In>(this.#link, incoming, options);
    const reader = this.#reader;
    const idle = { fill: () => reader.fillInbox(inboxCount, inboxSize) };
    this.#writer = new Writer<Out>(this.#link, outgoing, options, idle);
  }

  /**
   * Makes a port, by default in fresh memory and as side `a`. Post `port.memory` to the thread of
   * the other side, and `attach` there.
   *
   * @throws {RangeError} if a capacity is no power of two from 256 to 2^30.
   * @throws {SegmentError} if the memory given cannot be used.
   */
  static create<In = unknown, Out = In>(options: PortCreateOptions = {}): Port<In, Out> {
    const geometry = portGeometry(options);
    const { memory } = options;
    requirePortOptions(options); // before anything of the memory is touched
    const segment = memory === undefined
      ? Segment.allocate(geometry)
      : Segment.create(memory, geometry, options);
    return new Port<In, Out>(segment, options.side ?? "a", options);
  }

  /**
   * Attaches to a port that another thread has made, by default as side `b`. Blocks until the
   * memory is formatted.
   *
   * @throws {SegmentError} if it is not formatted in time, is no port, or the side is taken.
   */
  static attach<In = unknown, Out = In>(
    memory: Memory,
    options: PortOptions & AttachOptions = {},
  ): Port<In, Out> {
    return new Port<In, Out>(Segment.attach(memory, options), options.side ?? "b", options);
  }

  /** `attach` without blocking. */
  static async attachAsync<In = unknown, Out = In>(
    memory: Memory,
    options: PortOptions & WaitOptions = {},
  ): Promise<Port<In, Out>> {
    const segment = await Segment.attachAsync(memory, options);
    return new Port<In, Out>(segment, options.side ?? "b", options);
  }

  /** The memory of the port, to be posted to the other thread. */
  get memory(): Memory {
    return this.segment.memory;
  }

  /** Whether everything was read and the peer has ended its stream. */
  get ended(): boolean {
    return this.#reader.ended;
  }

  /** What this endpoint has counted. */
  get stats(): Stats {
    return this.#link.endpoint.stats;
  }

  /** The writing half, with everything that it offers. */
  get writer(): Writer<Out> {
    return this.#writer;
  }

  /** The reading half, with everything that it offers. */
  get reader(): Reader<In> {
    return this.#reader;
  }

  /** See `Writer.write`. While it waits for room, it takes what arrives into the inbox. */
  write(value: Out, options?: WaitOptions): void {
    this.#writer.write(value, options);
  }

  /** See `Writer.tryWrite`. */
  tryWrite(value: Out): boolean {
    return this.#writer.tryWrite(value);
  }

  /** See `Writer.writeAsync`. */
  writeAsync(value: Out, options?: WaitOptions): Promise<void> {
    return this.#writer.writeAsync(value, options);
  }

  /** See `Writer.writeMany`. */
  writeMany(values: readonly Out[], options?: WaitOptions): void {
    this.#writer.writeMany(values, options);
  }

  /** See `Writer.writeMessage`. */
  writeMessage(message: MessageInit, options?: WaitOptions): void {
    this.#writer.writeMessage(message, options);
  }

  /** See `Writer.claim`. */
  claim(size: number, options?: ClaimOptions): Place {
    return this.#writer.claim(size, options);
  }

  /** See `Writer.publish`. */
  publish(size?: number): void {
    this.#writer.publish(size);
  }

  /** See `Writer.abandon`. */
  abandon(): void {
    this.#writer.abandon();
  }

  /** See `Reader.read`. */
  read(options?: WaitOptions): In | undefined {
    return this.#reader.read(options);
  }

  /** See `Reader.tryRead`. */
  tryRead(): In | undefined {
    return this.#reader.tryRead();
  }

  /** See `Reader.readAsync`. */
  readAsync(options?: WaitOptions): Promise<In | undefined> {
    return this.#reader.readAsync(options);
  }

  /** See `Reader.readMessage`. */
  readMessage(options?: WaitOptions): Message | undefined {
    return this.#reader.readMessage(options);
  }

  /** See `Reader.readInto`. */
  readInto(target: Uint8Array, options?: WaitOptions): number | undefined {
    return this.#reader.readInto(target, options);
  }

  /** See `Reader.peek`. */
  peek(options?: WaitOptions): Lent | undefined {
    return this.#reader.peek(options);
  }

  /** See `Reader.release`. */
  release(): void {
    this.#reader.release();
  }

  /** Ends the outgoing stream; reading goes on. [port.end] */
  end(): void {
    this.#writer.end();
  }

  /** Closes both directions now. Waits of this port, here or in async calls, end. [port.close] */
  close(): void {
    this.#reader.close();
  }

  /** The same as `close`. */
  [Symbol.dispose](): void {
    this.close();
  }
}

/**
 * Makes shared memory of the size that a port takes, blank: either side may `create` on it.
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
export function portMemory(options: PortCreateOptions = {}): SharedArrayBuffer {
  return sharedMemory(segmentSize(portGeometry(options)));
}

/** Throws for what a port cannot work with. */
function requirePortOptions(options: PortOptions): void {
  const { side, spin, inboxCount = 0, inboxSize = 0 } = options;
  requireInteger("inboxCount", inboxCount, 0, Number.MAX_SAFE_INTEGER);
  requireInteger("inboxSize", inboxSize, 0, Number.MAX_SAFE_INTEGER);
  if (side !== undefined && side !== "a" && side !== "b") {
    throw new TypeError(`side must be "a" or "b": ${side}`);
  }
  requireSpin(spin);
  requireWriterOptions(options);
  requireReaderOptions(options);
}

/** The rings on which an endpoint writes and reads. [port.find] [port.find_none] */
function findRings(segment: Segment, index: number): [Channel, Channel] {
  const outgoing = findRing(segment, undefined, (channel) => channel.writer === index);
  const incoming = findRing(segment, undefined, (channel) => channel.reader === index);
  if (outgoing.reader === incoming.writer) return [outgoing, incoming];
  throw new SegmentError("segment.channel", "Cannot attach port: its rings have different peers");
}
