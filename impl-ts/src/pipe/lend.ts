/**
 * Bytes of a ring that are lent to the caller in place. See `spec/pipe.md`.
 *
 * Each end of a pipe has one of these objects and fills it anew for each loan. So lending allocates
 * nothing, unless the caller asks for `payload`.
 *
 * @module
 */

import { FRAME_FLAG_FIRST, FRAME_HEADER_SIZE } from "../memory/layout.ts";
import type { Inlet } from "./inlet.ts";

/**
 * The place of a claimed message, for the caller to fill. Valid until the claim is finished or
 * abandoned.
 *
 * @example
 * ```ts
 * import { type Place, Port } from "@millrace/millrace";
 *
 * using here = Port.create<Uint8Array>();
 * using there = Port.attach<Uint8Array>(here.memory); // usually in another thread
 * const { area, offset, size }: Place = here.claim(4); // no view is made
 * for (let i = 0; i < size; i++) area[offset + i] = i;
 * here.publish();
 * console.log(there.read()); // Uint8Array(4) [ 0, 1, 2, 3 ]
 * ```
 */
export class Place {
  /** The ring's byte area. */
  readonly area: Uint8Array;
  /** Where the payload begins in `area`, a multiple of 16. */
  offset = 0;
  /** Bytes of the payload: those that are claimed, or those that are lent. */
  size = 0;

  /**
   * Each end of a pipe makes its own.
   *
   * @internal
   */
  constructor(area: Uint8Array) {
    this.area = area;
  }

  /** The payload as a `Uint8Array`; a new view each time. */
  get payload(): Uint8Array {
    return this.area.subarray(this.offset, this.offset + this.size);
  }
}

/**
 * A frame that is lent to be read: a whole message, or one chunk of it. Valid until `release`.
 *
 * @example
 * ```ts
 * import { type Lent, Port } from "@millrace/millrace";
 *
 * using here = Port.create<Uint8Array>();
 * using there = Port.attach<Uint8Array>(here.memory); // usually in another thread
 * here.write(Uint8Array.of(1, 2, 3));
 * const lent: Lent | undefined = there.peek();
 * let sum = 0;
 * for (let i = 0; i < lent!.size; i++) sum += lent!.area[lent!.offset + i]!;
 * there.release();
 * console.log(sum); // 6
 * ```
 */
export class Lent extends Place {
  /** The memory that holds the payload: the ring's byte area, or a private copy. */
  declare area: Uint8Array;
  /** Whether this is the first frame of its message. */
  first = true;
  /** Whether this is the last frame of its message. */
  last = true;
  /** Bytes of the whole message; undefined if its writer did not know them when it began. */
  total: number | undefined = 0;
  /** The kind of the message; 1 is data. */
  kind = 0;
  /** The codec of the message. */
  codec = 0;
  /** The tag of the message. */
  tag = 0;

  /**
   * Shows what an inlet has lent: the frame at its own cursor, or a message that was taken out of
   * the ring before and is all of `area`.
   *
   * @internal
   */
  show(area: Uint8Array, inlet: Inlet): this {
    const { frame, own, capacity, isLentInRing } = inlet;
    this.area = area;
    this.kind = inlet.kind;
    this.codec = inlet.codec;
    this.tag = inlet.tag;
    if (isLentInRing) {
      this.offset = (own & (capacity - 1)) + FRAME_HEADER_SIZE + frame.lead;
      this.size = frame.size;
      this.first = (frame.flags & FRAME_FLAG_FIRST) !== 0;
      this.last = frame.isLast;
      this.total = frame.isUnknown ? undefined : frame.total;
    } else {
      this.offset = 0;
      this.size = this.total = area.length;
      this.first = this.last = true;
    }
    return this;
  }
}
