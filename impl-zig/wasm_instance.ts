/**
 * What the modules have in common: a shared memory, a stack for each instance, and places in that
 * memory. See `src/wasm.zig` for where things lie.
 *
 * @module
 */

import { REASON_NAMES } from "./wasm_reasons.ts";

/** The module: compiled, or where its bytes are. */
export type ModuleSource = WebAssembly.Module | BufferSource | Response | URL;

/** Where an instance lives. */
export interface InstanceOptions {
  /**
   * The shared memory of another instance, to share ports with it. Without it, the instance gets
   * one of its own, of 4 MiB, which grows to 1 GiB as things are placed in it.
   */
  readonly memory?: WebAssembly.Memory;
  /**
   * The part of the memory for this instance's stack (128 KiB) and for all that it places. Without
   * it, the instances on one memory share what lies from `SHARED_FROM` on, and agree by a word that
   * stands there.
   */
  readonly region?: Region;
}

/** A part of the memory, in bytes. */
export interface Region {
  readonly address: number;
  readonly size: number;
}

/** Where a module's own data and stack have ended, and what instances share begins. */
export const SHARED_FROM = 384 * 1024;

const PAGE_SIZE = 65_536;
const MEMORY_PAGES = 64;
const MEMORY_PAGES_MAX = 16_384;
const STACK_SIZE = 128 * 1024;
const STATUS_INVALID = -256;
const MECHANISM_AGENT = 1;
const NO_BLOCK = 256;

/**
 * Anything that goes wrong in a module. `code` is the reason code's name in the specification.
 *
 * @example
 * ```ts ignore
 * try {
 *   port.write(new Uint8Array(8), { timeout: 10 });
 * } catch (error) {
 *   console.log(error instanceof WasmError && error.code); // "wait.timeout"
 * }
 * ```
 */
export class WasmError extends Error {
  /** The name of the class. */
  override name = "WasmError";
  /** What happened, for instance `peer.closed`. */
  readonly code: string;
  /** Why an endpoint was marked failed, where `code` says that one was and a reason is known. */
  readonly reason: string | undefined;

  /** Makes an error with a code and a message for people. */
  constructor(code: string, message: string, reason?: string) {
    super(`${message} (${reason === undefined ? code : `${code}: ${reason}`})`);
    this.code = code;
    this.reason = reason;
  }
}

/** Every export that both modules have. */
export interface CommonExports {
  readonly __stack_pointer: WebAssembly.Global;
  millrace_heap_base(): number;
}

/** One instance of a module on a shared memory. It belongs to the thread that made it. */
export abstract class WasmInstance {
  /** The module, to be posted to workers together with `memory`. */
  readonly module: WebAssembly.Module;
  /** The shared memory. */
  readonly memory: WebAssembly.Memory;
  readonly #region: Region | undefined;
  /** Where the next thing goes in a region of one's own. */
  #next = 0;
  #begin = 0;
  #view: Uint8Array<ArrayBufferLike>;

  /** Gives the instance its stack. */
  protected constructor(made: Made, exports: CommonExports) {
    this.module = made.module;
    this.memory = made.memory;
    this.#region = made.region;
    this.#view = new Uint8Array(this.memory.buffer);
    const heapBase = exports.millrace_heap_base() >>> 0;
    const from = this.#region?.address ?? SHARED_FROM;
    if (from < heapBase) {
      throw new RangeError(
        `Cannot use memory from ${from} on: the module's data end at ${heapBase}`,
      );
    }
    this.#next = from;
    exports.__stack_pointer.value = this.allocate(STACK_SIZE, 16) + STACK_SIZE;
    this.#begin = this.#next;
  }

  /**
   * Sets bytes of the memory aside and returns their address, a multiple of `alignment`, which is
   * a power of two. They are zero unless the region was used before.
   *
   * @throws {RangeError} if the memory cannot hold them
   */
  allocate(size: number, alignment = 128): number {
    const region = this.#region;
    if (region === undefined) return this.#allocateShared(size, alignment);
    const address = alignUp(this.#next, alignment);
    if (address + size > region.address + region.size) throw outOfMemory(size);
    this.#reach(address + size);
    this.#next = address + size;
    return address;
  }

  /**
   * Makes everything that was placed in this instance's region free again: every port, segment and
   * address of it is void from then on.
   *
   * @throws {TypeError} if the instance shares its part of the memory with others
   */
  freeAll(): void {
    if (this.#region === undefined) {
      throw new TypeError("Cannot free all: the instance has no region of its own");
    }
    this.#view.fill(0, this.#begin, this.#next);
    this.#next = this.#begin;
  }

  /** The bytes at an address, where they lie: another thread may change them at any time. */
  bytesAt(address: number, size: number): Uint8Array<ArrayBufferLike> {
    this.#reach(address + size);
    return new Uint8Array(this.memory.buffer, address, size);
  }

  /** A copy of the bytes at an address. */
  copyFrom(address: number, size: number): Uint8Array<ArrayBuffer> {
    const copy = new Uint8Array(size);
    copy.set(this.#current(address + size).subarray(address, address + size));
    return copy;
  }

  /** Puts bytes at an address. */
  copyTo(address: number, bytes: Uint8Array): void {
    this.#current(address + bytes.length).set(bytes, address);
  }

  /** By compare-exchange on a word that all instances know, since they may come at once. */
  #allocateShared(size: number, alignment: number): number {
    const word = new Int32Array(this.memory.buffer, SHARED_FROM, 1);
    for (;;) {
      const found = Atomics.load(word, 0);
      const address = alignUp(found === 0 ? SHARED_FROM + 128 : found >>> 0, alignment);
      this.#reach(address + size);
      const next = (address + size) | 0;
      if (Atomics.compareExchange(word, 0, found, next) === found) return address;
    }
  }

  /** Grows the memory where it ends before this address. */
  #reach(end: number): void {
    const missing = end - this.memory.buffer.byteLength;
    if (missing <= 0) return;
    try {
      this.memory.grow(Math.ceil(missing / PAGE_SIZE));
    } catch {
      throw outOfMemory(missing);
    }
  }

  /** A view that reaches so far: the one before a growth does not. */
  #current(end: number): Uint8Array<ArrayBufferLike> {
    if (this.#view.length < end) this.#view = new Uint8Array(this.memory.buffer);
    return this.#view;
  }
}

/** What is needed to make a `WasmInstance`. */
export interface Made {
  readonly module: WebAssembly.Module;
  readonly memory: WebAssembly.Memory;
  readonly region: Region | undefined;
  readonly exports: WebAssembly.Exports;
}

/** Compiles where that is to be done, and instantiates. */
export async function instantiate(source: ModuleSource, options: InstanceOptions): Promise<Made> {
  const module = await compile(source);
  const memory = options.memory ?? new WebAssembly.Memory({
    initial: MEMORY_PAGES,
    maximum: MEMORY_PAGES_MAX,
    shared: true,
  });
  const { exports } = await WebAssembly.instantiate(module, {
    env: { memory },
    millrace: { now_us: () => performance.now() * 1000 },
  });
  return { module, memory, region: options.region, exports };
}

async function compile(source: ModuleSource): Promise<WebAssembly.Module> {
  if (source instanceof WebAssembly.Module) return source;
  if (source instanceof URL) return await compile(await fetch(source));
  if (!(source instanceof Response)) return await WebAssembly.compile(source);
  if (!source.ok) throw new TypeError(`Cannot load ${source.url}: HTTP status ${source.status}`);
  return await WebAssembly.compile(await source.arrayBuffer());
}

/** The error for a status below 0. `reason` is a number beside it, 0 for none. */
export function errorOf(status: number, what: string, reason = 0): Error {
  if (status === STATUS_INVALID) {
    return new RangeError(`Cannot ${what}: an argument is out of range, or it is not the time`);
  }
  const code = REASON_NAMES[-status] ?? `reason ${-status}`;
  const why = reason === 0 ? undefined : REASON_NAMES[reason] ?? `reason ${reason}`;
  return new WasmError(code, `Cannot ${what}`, why);
}

/** How this thread sleeps and what it rings, for `src/wasm.zig`. */
export function threadOf(): number {
  return MECHANISM_AGENT | (mayBlock() ? 0 : NO_BLOCK);
}

/** Whether this thread may block; a browser's main thread may not. */
function mayBlock(): boolean {
  try {
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 0);
    return true;
  } catch {
    return false;
  }
}

function alignUp(value: number, alignment: number): number {
  return Math.ceil(value / alignment) * alignment;
}

function outOfMemory(size: number): RangeError {
  return new RangeError(`Cannot allocate ${size} bytes: the memory ends there`);
}
