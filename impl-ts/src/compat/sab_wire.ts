/**
 * What a `SABPipe` lies on: Millrace's ring, or the original's mailbox. Both sides make the same
 * choice, from the offset and the size of the section, which both know.
 *
 * @module
 */

import { MillraceError } from "../error.ts";
import { now } from "../memory/clock.ts";
import { layout } from "../memory/layout.ts";
import { type Geometry, segmentSize } from "../memory/plan.ts";
import { Segment } from "../memory/segment.ts";
import type { Delivery } from "../pipe/link.ts";
import type { Outgoing } from "../pipe/outgoing.ts";

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

/** What the two ends of a wire have in common. */
export interface Wire {
  /** Who is tended. What it returns is not 0 if it waits: then it is tended when it may go on. */
  owner: Delivery;
  /** Whether either side has closed the wire, or the writer has ended the stream. */
  readonly disposed: boolean;
  /** Tends the owner, now or at the end of the job. */
  tend(): void;
  tendSoon(): void;
  /** Closes the wire for both sides. Tends the owner soon. */
  close(): void;
}

/** The writing end of a wire. It writes one burst at a time: `begin`, then `carryOn` to its end. */
export interface WriterWire extends Wire {
  /** Whether a burst may begin. Throws if the wire is closed or broken. */
  readonly mayBegin: boolean;
  /** The reason why some values of the burst are not written: they cannot be encoded as JSON. */
  readonly fault: Fault | undefined;
  /** The outgoing side of the ring, if the wire is a ring. */
  readonly outgoing?: Outgoing;
  /** Begins a burst. The caller must not change `values` until the burst is written. */
  begin(values: readonly unknown[]): void;
  /** Writes as much as there is room for. Never waits. Returns true when the burst is written. */
  carryOn(): boolean;
}

/** The reading end of a wire. */
export interface ReaderWire extends Wire {
  /** The writing end of the same port: a message read here may answer one written there. */
  writer?: WriterWire | undefined;
  /**
   * Takes one burst, oldest first, if there is one. The parts of an incomplete large message are
   * kept for the next call.
   */
  take(): unknown[] | undefined;
  /**
   * Blocks until there may be something to take. Returns false at the deadline, in milliseconds of
   * `now()`. `waits` is how often the same call has waited before.
   */
  wait(deadline: number, waits: number): boolean;
  /**
   * On an event loop, spins for a short while if an answer is due. Returns whether one has come.
   */
  spinForAnswer?(): boolean;
}

/** The error that was thrown while a value was being encoded. */
export interface Fault {
  readonly reason: unknown;
}

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
  return error instanceof MillraceError && /^(pipe|peer)\./.test(error.code);
}

/** Makes the error that every call of a disposed pipe throws. */
export function disposedError(cause?: unknown): Error {
  return new Error("SABPipe disposed", { cause });
}
