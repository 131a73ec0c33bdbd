/**
 * What a `SABPipe` lies on: Millrace's ring, or the original's mailbox. Both sides make the same
 * choice, from the offset and the size of the section, which both know.
 *
 * @module
 */

import type { MillraceError } from "../error.ts";
import { now } from "../memory/clock.ts";
import { layout } from "../memory/layout.ts";
import { type Geometry, segmentSize } from "../memory/plan.ts";
import { Segment } from "../memory/segment.ts";

/**
 * `ring` is Millrace's own wire, the default. `mailbox` is, byte for byte, the original's.
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

/** The piece of shared memory that one pipe uses. */
export interface Section {
  /** The memory that contains the section. */
  readonly buffer: SharedArrayBuffer;
  /** Where the section begins in it, in bytes. */
  readonly byteOffset: number;
  /** The size of the section in bytes. */
  readonly byteLength: number;
}

/** Takes a burst, oldest first, if there is one. With `mayLoad`, looks for what is new. */
export type Source = (mayLoad: boolean) => unknown[] | undefined;

/**
 * Returns the capacity of the largest ring that fits the section; 0 if no ring does, so that the
 * section is a mailbox.
 */
export function ringCapacity({ byteOffset, byteLength }: Section): number {
  if (byteOffset % layout.SEGMENT_ALIGN !== 0 || byteLength % layout.SEGMENT_ALIGN !== 0) return 0;
  const least = segmentSize(ringGeometry(layout.RING_CAPACITY_MIN));
  const most = Math.min(byteLength - least + layout.RING_CAPACITY_MIN, layout.RING_CAPACITY_MAX);
  return most < layout.RING_CAPACITY_MIN ? 0 : 2 ** (31 - Math.clz32(most));
}

/** Returns the segment in a section. The side that comes first formats it. */
export function openSegment(section: Section, capacity: number): Segment {
  const geometry = ringGeometry(capacity);
  const until = now() + layout.WAIT_SLICE_MS;
  let options = {};
  for (;;) {
    try {
      return Segment.create(section, geometry, options);
    } catch (error) {
      const { code } = error as MillraceError;
      const busy = code === "wait.forbidden" || code === "segment.unready";
      // The other side is formatting the segment at this moment, which takes microseconds. This
      // thread must not block (a page's main thread), so it tries again and again.
      if (!busy || now() >= until) throw error;
      options = { timeout: 0 };
    }
  }
}

/** Endpoint 0 writes, endpoint 1 reads. */
function ringGeometry(capacity: number): Geometry {
  return { endpoints: 2, channels: [{ writer: 0, reader: 1, capacity }] };
}

/** Whether an error says that a pipe is over, by either side. */
export function isClosing(error: unknown): boolean {
  return /^(pipe|peer)\./.test(Object(error).code);
}

/** Makes the error that every call of a disposed pipe throws. */
export function disposedError(cause?: unknown): Error {
  return new Error("SABPipe disposed", { cause });
}
