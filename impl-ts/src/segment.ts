/**
 * The shared bytes: one piece of memory that describes itself. See `spec/segment.md`.
 *
 * @module
 */

import { assert, ForbiddenError, SegmentError } from "./error.ts";
import { type Channel, type Geometry, place, type Plan, readPlan } from "./segment_geometry.ts";
import { recordOffset, samePlan, writePlan } from "./segment_geometry.ts";
import {
  ENDPOINT_RECORD_SIZE,
  SEGMENT_ALIGN,
  SEGMENT_READY_BLANK,
  SEGMENT_READY_FORMATTING,
  SEGMENT_READY_READY,
  SEGMENT_READY_WORD,
  SEGMENT_SIZE_MIN,
  WAIT_POLL_MS,
} from "./layout.ts";

/**
 * A piece of memory: a typed array, a `DataView`, or just the three numbers.
 *
 * @example
 * ```ts
 * import { Port, portGeometry, type Region, segmentSize } from "@millrace/millrace";
 *
 * // Two ports in one piece of memory.
 * const size = segmentSize(portGeometry({ capacity: 256 }));
 * const buffer = new SharedArrayBuffer(2 * size);
 * const first: Region = { buffer, byteOffset: 0, byteLength: size };
 * using a = Port.create({ memory: first, capacity: 256 });
 * using b = Port.create({ memory: new DataView(buffer, size), capacity: 256 });
 * console.log(a.segment.size + b.segment.size === buffer.byteLength); // true
 * ```
 */
export interface Region {
  /** The memory that holds the piece. */
  readonly buffer: ArrayBufferLike;
  /** Where it begins, a multiple of 128. */
  readonly byteOffset: number;
  /** How many bytes it has. */
  readonly byteLength: number;
}

/**
 * What a segment may lie in. On an `ArrayBuffer` nobody else sees it, unless a native process does
 * through a mapping; an endpoint on one polls where it would sleep. A `WebAssembly.Memory` that is
 * not shared must not grow while it is in use: growing detaches the bytes that endpoints hold.
 *
 * @example
 * ```ts
 * import { type Memory, Port } from "@millrace/millrace";
 *
 * // A port in memory that WebAssembly sees too.
 * const memory = new WebAssembly.Memory({ initial: 1, maximum: 1, shared: true });
 * const piece: Memory = new Uint8Array(memory.buffer, 4096, 8192);
 * using here = Port.create<string>({ memory: piece, capacity: 2048 });
 * using there = Port.attach<string>(piece); // usually in another thread
 * here.write("through the module's memory");
 * console.log(there.read()); // "through the module's memory"
 * ```
 */
export type Memory = SharedArrayBuffer | ArrayBuffer | WebAssembly.Memory | Region;

/**
 * How long to wait for somebody else to finish formatting.
 *
 * @example
 * ```ts
 * import { MillraceError, Port, portMemory } from "@millrace/millrace";
 *
 * const memory = portMemory(); // blank: nobody has made a port on it yet
 * try {
 *   Port.attach(memory, { timeout: 10 });
 * } catch (error) {
 *   if (error instanceof MillraceError) console.log(error.code); // "segment.unready"
 * }
 * ```
 */
export interface AttachOptions {
  /** Milliseconds; default 5,000. 0 only looks. */
  readonly timeout?: number | undefined;
}

/**
 * How long to wait without blocking, and what may end it.
 *
 * @example
 * ```ts
 * import { portMemory, Segment } from "@millrace/millrace";
 *
 * const giving = new AbortController();
 * const attaching = Segment.attachAsync(portMemory(), { timeout: 60_000, signal: giving.signal });
 * giving.abort("no longer needed");
 * console.log(await attaching.catch((reason) => reason)); // "no longer needed"
 * ```
 */
export interface AttachAsyncOptions extends AttachOptions {
  /** Ends the wait with its reason. */
  readonly signal?: AbortSignal | undefined;
}

const DEFAULT_TIMEOUT_MS = 5_000;

/**
 * A segment that is formatted and checked, with a private copy of its geometry.
 *
 * Any number of objects, in any threads, may stand for the same bytes.
 *
 * @example
 * ```ts
 * import { Segment, segmentSize } from "@millrace/millrace";
 *
 * const geometry = { endpoints: 2, channels: [{ writer: 0, reader: 1, capacity: 1024 }] };
 * const memory = new SharedArrayBuffer(segmentSize(geometry));
 * const segment = Segment.format(memory, geometry);
 * console.log(segment.channels[0]?.dataSize); // 1024
 * ```
 */
export class Segment {
  /** What the segment lies in, as it was given: post this to a worker. */
  readonly memory: Memory;
  /** Bytes of the segment, a multiple of 128. */
  readonly size: number;
  /** How many endpoint records it has. */
  readonly endpointCount: number;
  /** Its channels, in order. */
  readonly channels: readonly Channel[];
  /** Whether the memory is shared between agents, so that they can wake one another. */
  readonly shared: boolean;
  /**
   * All endpoint records, as words; for the implementation and tools.
   *
   * @internal
   */
  readonly records: Int32Array;
  readonly #region: Region;

  private constructor(memory: Memory, region: Region, plan: Plan) {
    this.memory = memory;
    this.size = plan.size;
    this.endpointCount = plan.endpointCount;
    this.channels = plan.channels;
    this.shared = isShared(region.buffer);
    this.#region = region;
    this.records = this.words(recordOffset(0), this.endpointCount * ENDPOINT_RECORD_SIZE);
  }

  /**
   * Formats blank memory, or takes it as another side has formatted it with the same geometry:
   * either side may come first. Blocks while the other side is at it.
   *
   * @throws {SegmentError} `segment.size`, `segment.unready`, `segment.geometry`, and whatever
   * `attach` throws.
   * @throws {ForbiddenError} if it would have to block where the thread must not.
   */
  static create(memory: Memory, geometry: Geometry, options: AttachOptions = {}): Segment {
    requireTimeout(options.timeout, DEFAULT_TIMEOUT_MS); // before anything is touched
    const plan = place(geometry);
    const made = Segment.#format(memory, plan, SEGMENT_READY_BLANK);
    return made ?? expectPlan(Segment.attach(memory, options), plan);
  }

  /** `create` without blocking. */
  static async createAsync(
    memory: Memory,
    geometry: Geometry,
    options: AttachAsyncOptions = {},
  ): Promise<Segment> {
    requireTimeout(options.timeout, DEFAULT_TIMEOUT_MS);
    options.signal?.throwIfAborted();
    const plan = place(geometry);
    const made = Segment.#format(memory, plan, SEGMENT_READY_BLANK);
    return made ?? expectPlan(await Segment.attachAsync(memory, options), plan);
  }

  /**
   * Formats memory whatever it holds. The caller must be its only owner: nobody else has seen it
   * yet. Never waits.
   *
   * @throws {SegmentError} `segment.size`, if the memory is too small or not aligned.
   */
  static format(memory: Memory, geometry: Geometry): Segment {
    return Segment.#format(memory, place(geometry))!;
  }

  /**
   * Makes shared memory of the right size for a geometry, and formats it.
   *
   * @throws {TypeError} in a page that is not cross-origin isolated, which has no shared memory.
   */
  static allocate(geometry: Geometry): Segment {
    const plan = place(geometry);
    return Segment.#format(sharedMemory(plan.size), plan)!;
  }

  /**
   * Waits until the memory is formatted, blocking, and checks it.
   *
   * @throws {SegmentError} `segment.unready` at the timeout; `segment.size`, `segment.magic`,
   * `segment.version`, `segment.feature`, `segment.table` or `segment.channel` if a check fails.
   * @throws {ForbiddenError} if it would have to block where the thread must not.
   */
  static attach(memory: Memory, options: AttachOptions = {}): Segment {
    const timeout = requireTimeout(options.timeout, DEFAULT_TIMEOUT_MS);
    const region = toSegmentRegion(memory);
    const words = new Int32Array(region.buffer, region.byteOffset, SEGMENT_SIZE_MIN >> 2);
    let deadline = -1;
    while (!isReady(words)) {
      const time = now();
      if (deadline < 0) deadline = time + timeout;
      if (time >= deadline) throw unready();
      sleepReady(words, Math.min(deadline - time, WAIT_POLL_MS));
    }
    return Segment.#read(memory, region);
  }

  /** `attach` without blocking. */
  static async attachAsync(memory: Memory, options: AttachAsyncOptions = {}): Promise<Segment> {
    const timeout = requireTimeout(options.timeout, DEFAULT_TIMEOUT_MS);
    const { signal } = options;
    signal?.throwIfAborted();
    const region = toSegmentRegion(memory);
    const words = new Int32Array(region.buffer, region.byteOffset, SEGMENT_SIZE_MIN >> 2);
    const deadline = performance.now() + timeout;
    // A timer and not `Atomics.waitAsync`: attaching is rare, and a timer also keeps the event
    // loop alive and works on memory that is not shared.
    while (!isReady(words)) {
      if (performance.now() >= deadline) throw unready();
      await new Promise((resolve) => setTimeout(resolve, 1));
      signal?.throwIfAborted();
    }
    return Segment.#read(memory, region);
  }

  /**
   * A view of whole words from `offset` on, both in bytes; for the implementation and tools.
   * Control words are touched through `Atomics` only. [segment.atomic]
   */
  words(offset: number, size: number): Int32Array {
    assert(offset >= 0 && offset + size <= this.size, "a view lies within the segment");
    return new Int32Array(this.#region.buffer, this.#region.byteOffset + offset, size / 4);
  }

  /** A view of bytes from `offset` on; for the implementation and tools. */
  bytes(offset: number, size: number): Uint8Array {
    assert(offset >= 0 && offset + size <= this.size, "a view lies within the segment");
    return new Uint8Array(this.#region.buffer, this.#region.byteOffset + offset, size);
  }

  /**
   * Formats memory, where its `ready` is what is asked for, if anything is: undefined where it is
   * not. What was just written needs no check. [segment.claim]
   */
  static #format(memory: Memory, plan: Plan, from?: number): Segment | undefined {
    const region = toSegmentRegion(memory);
    const { buffer, byteOffset, byteLength } = region;
    // [segment.claim_checked] Both sides refuse what cannot be, and touch nothing.
    if (byteLength < plan.size) throw tooSmall(byteLength, plan.size);
    const words = new Int32Array(buffer, byteOffset, plan.size >>> 2);
    if (from === undefined) Atomics.store(words, SEGMENT_READY_WORD, SEGMENT_READY_FORMATTING);
    else {
      const to = SEGMENT_READY_FORMATTING;
      if (Atomics.compareExchange(words, SEGMENT_READY_WORD, from, to) !== from) return undefined;
    }
    writePlan(plan, words, new Uint8Array(buffer, byteOffset, plan.size));
    // [segment.publish] Last: whoever loads 2 must see everything else.
    Atomics.store(words, SEGMENT_READY_WORD, SEGMENT_READY_READY);
    Atomics.notify(words, SEGMENT_READY_WORD);
    return new Segment(memory, region, plan);
  }

  static #read(memory: Memory, region: Region): Segment {
    const { buffer, byteOffset, byteLength } = region;
    const words = new Int32Array(buffer, byteOffset, byteLength >>> 2);
    const bytes = new Uint8Array(buffer, byteOffset, byteLength);
    return new Segment(memory, region, readPlan(words, bytes, byteLength));
  }
}

/** Turns the caller's timeout into milliseconds, `Infinity` for none. */
export function requireTimeout(timeout: number | undefined, otherwise: number): number {
  if (timeout === undefined) return otherwise;
  if (typeof timeout !== "number" || !(timeout >= 0)) {
    throw new RangeError(`timeout must be milliseconds, 0 or more: ${timeout}`);
  }
  return timeout;
}

/**
 * Makes shared memory.
 *
 * @throws {TypeError} in a page that is not cross-origin isolated, which has none.
 */
export function sharedMemory(size: number): SharedArrayBuffer {
  if (typeof SharedArrayBuffer !== "undefined") return new SharedArrayBuffer(size);
  throw new TypeError(
    "Cannot make shared memory: this page is not cross-origin isolated; it must be served with " +
      "the headers Cross-Origin-Opener-Policy: same-origin and " +
      "Cross-Origin-Embedder-Policy: require-corp",
  );
}

/** Whether a buffer is a SharedArrayBuffer, also where pages have no such global. */
export function isShared(buffer: ArrayBufferLike): boolean {
  return Object.prototype.toString.call(buffer) === "[object SharedArrayBuffer]";
}

/**
 * Milliseconds of the clock of all deadlines. An audio worklet has no other than that of the
 * system: what may not block there is to say so, and not that it has no clock.
 */
export function now(): number {
  return typeof performance === "undefined" ? Date.now() : performance.now();
}

/** Whether a deadline has passed. Without one it looks at no clock, whose first touch is dear. */
export function isPast(deadline: number): boolean {
  return deadline < Infinity && now() >= deadline;
}

/**
 * Sleeps without anybody who could wake it, where that is allowed.
 *
 * @throws {ForbiddenError} on a thread that must not block.
 */
export function sleepBlind(ms: number): void {
  // A page that is not isolated has no shared memory, and must not block either.
  if (typeof SharedArrayBuffer === "undefined") {
    throw new ForbiddenError("Cannot block: this thread must not");
  }
  try {
    Atomics.wait(alarm ??= new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
  } catch (cause) {
    if (!(cause instanceof TypeError)) throw cause;
    throw new ForbiddenError("Cannot block: this thread must not");
  }
}

let alarm: Int32Array | undefined;

let isLittleEndian: boolean | undefined;

/** Any piece of memory as the three numbers. @throws {TypeError} if it is none. */
export function toRegion(memory: Memory): Region {
  isLittleEndian ??= new Uint8Array(Uint16Array.of(1).buffer)[0] === 1;
  if (!isLittleEndian) {
    throw new TypeError("Cannot use memory: this processor is not little-endian");
  }
  let region = memory as Region;
  if (!("byteOffset" in memory)) {
    const buffer = "buffer" in memory ? memory.buffer : memory;
    region = { buffer, byteOffset: 0, byteLength: buffer.byteLength };
  }
  const { byteOffset, byteLength } = region;
  if (!Number.isInteger(byteOffset) || !Number.isInteger(byteLength)) {
    throw new TypeError("memory must be a SharedArrayBuffer, a WebAssembly.Memory or a view");
  }
  return region;
}

function toSegmentRegion(memory: Memory): Region {
  const region = toRegion(memory);
  const { byteOffset, byteLength } = region;
  if (byteOffset % SEGMENT_ALIGN !== 0 || byteLength < SEGMENT_SIZE_MIN) {
    throw new SegmentError(
      "segment.size",
      `Cannot use segment: ${byteLength} bytes of memory at ${byteOffset}`,
    );
  }
  return region;
}

function tooSmall(has: number, takes: number): SegmentError {
  return new SegmentError(
    "segment.size",
    `Cannot format segment: it takes ${takes} bytes, the memory has ${has}`,
  );
}

function expectPlan(segment: Segment, plan: Plan): Segment {
  const { size, endpointCount, channels } = segment;
  if (samePlan(plan, { size, endpointCount, channels })) return segment;
  throw new SegmentError("segment.geometry", "Cannot create segment: it has another geometry");
}

function isReady(words: Int32Array): boolean {
  // [segment.await] No other byte is read before this load returned 2.
  const ready = Atomics.load(words, SEGMENT_READY_WORD);
  if (ready === SEGMENT_READY_READY) return true;
  if (ready === SEGMENT_READY_BLANK || ready === SEGMENT_READY_FORMATTING) return false;
  throw new SegmentError(
    "segment.magic",
    `Cannot attach segment: its ready word is ${ready >>> 0}`,
  );
}

function sleepReady(words: Int32Array, ms: number): void {
  if (!isShared(words.buffer)) return sleepBlind(ms);
  const seen = Atomics.load(words, SEGMENT_READY_WORD);
  if (seen === SEGMENT_READY_READY) return;
  try {
    Atomics.wait(words, SEGMENT_READY_WORD, seen, ms);
  } catch (cause) {
    if (!(cause instanceof TypeError)) throw cause;
    throw new ForbiddenError("Cannot attach segment: this thread must not block; use attachAsync");
  }
}

function unready(): SegmentError {
  return new SegmentError("segment.unready", "Cannot attach segment: nobody has formatted it");
}
