/**
 * Values of which JSON keeps nothing: views and buffers of memory, maps and sets. `JSON.stringify`
 * makes `{}` of them, or `{"0":1}`, which nobody can have meant. See `spec/codec.md`.
 *
 * @module
 */

import { throwCannot } from "../error.ts";
import { classOf, isBytes } from "../memory/realm.ts";
import { instanceName, pathOf } from "./path.ts";

/**
 * Throws a `TypeError` with the path, if JSON would lose a value, or one of its fields. That costs
 * 2 to 3 % of the time of a write and a read, and 6 % for a message of five short fields; two
 * levels cost 4 to 8 % (measured: Deno 2.9, four messages of 60 to 463 bytes).
 */
export function requireJson(value: unknown): void {
  if (value && typeof value === "object" && mayHideIn(value, 1)) refuseParts(value);
}

/**
 * Whether bytes are in a value that JSON could carry otherwise.
 *
 * @throws {TypeError} with the path, if there is anything else that JSON would lose.
 */
export function hasBytes(value: unknown): boolean {
  refuseParts(value, (part) => isLost(part) && !isBytes(part));
  return pathTo(value, isBytes) !== undefined;
}

/** Whether JSON may lose a part of a value, down to so many levels below it. */
export const mayHide = (value: unknown, levels: number): boolean =>
  !!value && typeof value === "object" && mayHideIn(value, levels);

function mayHideIn(value: object, levels: number): boolean {
  // The classes that are looked for show no fields, except for views. So a look at the class, which
  // takes longer, is needed for few objects.
  if (ArrayBuffer.isView(value)) return true;
  if (Array.isArray(value)) {
    for (let index = 0; levels && index < value.length; index++) {
      const item: unknown = value[index];
      if (item && typeof item === "object" && mayHideIn(item, levels - 1)) return true;
    }
    return false;
  }
  let isEmpty = true;
  // This sees what is inherited as well, which JSON leaves out, and a search for its path.
  for (const key in value) {
    if (!levels) return false;
    isEmpty = false;
    const field = (value as Record<string, unknown>)[key];
    if (field && typeof field === "object" && mayHideIn(field, levels - 1)) return true;
  }
  return isEmpty && isLost(value);
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
export const isLost = (value: object): boolean =>
  ArrayBuffer.isView(value) || /^(Map|Set|(Shared)?ArrayBuffer)$/.test(classOf(value));

/** Throws for the first part of a value that is refused, if there is one. */
export function refuseParts(value: unknown, isRefused: (part: object) => boolean = isLost): void {
  const path = pathTo(value, isRefused);
  if (path) throwCannot(`write message: JSON cannot carry $${path}: use the codec cbor`);
}

/** The path to the first part of a value that is looked for, and what that is. */
function pathTo(
  value: unknown,
  isIt: (part: object) => boolean,
  seen: Set<object> = new Set(),
): string | undefined {
  if (!value || typeof value !== "object" || seen.has(value)) return undefined;
  // What says by itself how it becomes JSON loses nothing.
  const { toJSON } = value as { toJSON?: unknown };
  if (typeof toJSON === "function" && !ArrayBuffer.isView(value)) return undefined;
  if (isIt(value)) return `, ${instanceName(value)}`;
  if (isLost(value)) return undefined;
  seen.add(value);
  for (const [key, part] of Object.entries(value)) {
    const path = pathTo(part, isIt, seen);
    if (path) return (Array.isArray(value) ? `[${key}]` : pathOf(key)) + path;
  }
  return undefined;
}
