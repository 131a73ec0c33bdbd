/**
 * What a `SABPipe` lies on: Millrace's ring, or the original's mailbox. Both sides make the same
 * choice, from the offset and the size of the section, which both know.
 *
 * @module
 */

import { ClosedError, PeerClosedError, PeerFailedError } from "../error.ts";
import { ForbiddenError, SegmentError } from "../error.ts";
import {
  RING_CAPACITY_MAX,
  RING_CAPACITY_MIN,
  SEGMENT_ALIGN,
  WAIT_SLICE_MS,
} from "../memory/layout.ts";
import type { Outlet } from "../pipe/outlet.ts";
import { now, Segment } from "../memory/segment.ts";
import { type Geometry, segmentSize } from "../memory/segment_geometry.ts";

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
  /** Whether either side has closed the wire, or the writer has ended the stream. */
  readonly disposed: boolean;
  /**
   * Begins a sleep. `over` is called once: when there may be room or a burst, when the wire is
   * closed or nudged, or after `ms` milliseconds. It must do no more than schedule a microtask.
   * Returns false, and does not sleep, if something may be there already. There is at most one
   * sleep at a time.
   */
  sleep(ms: number, over: () => void): boolean;
  /** Ends the sleep. */
  nudge(): void;
  /**
   * From `keepAlive(true)` to `keepAlive(false)`, this end listens and keeps the event loop alive;
   * nestable.
   */
  keepAlive(on: boolean): void;
  /** Lets the event loop turn if it has not for a while. */
  giveWay(): Promise<void> | undefined;
  /** Closes the wire for both sides. */
  close(): void;
}

/** The writing end of a wire. It writes one burst at a time: `begin`, then `carryOn` to its end. */
export interface WriterWire extends Wire {
  /** Whether a burst may begin. Throws if the wire is closed or broken. */
  readonly mayBegin: boolean;
  /** The outlet of the ring, if the wire is a ring. */
  readonly lane?: Outlet;
  /** The reason why some values of the burst are not written: they cannot be encoded as JSON. */
  readonly fault: Fault | undefined;
  /** Begins a burst. The caller must not change `values` until the burst is written. */
  begin(values: readonly unknown[]): void;
  /** Writes as much as there is room for. Never waits. Returns true when the burst is written. */
  carryOn(): boolean;
}

/** The reading end of a wire. */
export interface ReaderWire extends Wire {
  /**
   * The outlet of the same port, if there is one: a message read here may answer one written there.
   * Undefined for a single pipe, and on the mailbox.
   */
  outgoing?: Outlet | undefined;
  /**
   * Takes one burst, oldest first, if there is one. The parts of an incomplete large message are
   * kept for the next call.
   */
  tryTake(): unknown[] | undefined;
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

/** Sleeps once, for at most `ms` milliseconds. */
export function sleepOn(wire: Wire, ms: number): Promise<void> {
  return new Promise((resolve) => {
    if (!wire.sleep(ms, resolve)) resolve(wire.giveWay());
  });
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
  if (byteOffset % SEGMENT_ALIGN !== 0 || byteLength % SEGMENT_ALIGN !== 0) return 0;
  const least = segmentSize(ringGeometry(RING_CAPACITY_MIN));
  const most = Math.min(byteLength - least + RING_CAPACITY_MIN, RING_CAPACITY_MAX);
  return most < RING_CAPACITY_MIN ? 0 : 2 ** (31 - Math.clz32(most));
}

/** Returns the segment in a section. The side that comes first formats it. */
export function openSegment(section: Section, capacity: number): Segment {
  const geometry = ringGeometry(capacity);
  const until = now() + WAIT_SLICE_MS;
  let options = {};
  for (;;) {
    try {
      return Segment.create(section, geometry, options);
    } catch (error) {
      const busy = error instanceof ForbiddenError ||
        (error instanceof SegmentError && error.code === "segment.unready");
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

/** Whether an error says that a pipe is closed, by either side. */
export function isClosing(error: unknown): boolean {
  return error instanceof ClosedError || error instanceof PeerClosedError ||
    error instanceof PeerFailedError;
}

/** Makes the error that every call of a disposed pipe throws. */
export function disposedError(cause?: unknown): Error {
  return new Error("SABPipe disposed", { cause });
}
