/**
 * What a value is, also if another realm has made it: an iframe, a `vm` context of Node, or a test
 * framework that gives its tests the classes of a page. `instanceof` knows those of one realm only.
 *
 * @module
 */

import { throwCannot } from "../error.ts";

/** What the language calls the class of a value, such as `Map` or `ArrayBuffer`. */
export const classOf = (value: unknown): string =>
  Object.prototype.toString.call(value).slice(8, -1);

/** Whether a value is bytes. Most are of this realm, and are found by the first test. */
export const isBytes = (value: unknown): value is Uint8Array =>
  typeof value === "object" &&
  (value instanceof Uint8Array || ArrayBuffer.isView(value) && classOf(value) === "Uint8Array");

/** Whether a buffer, or the one of a view, was transferred, or is too small now for the view. */
export function isGone(memory: ArrayBufferView | ArrayBuffer): boolean {
  try {
    // If its memory is gone, a `DataView` throws here, while others look empty.
    if (memory.byteLength > 0 || classOf(memory) === "DataView") return false;
    const view = ArrayBuffer.isView(memory) ? memory : new Uint8Array(memory);
    Uint8Array.prototype.keys.call(view as Uint8Array);
    return false;
  } catch {
    return true;
  }
}

/** Throws for an array whose memory is gone, which would count as empty. */
export function requireMemory(bytes: Uint8Array): void {
  try {
    if (!bytes.length) bytes.keys(); // throws if the memory is gone
  } catch {
    throwCannot("read bytes: they were detached, or their memory is smaller now");
  }
}
