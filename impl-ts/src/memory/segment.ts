/**
 * The shared bytes: one piece of memory that describes itself. See `spec/segment.md`.
 *
 * @module
 */

import {
  failure,
  forbidden,
  type MillraceError,
  requireOptions,
  throwCannot,
  throwRangeError,
  throwSegmentError,
  throwTypeError,
} from "../error.ts";
import {
  type Channel,
  type Geometry,
  place,
  type Plan,
  readPlan,
  requireAmount,
  samePlan,
  writePlan,
} from "./plan.ts";
import { now, setTimeout } from "./clock.ts";
import { layout } from "./layout.ts";
import { classOf } from "./realm.ts";

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
  /** Where the piece begins in the buffer; for a segment, a multiple of 128. */
  readonly byteOffset: number;
  /** How many bytes the piece has. */
  readonly byteLength: number;
}

/**
 * The memory that a segment can lie in. Nobody else sees an `ArrayBuffer`, unless it is a mapping
 * that a native process sees too; an endpoint on one polls where it would sleep. A
 * `WebAssembly.Memory` that is not shared must not grow while it is in use: growing detaches the
 * bytes that endpoints hold.
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
export type Memory =
  | SharedArrayBuffer
  | ArrayBuffer
  // A `WebAssembly.Memory`, whose type not every program has.
  | { readonly buffer: ArrayBufferLike; grow(pages: number): number }
  | Region;

/**
 * How long to wait until somebody else has finished formatting.
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
  /** Milliseconds. Default 5,000; with 0 the call only looks. */
  readonly timeout?: number | undefined;
}

/**
 * How long to wait without blocking, and a signal that can end the wait.
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
  /** Ends the wait, which then rejects with the signal's reason. */
  readonly signal?: AbortSignal | undefined;
}

/**
 * A segment that is formatted and checked, with a private copy of its geometry.
 *
 * Any number of objects, in any threads, may represent the same bytes.
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
  /** The name, which a bundler would shorten. @internal */
  static readonly name: string = "Segment";

  /** The memory of the segment as it was given; this is what to post to a worker. */
  declare readonly memory: Memory;
  /** Bytes of the segment, a multiple of 128. */
  declare readonly size: number;
  /** How many endpoint records it has. */
  declare readonly endpointCount: number;
  /** Its channels, in order. */
  declare readonly channels: readonly Channel[];
  /** Whether the memory is shared between agents, so that they can wake one another. */
  declare readonly shared: boolean;
  /**
   * All of the memory, which may be larger than the segment, as words and as bytes: offset 0 is the
   * beginning of the segment.
   *
   * @internal
   */
  declare readonly control: Int32Array;
  /** @internal */
  declare readonly area: Uint8Array;
  /**
   * What a supervisor in this thread knows of an owner that it has marked failed, by the index of
   * the endpoint.
   *
   * @internal
   */
  declare causes: Map<number, { readonly generation: number; readonly cause: unknown }> | undefined;
  /**
   * The endpoint that is lent, while something attaches to it.
   *
   * @internal
   */
  declare lent: { readonly index: number } | undefined;

  private constructor(memory: Memory, words: Int32Array, plan: Plan) {
    Object.assign(this, plan);
    this.memory = memory;
    this.shared = isShared(words.buffer);
    this.control = words;
    this.area = new Uint8Array(words.buffer, words.byteOffset, words.byteLength);
  }

  /**
   * Formats blank memory, or attaches to it if another side has formatted it with the same
   * geometry. So either side may come first. Blocks while the other side is formatting.
   *
   * @throws {SegmentError} `segment.size`, `segment.unready`, `segment.geometry`, and whatever
   * `attach` throws.
   * @throws {ForbiddenError} if it would have to block on a thread that must not.
   */
  static create(memory: Memory, geometry: Geometry, options: AttachOptions = {}): Segment {
    requireTimeout(options, 0); // before anything is touched
    return make(geometry, () => memory, options);
  }

  /**
   * Formats memory, whatever it holds. The caller must be its only owner: nobody else has seen it
   * yet. Never waits.
   *
   * @throws {SegmentError} `segment.size`, if the memory is too small or not aligned.
   */
  static format(memory: Memory, geometry: Geometry): Segment {
    return make(geometry, () => memory);
  }

  /**
   * Allocates shared memory of the size that the geometry needs, and formats it.
   *
   * @throws {TypeError} in a page that is not cross-origin isolated, which has no shared memory.
   */
  static allocate(geometry: Geometry): Segment {
    return make(geometry, sharedMemory);
  }

  /**
   * Blocks until the memory is formatted, and then checks it.
   *
   * @throws {SegmentError} `segment.unready` at the timeout; `segment.size`, `segment.magic`,
   * `segment.version`, `segment.feature`, `segment.table` or `segment.channel` if a check fails.
   * @throws {ForbiddenError} if it would have to block on a thread that must not.
   */
  static attach(memory: Memory, options: AttachOptions = {}): Segment {
    const look = finder(memory, options);
    for (let found;; sleepBlind(1)) if ((found = look())) return found;
  }

  /** `attach` without blocking. */
  static async attachAsync(memory: Memory, options: AttachAsyncOptions = {}): Promise<Segment> {
    const look = finder(memory, options);
    // A timer and not `Atomics.waitAsync`: attaching is rare, and a timer also keeps the event
    // loop alive and works on memory that is not shared.
    for (let found;; await new Promise((resolve) => setTimeout(resolve, 1))) {
      options.signal?.throwIfAborted();
      if ((found = look())) return found;
    }
  }

  /**
   * A view of whole words; `offset` and `size` count bytes. For the implementation and tools.
   * Control words must be accessed through `Atomics` only. [segment.atomic]
   */
  words(offset: number, size: number): Int32Array {
    const { buffer, byteOffset } = this.bytes(offset, size);
    return new Int32Array(buffer, byteOffset, size / 4);
  }

  /** A view of `size` bytes from `offset` on; for the implementation and tools. */
  bytes(offset: number, size: number): Uint8Array {
    if (!(offset >= 0 && offset + size <= this.size)) throwRangeError("a view leaves the segment");
    return this.area.subarray(offset, offset + size);
  }
}

/** The constructor, which is private for all others. */
type Make = new (memory: Memory, words: Int32Array, plan: Plan) => Segment;

/**
 * Formats the memory that `allot` gives, or finds that somebody else has formatted it with the same
 * geometry; without options, the caller is its only owner. What was just written needs no check.
 */
function make(
  geometry: Geometry,
  allot: (size: number) => Memory,
  options?: AttachOptions,
): Segment {
  // [segment.claim_checked] Memory and geometry are refused, if at all, before anything is touched.
  const plan = place(geometry);
  const memory = allot(plan.size);
  const words = wordsOf(memory, plan.size);
  const { channels } = geometry;
  if (writePlan(plan, channels, words, !options)) {
    return new (Segment as unknown as Make)(memory, words, plan);
  }
  const segment = Segment.attach(memory, options);
  const isSame = samePlan(plan, segment) &&
    channels.every(({ form }, index) => {
      // In the segment, the channel need not be where this creator would have put it.
      const { controlOffset, controlSize } = segment.channels[index]!;
      return !form || form.matches(segment.words(controlOffset, controlSize));
    });
  if (isSame) return segment;
  throwSegmentError("geometry", "create segment: it has another geometry");
}

/** Returns what looks for a segment, and checks nothing of it until somebody has formatted it. */
function finder(memory: Memory, options: AttachOptions): () => Segment | undefined {
  const timeout = requireTimeout(options, 5_000);
  const words = wordsOf(memory);
  let deadline: number | undefined;
  return () => {
    // [segment.await] No other byte is read before this has loaded 2.
    const ready = Atomics.load(words, layout.SEGMENT_READY_WORD) >>> 0;
    if (ready === layout.SEGMENT_READY_READY) {
      return new (Segment as unknown as Make)(memory, words, readPlan(words));
    }
    if (ready > layout.SEGMENT_READY_READY) throwSegmentError("magic");
    const time = now();
    if (time < (deadline ??= time + timeout)) return undefined;
    throwSegmentError("unready", "attach segment: nobody has formatted it");
  };
}

/**
 * Checks the options of a call, and returns their timeout in milliseconds; without one, returns
 * `otherwise`.
 */
export function requireTimeout(
  options: { readonly timeout?: number | undefined } | undefined,
  otherwise: number,
): number {
  const { timeout = otherwise } = requireOptions(options) ?? {};
  requireAmount("timeout", timeout);
  return timeout;
}

/**
 * Allocates shared memory.
 *
 * @throws {TypeError} in a page that is not cross-origin isolated, which has none.
 */
export function sharedMemory(size: number): SharedArrayBuffer {
  if (typeof SharedArrayBuffer !== "undefined") return new SharedArrayBuffer(size);
  throwCannot(
    "make shared memory: this page is not cross-origin isolated, by the headers " +
      "Cross-Origin-Opener-Policy: same-origin, Cross-Origin-Embedder-Policy: require-corp",
  );
}

/** Whether a buffer is a SharedArrayBuffer, even in a page that has no such global. */
export const isShared = (buffer: ArrayBufferLike): boolean =>
  classOf(buffer) === "SharedArrayBuffer";

/**
 * Whether a deadline has passed. For an infinite one it reads no clock: the first reading is slow.
 */
export const isPast = (deadline: number): boolean => deadline < Infinity && now() >= deadline;

/**
 * Sleeps for `ms` milliseconds, if the thread may block. Nobody can wake it.
 *
 * @throws {ForbiddenError} on a thread that must not block.
 */
export function sleepBlind(ms: number): void {
  try {
    Atomics.wait(silent ??= new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
  } catch {
    throw forbidden(); // a page that is not isolated has no shared memory, and must not either
  }
}

/** A word that nobody changes. */
let silent: Int32Array | undefined;

/** Any piece of memory as its buffer, offset and length. @throws {TypeError} if it is no memory. */
export function toRegion(memory: Memory): Region {
  if (new Uint8Array(Uint16Array.of(1).buffer)[0] !== 1) {
    throwCannot("use memory: this processor is not little-endian");
  }
  const {
    buffer = memory as ArrayBufferLike,
    byteOffset = 0,
    byteLength = buffer?.byteLength,
  }: Partial<Region> = memory ?? {};
  const isBuffer = /^(Shared)?ArrayBuffer$/.test(classOf(buffer));
  if (isBuffer && byteOffset >= 0 && byteLength >= 0) return { buffer, byteOffset, byteLength };
  throwTypeError(
    "memory must be a SharedArrayBuffer, a WebAssembly.Memory or a view; JSON, as of " +
      "child_process.fork, passes none: use a SegmentFile",
  );
}

/** The error of a segment whose memory has been taken from under it. */
export const goneError = (): MillraceError =>
  failure("segment.size", "use segment: its memory is gone: WebAssembly.Memory has grown");

/** Throws that error. */
export function throwGone(): never {
  throw goneError();
}

/** The memory as words, after a check that a segment of `size` bytes fits and is aligned. */
function wordsOf(memory: Memory, size: number = layout.SEGMENT_SIZE_MIN): Int32Array {
  const { buffer, byteOffset, byteLength } = toRegion(memory);
  if (byteOffset % layout.SEGMENT_ALIGN || byteLength < size) {
    throwSegmentError("size", `use segment: it takes ${size} bytes at a multiple of 128`);
  }
  return new Int32Array(buffer, byteOffset, byteLength >>> 2);
}
