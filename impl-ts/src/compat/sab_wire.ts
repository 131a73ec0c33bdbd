/**
 * What a `SABPipe` lies on: Millrace's ring, or the mailbox of the original. Both sides choose from
 * what both know: where the section begins and how long it is.
 *
 * @module
 */

import { ClosedError, PeerClosedError, PeerFailedError } from "../error.ts";
import { ForbiddenError, SegmentError } from "../error.ts";
import { RING_CAPACITY_MAX, RING_CAPACITY_MIN, SEGMENT_ALIGN, WAIT_SLICE_MS } from "../layout.ts";
import type { Outlet } from "../pipe_outlet.ts";
import { now, Segment } from "../segment.ts";
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

/** What both ends of a wire have. */
export interface Wire {
  /** Whether either side has closed it, or the writer has ended the stream. */
  readonly disposed: boolean;
  /**
   * Has `over` called, once: when there may be room or a burst, the wire is closed or nudged, or
   * so many milliseconds are over. It may only begin a microtask. False: there may be already. One
   * at a time.
   */
  sleep(ms: number, over: () => void): boolean;
  /** Ends that sleep. */
  nudge(): void;
  /** Between the two, which may be nested, this end listens, and the event loop is kept alive. */
  stay(on: boolean): void;
  /** Lets the event loop turn if it has not for a while. */
  giveWay(): Promise<void> | undefined;
  /** Closes it for both sides. */
  close(): void;
}

/** The writing end of a wire. One burst at a time: begun, then carried on until it is written. */
export interface WriterWire extends Wire {
  /** Whether a burst may begin. Throws if the wire is closed or broken. */
  readonly free: boolean;
  /** The way into the ring, where it is one. */
  readonly lane?: Outlet;
  /** Why some values of the burst are not written: they are no JSON. */
  readonly fault: Fault | undefined;
  /** Begins a burst. Its values stay as they are until it is written. */
  begin(values: readonly unknown[]): void;
  /** Writes what there is room for, without waiting; true when the whole burst is written. */
  carryOn(): boolean;
}

/** The reading end of a wire. */
export interface ReaderWire extends Wire {
  /** The way out of the same port, by which it asks; undefined for a pipe, and on the mailbox. */
  outgoing?: Outlet | undefined;
  /**
   * Takes one burst, oldest first, if there is one. Parts of a large message are kept for the next
   * call.
   */
  tryTake(): unknown[] | undefined;
  /**
   * Blocks until there may be something to take; false at the deadline, in milliseconds of
   * `now()`. `waits` are those of the same call before.
   */
  wait(deadline: number, waits: number): boolean;
  /** On an event loop, looks for an answer for a short while, if one is due. True: it is there. */
  awaitAnswer?(): boolean;
}

/** Sleeps once, so many milliseconds at most. */
export function sleepOn(wire: Wire, ms: number): Promise<void> {
  return new Promise((resolve) => {
    if (!wire.sleep(ms, resolve)) resolve(wire.giveWay());
  });
}

/** What a value that could not be written has thrown. */
export interface Fault {
  readonly reason: unknown;
}

/**
 * The capacity of the ring that a section holds, the largest that fits; 0 if it holds none and is
 * a mailbox.
 */
export function ringCapacity({ byteOffset, byteLength }: Section): number {
  if (byteOffset % SEGMENT_ALIGN !== 0 || byteLength % SEGMENT_ALIGN !== 0) return 0;
  const least = segmentSize(ringGeometry(RING_CAPACITY_MIN));
  const most = Math.min(byteLength - least + RING_CAPACITY_MIN, RING_CAPACITY_MAX);
  return most < RING_CAPACITY_MIN ? 0 : 2 ** (31 - Math.clz32(most));
}

/** The segment in a section: whichever side comes first formats it. */
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
      // The other side formats it at this moment, which takes microseconds, and this thread must
      // not block: a page's main thread looks again and again.
      if (!busy || now() >= until) throw error;
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
