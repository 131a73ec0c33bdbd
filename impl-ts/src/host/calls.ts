/**
 * What segments in files need of a runtime: a few calls of Linux, which Deno makes by its foreign
 * functions and Node by an addon. All that is above this is the same for both.
 *
 * @module
 */

import { openDeno } from "./calls_deno.ts";
import { openNode } from "./calls_node.ts";

/** Memory that a runtime has mapped, as it is named in further calls. */
export type HostMemory = object;

/** A mapped file. */
export interface HostMapping {
  readonly memory: HostMemory;
  /**
   * All of its bytes. The engine takes them for memory of its own, and not for shared memory: they
   * can be touched for as long as somebody has the buffer.
   */
  readonly buffer: ArrayBuffer;
}

/**
 * The calls. A number below 0 is that of the system's error, with its sign turned; what else is
 * answered is said where it is more than success. Descriptors are those that `open` and
 * `openMemory` have answered and `close` has not ended; sizes and offsets are in bytes, and an
 * offset in memory is that of a 32-bit word.
 */
export interface HostCalls {
  /** The processor, of which the numbers of some flags depend. */
  readonly processor: string;
  readonly pid: number;
  /** Asks for the permission to read and write a path, where the runtime has such. */
  requireAccess(path: string): void;

  /** Answers the descriptor of a file. No child process gets it. */
  open(path: string, flags: number, mode: number): number;
  /** Answers that of a file in memory, which has this name in lists only. */
  openMemory(name: string, flags: number): number;
  close(fd: number): number;
  link(from: string, to: string, flags: number): number;
  unlink(path: string): number;
  setMode(fd: number, mode: number): number;
  addSeals(fd: number, seals: number): number;
  /** Answers the seals. */
  getSeals(fd: number): number;
  /** Makes a file so long, with a place for each byte on its device. */
  reserve(fd: number, size: number): number;
  /** Locks bytes for this open file description alone; does not wait. */
  lock(fd: number, start: number, size: number): number;
  unlock(fd: number, start: number, size: number): number;
  /** Answers whether another open file description has one of these bytes: 0 or 1. */
  isLocked(fd: number, start: number, size: number): number;
  /** The user as whom this process acts. */
  user(): number;
  /** `struct statx`. */
  statusOf(fd: number): ArrayBuffer | number;
  statusAt(path: string, flags: number): ArrayBuffer | number;
  /** The first bytes of a file, as many as there are. */
  read(fd: number, size: number): ArrayBuffer | number;

  /** Maps the first bytes of a file, to read and write, together with other processes. */
  map(fd: number, size: number): HostMapping | number;
  /** Puts private, empty memory into the place of the file. The buffer can still be touched. */
  release(memory: HostMemory): number;
  /** Sleeps while a word holds `expected`, at most `ms`, which is at most 1,000. */
  sleep(memory: HostMemory, offset: number, expected: number, ms: number): number;
  /**
   * The same without blocking; resolves with `false` if nothing but the time has ended it.
   * `undefined` where a timer has to do. `keeps` says whether it may keep the process alive.
   */
  sleepAsync(
    memory: HostMemory,
    offset: number,
    expected: number,
    ms: number,
    keeps: boolean,
  ): Promise<boolean> | undefined;
  /** Wakes all that sleep on a word, in any process, and answers their number. */
  wake(memory: HostMemory, offset: number): number;
}

let opened: HostCalls | undefined;

/**
 * Those of the runtime that this is, opened once.
 *
 * @throws {SystemError} `ENOSYS` where there are none.
 */
export function hostCalls(): HostCalls {
  return opened ??= globalThis.Deno === undefined ? openNode() : openDeno();
}
