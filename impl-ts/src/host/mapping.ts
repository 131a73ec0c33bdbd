/**
 * The bytes of a file as memory.
 *
 * @module
 */

import { hostCalls, type HostMapping, type HostMemory } from "./calls.ts";
import { SystemError } from "./system_error.ts";

/**
 * A mapped file. Its buffer can be touched at any time: `release` replaces the file by empty
 * memory, which is unmapped when the buffer is collected. So a late access, for instance at the end
 * of an asynchronous wait, never touches memory that is not there.
 */
export class Mapping implements HostMapping {
  readonly memory: HostMemory;
  readonly buffer: ArrayBuffer;

  /** @throws {SystemError} if the file cannot be mapped. */
  constructor(fd: number, size: number) {
    const mapping = hostCalls().map(fd, size);
    if (typeof mapping === "number") throw new SystemError("Cannot map file", -mapping, "mmap");
    this.memory = mapping.memory;
    this.buffer = mapping.buffer;
  }

  /** Lets go of the file. From then on the buffer is private, and all zero. */
  release(): void {
    // If this fails, the file stays mapped until the buffer is collected.
    hostCalls().release(this.memory);
  }
}
