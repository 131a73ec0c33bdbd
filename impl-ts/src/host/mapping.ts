/**
 * The bytes of a file as memory.
 *
 * @module
 */

import { map, mapEmpty, unmap, viewMemory } from "./libc.ts";

/**
 * A mapped file. Its buffer can be touched for ever: `release` puts empty memory into its place,
 * and that goes when the buffer is collected. So a call that comes late, the end of an asynchronous
 * wait for one, never touches what is not there.
 */
export class Mapping {
  /** The address of the first byte. */
  readonly address: bigint;
  /** All bytes. The engine takes it for memory of its own, and not for shared memory. */
  readonly buffer: ArrayBuffer;

  /** @throws {SystemError} if it cannot be mapped. */
  constructor(fd: number, size: number) {
    this.address = map(fd, size);
    this.buffer = viewMemory(this.address, size);
    places.register(this.buffer, { address: this.address, size });
  }

  /** Lets go of the file. The buffer is private from then on, and all zero. */
  release(): void {
    // Where it cannot, the file stays mapped until the buffer is collected.
    mapEmpty(this.address, this.buffer.byteLength);
  }
}

const places = new FinalizationRegistry<{ address: bigint; size: number }>(
  ({ address, size }) => unmap(address, size),
);
