/**
 * What a `SABPipe` lies on: Millrace's ring, or the mailbox of the original. Both sides choose from
 * what both know: where the section begins and how long it is.
 *
 * @module
 */

import { isBatchable } from "../codec.ts";
import { ClosedError, PeerClosedError, PeerFailedError } from "../error.ts";
import { ForbiddenError, SegmentError } from "../error.ts";
import { RING_CAPACITY_MAX, RING_CAPACITY_MIN, SEGMENT_ALIGN, WAIT_SLICE_MS } from "../layout.ts";
import { Segment } from "../segment.ts";
import { type Geometry, segmentSize } from "../segment_geometry.ts";

/**
 * `ring`: Millrace's own, the default. `mailbox`: byte for byte that of the original.
 *
 * @example
 * ```ts
 * import { SABPipe, type WireName } from "@millrace/millrace/sab-message-port";
 *
 * for (const wire of ["ring", "mailbox"] satisfies WireName[]) {
 *   const writer = new SABPipe("w", new SharedArrayBuffer(4096), 0, null, null, { wire });
 *   console.log(writer.wire); // "ring", then "mailbox"
 *   writer.destroy();
 * }
 * ```
 */
export type WireName = "ring" | "mailbox";

/** The piece of shared memory that a pipe has to itself. */
export interface Section {
  /** The memory that holds it. */
  readonly buffer: SharedArrayBuffer;
  /** Where it begins, in bytes. */
  readonly byteOffset: number;
  /** How many bytes it has. */
  readonly byteLength: number;
}

/** The writing end of a wire. One burst at a time: begun, then carried on until it is written. */
export interface WriterWire {
  /** Whether either side has closed it. */
  readonly disposed: boolean;
  /** Whether a burst may begin. Throws if the wire is closed or broken. */
  readonly free: boolean;
  /** Begins a burst of one value or more; writes none of it if one of them is no JSON. */
  begin(values: readonly unknown[]): void;
  /** Writes what there is room for, without waiting; true when the whole burst is written. */
  carryOn(): boolean;
  /** Waits until there may be room, or the wire is closed. */
  waitForRoom(): Promise<void>;
  /** Closes it for both sides. */
  close(): void;
}

/** The reading end of a wire. */
export interface ReaderWire {
  /** Whether either side has closed it, or the writer has ended the stream. */
  readonly disposed: boolean;
  /**
   * Takes one burst, oldest first; waits at most `timeout` ms, and with 0 not at all. Parts of a
   * large message are kept for the next call.
   */
  take(timeout: number): unknown[] | undefined;
  /** The same without blocking. An abort loses nothing. */
  takeAsync(timeout: number, signal: AbortSignal): Promise<unknown[] | undefined>;
  /** Closes it for both sides. */
  close(): void;
}

/**
 * The capacity of the ring that a section holds, the largest that fits; 0 if it holds none and is
 * a mailbox.
 */
export function ringCapacity({ byteOffset, byteLength }: Section): number {
  if (byteOffset % SEGMENT_ALIGN !== 0 || byteLength % SEGMENT_ALIGN !== 0) return 0;
  let capacity = 0;
  for (let next = RING_CAPACITY_MIN; next <= RING_CAPACITY_MAX; next *= 2) {
    if (segmentSize(ringGeometry(next)) > byteLength) break;
    capacity = next;
  }
  return capacity;
}

/** The segment in a section: whichever side comes first formats it. */
export function openSegment(section: Section, capacity: number): Segment {
  const geometry = ringGeometry(capacity);
  const until = performance.now() + WAIT_SLICE_MS;
  let options = {};
  for (;;) {
    try {
      return Segment.create(section, geometry, options);
    } catch (error) {
      const busy = error instanceof ForbiddenError ||
        (error instanceof SegmentError && error.code === "segment.unready");
      // The other side formats it at this moment, which takes microseconds, and this thread must
      // not block: a page's main thread looks again and again.
      if (!busy || performance.now() >= until) throw error;
      options = { timeout: 0 };
    }
  }
}

/** Endpoint 0 writes, endpoint 1 reads. */
function ringGeometry(capacity: number): Geometry {
  return { endpoints: 2, channels: [{ writer: 0, reader: 1, capacity }] };
}

/** Whether an error says that a pipe is closed, by whichever side. */
export function isClosing(error: unknown): boolean {
  return error instanceof ClosedError || error instanceof PeerClosedError ||
    error instanceof PeerFailedError;
}

/** What every call of a pipe throws once it is disposed. */
export function disposedError(cause?: unknown): Error {
  return new Error("SABPipe disposed", { cause });
}

/** A value as it stands in a JSON array: what alone would be nothing, or bytes, is not. */
export function toJson(value: unknown): unknown {
  return isBatchable(value) ? value : JSON.parse(JSON.stringify([value]))[0];
}

/** Whether a value can be written in a JSON array. */
export function isSound(value: unknown): boolean {
  try {
    JSON.stringify([value]);
    return true;
  } catch {
    return false;
  }
}
