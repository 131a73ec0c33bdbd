/**
 * The bytes of a file as memory.
 *
 * @module
 */

import { hostCalls, type HostMapping, type HostMemory } from "./calls.ts";
import { SystemError } from "./system_error.ts";

/**
 * A mapped file. Its buffer can be touched for ever: `release` puts empty memory into its place,
 * and that goes when the buffer is collected. So a call that comes late, the end of an asynchronous
 * wait for one, never touches what is not there.
 */
export class Mapping implements HostMapping {
  readonly memory: HostMemory;
  readonly buffer: ArrayBuffer;

  /** @throws {SystemError} if it cannot be mapped. */
  constructor(fd: number, size: number) {
    const mapping = hostCalls().map(fd, size);
    if (typeof mapping === "number") throw new SystemError("Cannot map file", -mapping, "mmap");
    this.memory = mapping.memory;
    this.buffer = mapping.buffer;
  }

  /** Lets go of the file. The buffer is private from then on, and all zero. */
  release(): void {
    // Where it cannot, the file stays mapped until the buffer is collected.
    hostCalls().release(this.memory);
  }
}
