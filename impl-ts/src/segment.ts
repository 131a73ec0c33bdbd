/**
 * The shared bytes: one piece of memory that describes itself. See `spec/segment.md`.
 *
 * @module
 */

import { assert, cannot, ForbiddenError, mistake, outOfRange, unusable } from "./error.ts";
import { type Channel, type Geometry, place, type Plan, readPlan } from "./segment_geometry.ts";
import { samePlan, writePlan } from "./segment_geometry.ts";
import * as layout from "./layout.ts";

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
export type Memory =
  | SharedArrayBuffer
  | ArrayBuffer
  // A `WebAssembly.Memory`, of which not every program has the type.
  | { readonly buffer: ArrayBufferLike; grow(pages: number): number }
  | Region;

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
const READY = layout.SEGMENT_READY_WORD;

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
  /**
   * By the index of an endpoint, what a supervisor in this thread knows of an owner that it has
   * marked failed.
   *
   * @internal
   */
  causes: Map<number, { readonly generation: number; readonly cause: unknown }> | undefined;
  /** All of the memory. */
  readonly #words: Int32Array;

  private constructor(memory: Memory, words: Int32Array, plan: Plan) {
    this.memory = memory;
    this.size = plan.size;
    this.endpointCount = plan.endpointCount;
    this.channels = plan.channels;
    this.shared = isShared(words.buffer);
    this.#words = words;
    this.records = this.words(
      layout.ENDPOINT_TABLE_OFFSET,
      plan.endpointCount * layout.ENDPOINT_RECORD_SIZE,
    );
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
    return Segment.#format(memory, plan) ?? expectPlan(Segment.attach(memory, options), plan);
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
    const made = Segment.#format(memory, plan);
    return made ?? expectPlan(await Segment.attachAsync(memory, options), plan);
  }

  /**
   * Formats memory whatever it holds. The caller must be its only owner: nobody else has seen it
   * yet. Never waits.
   *
   * @throws {SegmentError} `segment.size`, if the memory is too small or not aligned.
   */
  static format(memory: Memory, geometry: Geometry): Segment {
    return Segment.#format(memory, place(geometry), true)!;
  }

  /**
   * Makes shared memory of the right size for a geometry, and formats it.
   *
   * @throws {TypeError} in a page that is not cross-origin isolated, which has no shared memory.
   */
  static allocate(geometry: Geometry): Segment {
    const plan = place(geometry);
    return Segment.#format(sharedMemory(plan.size), plan, true)!;
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
    const words = wordsOf(memory);
    let deadline: number | undefined;
    for (let ready; (ready = readyOf(words)) !== layout.SEGMENT_READY_READY;) {
      const pause = pauseUntil(deadline ??= now() + timeout);
      sleepOn(isShared(words.buffer) ? words : undefined, READY, ready, pause);
    }
    return new Segment(memory, words, readPlan(words));
  }

  /** `attach` without blocking. */
  static async attachAsync(memory: Memory, options: AttachAsyncOptions = {}): Promise<Segment> {
    const timeout = requireTimeout(options.timeout, DEFAULT_TIMEOUT_MS);
    const { signal } = options;
    signal?.throwIfAborted();
    const words = wordsOf(memory);
    let deadline: number | undefined;
    // A timer and not `Atomics.waitAsync`: attaching is rare, and a timer also keeps the event
    // loop alive and works on memory that is not shared.
    while (readyOf(words) !== layout.SEGMENT_READY_READY) {
      pauseUntil(deadline ??= now() + timeout);
      await new Promise((resolve) => setTimeout(resolve, 1));
      signal?.throwIfAborted();
    }
    return new Segment(memory, words, readPlan(words));
  }

  /**
   * A view of whole words from `offset` on, both in bytes; for the implementation and tools.
   * Control words are touched through `Atomics` only. [segment.atomic]
   */
  words(offset: number, size: number): Int32Array {
    return new Int32Array(this.#words.buffer, this.#placeOf(offset, size), size / 4);
  }

  /** A view of bytes from `offset` on; for the implementation and tools. */
  bytes(offset: number, size: number): Uint8Array {
    return new Uint8Array(this.#words.buffer, this.#placeOf(offset, size), size);
  }

  /** Where bytes of the segment stand in its buffer. */
  #placeOf(offset: number, size: number): number {
    assert(offset >= 0 && offset + size <= this.size, "a view lies within the segment");
    return this.#words.byteOffset + offset;
  }

  /**
   * Formats memory that is blank, or that has no other owner: undefined where it is neither. What
   * was just written needs no check. [segment.claim]
   */
  static #format(memory: Memory, plan: Plan, isOwner = false): Segment | undefined {
    // [segment.claim_checked] Both sides refuse what cannot be, and touch nothing.
    const words = wordsOf(memory, plan.size);
    const blank = layout.SEGMENT_READY_BLANK;
    const mine = layout.SEGMENT_READY_FORMATTING;
    if (isOwner) Atomics.store(words, READY, blank);
    if (Atomics.compareExchange(words, READY, blank, mine) !== blank) return undefined;
    writePlan(plan, words);
    // [segment.publish] Last: whoever loads 2 must see everything else.
    Atomics.store(words, READY, layout.SEGMENT_READY_READY);
    Atomics.notify(words, READY);
    return new Segment(memory, words, plan);
  }
}

/** Turns the caller's timeout into milliseconds, `Infinity` for none. */
export function requireTimeout(timeout: number | undefined, otherwise: number): number {
  if (timeout === undefined) return otherwise;
  if (typeof timeout !== "number" || !(timeout >= 0)) {
    outOfRange(`timeout must be milliseconds, 0 or more: ${timeout}`);
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
  cannot(
    "make shared memory: this page is not cross-origin isolated; it must be served with " +
      "the headers Cross-Origin-Opener-Policy: same-origin and " +
      "Cross-Origin-Embedder-Policy: require-corp",
  );
}

/** Whether a buffer is a SharedArrayBuffer, also where pages have no such global. */
export function isShared(buffer: ArrayBufferLike): boolean {
  return Object.prototype.toString.call(buffer) === "[object SharedArrayBuffer]";
}

/** Milliseconds of the clock of all deadlines, and of all that is timed. */
export function now(): number {
  return (clock ??= findClock())();
}

let clock: (() => number) | undefined;

/** What has a clock: a part of the global scope. */
interface Scope {
  readonly Deno?: unknown;
  readonly process?: { hrtime?(): [seconds: number, nanoseconds: number] };
}

/**
 * In Node, the first touch of `performance` in a thread loads a library, 0.6 ms (measured: Node
 * 24); in Deno, that of `process` would, 8 ms. An audio worklet has no clock but that of the
 * system: what may not block there is to say so, and not that it has none.
 */
function findClock(): () => number {
  const scope = globalThis as Scope;
  const hrtime = scope.Deno === undefined ? scope.process?.hrtime : undefined;
  if (typeof hrtime === "function") {
    return () => {
      const time = hrtime();
      return time[0] * 1e3 + time[1] / 1e6;
    };
  }
  return typeof performance === "undefined" ? Date.now : () => performance.now();
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
  sleepOn(undefined, 0, 0, ms);
}

/** Sleeps while a word has this value; where there are no words, for all of the time. */
function sleepOn(words: Int32Array | undefined, index: number, value: number, ms: number): void {
  try {
    const alarm = words ?? (silent ??= new Int32Array(new SharedArrayBuffer(4)));
    Atomics.wait(alarm, index, value, ms);
  } catch {
    // A page that is not isolated has no shared memory, and must not block either.
    throw new ForbiddenError("Cannot block: this thread must not; use the asynchronous call");
  }
}

/** A word that nobody changes. */
let silent: Int32Array | undefined;

/** Any piece of memory as the three numbers. @throws {TypeError} if it is none. */
export function toRegion(memory: Memory): Region {
  if (new Uint8Array(Uint16Array.of(1).buffer)[0] !== 1) {
    cannot("use memory: this processor is not little-endian");
  }
  const given: Partial<Region> = memory;
  const buffer = given.buffer ?? memory as ArrayBufferLike;
  const byteOffset = given.byteOffset ?? 0;
  const byteLength = given.byteLength ?? buffer.byteLength;
  if (byteOffset >= 0 && byteLength >= 0) return { buffer, byteOffset, byteLength };
  mistake("memory must be a SharedArrayBuffer, a WebAssembly.Memory or a view");
}

/** The words of memory in which a segment of this size has room. */
function wordsOf(memory: Memory, size: number = layout.SEGMENT_SIZE_MIN): Int32Array {
  const { buffer, byteOffset, byteLength } = toRegion(memory);
  if (byteOffset % layout.SEGMENT_ALIGN !== 0 || byteLength < size) {
    const what = `it takes ${size} bytes at a multiple of 128`;
    unusable("size", `use segment: ${what}, the memory has ${byteLength} at ${byteOffset}`);
  }
  return new Int32Array(buffer, byteOffset, byteLength >>> 2);
}

function expectPlan(segment: Segment, plan: Plan): Segment {
  const isSame = samePlan(plan, segment) &&
    (plan.forms ?? []).every((form, index) => {
      // Where the segment has it, which need not be where this creator would have put it.
      const { controlOffset, controlSize } = segment.channels[index]!;
      return form === undefined || form.matches(segment.words(controlOffset, controlSize));
    });
  if (isSame) return segment;
  unusable("geometry", "create segment: it has another geometry");
}

/** How far the formatting is. [segment.await] No other byte is read before this returned 2. */
function readyOf(words: Int32Array): number {
  const ready = Atomics.load(words, READY);
  if (ready >>> 0 <= layout.SEGMENT_READY_READY) return ready;
  unusable("magic", `attach segment: its ready word is ${ready >>> 0}`);
}

/** Milliseconds to sleep, for who waits for the formatting. */
function pauseUntil(deadline: number): number {
  const left = deadline - now();
  if (left > 0) return Math.min(left, layout.WAIT_POLL_MS);
  unusable("unready", "attach segment: nobody has formatted it");
}
