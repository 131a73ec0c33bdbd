/**
 * The few calls of Linux that segments in files need from a runtime. Deno makes them by foreign
 * functions, Node by an addon. All code above this interface is the same for both.
 *
 * @module
 */

import { openDeno } from "./calls_deno.ts";
import { openNode } from "./calls_node.ts";

/** Memory that a runtime has mapped; later calls refer to it by this object. */
export type HostMemory = object;

/** A mapped file. */
export interface HostMapping {
  readonly memory: HostMemory;
  /**
   * All bytes of the file. The engine takes the buffer for ordinary memory of its own, not for
   * shared memory. The bytes can be touched for as long as the buffer is referenced.
   */
  readonly buffer: ArrayBuffer;
}

/**
 * The calls. A result below 0 is the negated number of a system error; where other results mean
 * more than success, the comment of the call says so. Descriptors are results of `open` and
 * `openMemory` that were not passed to `close`. Sizes and offsets are in bytes; an offset in memory
 * is that of a 32-bit word.
 */
export interface HostCalls {
  /** The architecture of the processor. The values of some flags depend on it. */
  readonly processor: string;
  readonly pid: number;
  /** Asks for permission to read and write a path, if the runtime has permissions. */
  requireAccess(path: string): void;

  /** Returns the descriptor of a file. Child processes do not inherit it. */
  open(path: string, flags: number, mode: number): number;
  /** Returns the descriptor of a file in memory, whose name appears in lists only. */
  openMemory(name: string, flags: number): number;
  close(fd: number): number;
  link(from: string, to: string, flags: number): number;
  unlink(path: string): number;
  setMode(fd: number, mode: number): number;
  addSeals(fd: number, seals: number): number;
  /** Returns the seals. */
  getSeals(fd: number): number;
  /** Makes a file `size` bytes long, and reserves space for all of them on its device. */
  reserve(fd: number, size: number): number;
  /** Locks bytes for this open file description alone. Does not wait. */
  lock(fd: number, start: number, size: number): number;
  unlock(fd: number, start: number, size: number): number;
  /** Returns whether another open file description has a lock on any of these bytes: 0 or 1. */
  isLocked(fd: number, start: number, size: number): number;
  /** The effective user of this process. */
  user(): number;
  /** Return a `struct statx`. */
  statusOf(fd: number): ArrayBuffer | number;
  statusAt(path: string, flags: number): ArrayBuffer | number;
  /** Returns the first bytes of a file; fewer than `size` if the file is shorter. */
  read(fd: number, size: number): ArrayBuffer | number;

  /** Maps the first bytes of a file to read and write, shared with other processes. */
  map(fd: number, size: number): HostMapping | number;
  /** Replaces the mapped file by private, empty memory. The buffer can still be touched. */
  release(memory: HostMemory): number;
  /** Sleeps while a word holds `expected`, for at most `ms` milliseconds, of at most 1,000. */
  sleep(memory: HostMemory, offset: number, expected: number, ms: number): number;
  /**
   * Sleeps without blocking. Resolves with `false` if only the timeout has ended the sleep. Returns
   * `undefined` where a timer has to take its place. `keeps` says whether the sleep may keep the
   * process alive.
   */
  sleepAsync(
    memory: HostMemory,
    offset: number,
    expected: number,
    ms: number,
    keeps: boolean,
  ): Promise<boolean> | undefined;
  /** Wakes all threads of any process that sleep on a word. Returns their number. */
  wake(memory: HostMemory, offset: number): number;
}

let opened: HostCalls | undefined;

/**
 * Returns the calls of this runtime, opened once.
 *
 * @throws {SystemError} `ENOSYS` if the runtime or the system does not have them.
 */
export function hostCalls(): HostCalls {
  return opened ??= globalThis.Deno === undefined ? openNode() : openDeno();
}
