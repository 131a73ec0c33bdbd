/**
 * Values of which JSON keeps nothing: views and buffers of memory, maps and sets. `JSON.stringify`
 * makes `{}` of them, or `{"0":1}`, which nobody can have meant. See `spec/codec.md`.
 *
 * @module
 */

import { cannot } from "../error.ts";
import { classOf, isBytes } from "../memory/realm.ts";
import { instanceName, pathOf } from "./path.ts";

/**
 * How deep `requireJson` looks: at a value, at its fields, and at theirs. That costs 1 to 5 % of
 * the time that JSON takes to write and read a message; to look at all of it would cost up to 7 %
 * (measured: Deno 2.9, Node 20 and 24; five messages of 119 bytes to 48 KB).
 */
export const SURFACE = 2;

const PLAIN = Object.prototype;
const LIST = Array.prototype;
const LOST = /^(Map|Set|ArrayBuffer|SharedArrayBuffer)$/;

/** Throws a `TypeError` with the path, if JSON would lose a part of a value near its surface. */
export function requireJson(value: unknown): void {
  if (mayHide(value, SURFACE)) refuseParts(value, isLost);
}

/**
 * Whether bytes are in a value that JSON could carry otherwise.
 *
 * @throws {TypeError} with the path, if there is anything else that JSON would lose.
 */
export function hasBytes(value: unknown): boolean {
  refuseParts(value, (part) => isLost(part) && !isBytes(part));
  return pathTo(value, isBytes, new Set()) !== undefined;
}

/** Whether JSON may lose a part of a value, down to so many levels below it. */
export function mayHide(value: unknown, levels: number): boolean {
  if (typeof value !== "object" || value === null) return false;
  const prototype = Object.getPrototypeOf(value);
  if (prototype !== PLAIN && prototype !== LIST && isLost(value)) return true;
  if (levels === 0) return false;
  if (Array.isArray(value)) {
    for (let index = 0; index < value.length; index++) {
      const item: unknown = value[index];
      if (typeof item === "object" && mayHide(item, levels - 1)) return true;
    }
  } else {
    // This sees what is inherited as well, which JSON leaves out, and a search for its path.
    for (const key in value) {
      const field = (value as Record<string, unknown>)[key];
      if (typeof field === "object" && mayHide(field, levels - 1)) return true;
    }
  }
  return false;
}

/** The same for all levels of a value, as far as the stack of this thread reaches. */
export function mayHideAnywhere(value: unknown): boolean {
  try {
    return mayHide(value, Infinity);
  } catch {
    return false; // the writer of JSON reaches further in some engines
  }
}

/** Whether JSON keeps nothing of what an object is. */
export function isLost(value: object): boolean {
  return ArrayBuffer.isView(value) || LOST.test(classOf(value));
}

/** Throws for the first part of a value that is refused, if there is one. */
export function refuseParts(value: unknown, isRefused: (part: object) => boolean): void {
  const path = pathTo(value, isRefused, new Set());
  if (path !== undefined) cannot(`write message: JSON cannot carry $${path}: use the codec cbor`);
}

/** The path to the first part of a value that is looked for, and what that is. */
function pathTo(
  value: unknown,
  isIt: (part: object) => boolean,
  seen: Set<object>,
): string | undefined {
  if (typeof value !== "object" || value === null || seen.has(value)) return undefined;
  // What says by itself how it becomes JSON loses nothing.
  const { toJSON } = value as { toJSON?: unknown };
  if (typeof toJSON === "function" && !ArrayBuffer.isView(value)) return undefined;
  if (isIt(value)) return `, ${instanceName(value)}`;
  if (isLost(value)) return undefined;
  seen.add(value);
  for (const [key, part] of Object.entries(value)) {
    const path = pathTo(part, isIt, seen);
    if (path !== undefined) return (Array.isArray(value) ? `[${key}]` : pathOf(key)) + path;
  }
  return undefined;
}
