/**
 * Bytes of a ring that are handed to the caller where they lie. See `spec/pipe.md`.
 *
 * Each end has one of these objects and fills it anew for each loan, so that lending allocates
 * nothing unless `payload` is asked for.
 *
 * @module
 */

import { FRAME_FLAG_FIRST, FRAME_HEADER_SIZE } from "./layout.ts";
import type { Inlet } from "./pipe_inlet.ts";

/**
 * The place of a claimed message, to be filled. Valid until it is finished or abandoned.
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
  /** Bytes of it: those that are claimed, or of the message that are lent. */
  size = 0;

  /**
   * Made by one end of a pipe.
   *
   * @internal
   */
  constructor(area: Uint8Array) {
    this.area = area;
  }

  /** These bytes as a view of their own, made anew each time. */
  get payload(): Uint8Array {
    return this.area.subarray(this.offset, this.offset + this.size);
  }
}

/**
 * A frame lent to be read: a whole message, or one chunk. Valid until `release`.
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
  /** The memory that holds the payload. */
  declare area: Uint8Array;
  /** Whether the message begins here. */
  first = true;
  /** Whether the message ends here. */
  last = true;
  /** Bytes of the whole message; undefined where its writer did not know them as it began. */
  total: number | undefined = 0;
  /** The kind of the message; 1 is data. */
  kind = 0;
  /** The codec of the message. */
  codec = 0;
  /** The tag of the message. */
  tag = 0;

  /**
   * Shows what an inlet has lent: the frame that it stands before, or a message that was taken out
   * of the ring before, and fills its area.
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
