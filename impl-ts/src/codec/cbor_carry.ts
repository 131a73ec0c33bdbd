/**
 * Converts what the library does not write or read by itself: errors, buffers and regular
 * expressions, which pass through it as tagged arrays. Refuses what the library would change. The
 * library's table of extensions is one for the whole process, so nothing is added to it. See
 * `spec/codec.md`.
 *
 * @module
 */

import { Tag } from "cbor-x/decode";
import {
  BIG_SIZE_MAX,
  PATTERN_SIZE_MAX,
  PROTO,
  TAG_CLASS,
  TAG_CLASS_KEPT,
  TAG_REGEXP,
} from "./cbor_check.ts";
import { isWellFormed } from "./codec.ts";
import { instanceName, pathOf } from "./path.ts";
import { layout } from "../memory/layout.ts";
import { classOf, isBytes, isGone } from "../memory/realm.ts";

/** The error classes that every engine has; those that extend another one come first. */
const ERRORS: readonly ErrorConstructor[] = [
  EvalError,
  RangeError,
  ReferenceError,
  SyntaxError,
  TypeError,
  URIError,
  Error,
];

/** What is said of a view or a buffer that was transferred, or a view that exceeds its buffer. */
const GONE = "whose memory was transferred, or is too small now";

type ViewConstructor = new (buffer: ArrayBufferLike, at: number, length: number) => unknown;

/** The typed arrays that the library knows, by their class names. */
const VIEWS: Readonly<Record<string, ViewConstructor>> = /* @__PURE__ */ Object.fromEntries(
  [
    Uint8Array,
    Uint8ClampedArray,
    Uint16Array,
    Uint32Array,
    BigUint64Array,
    Int8Array,
    Int16Array,
    Int32Array,
    BigInt64Array,
    Float32Array,
    Float64Array,
  ].map((each) => [each.name, each]),
);

/** The most shared values: the library writes their numbers in 16 bits. */
const SHARED_MAX = 0x10000;

/**
 * Makes a copy of a value that the library can write. Encoding the copy runs no code of the caller.
 *
 * @throws {TypeError} if CBOR cannot carry some part of the value, with the path to that part.
 */
export function toWritable(value: unknown): Writable {
  const copier = new Copier();
  const copy = copier.item(value, 0);
  return { copy, deepest: copier.deepest, hasMinusZero: copier.hasMinusZero };
}

/** A value in a form that the library can write. */
export interface Writable {
  copy: unknown;
  /** The largest number of arrays, maps and tags around any value in it. */
  deepest: number;
  /** Whether -0 is in it, which the library would write as the integer 0. */
  hasMinusZero: boolean;
}

/**
 * A step of a path: a property, an element, or the text that stands for a key of a map or of a set.
 */
type Step = string | number | { shown: string };

class Copier {
  deepest = 0;
  hasMinusZero = false;
  readonly #copies = new Map<object, unknown>();
  readonly #shared = new Set<object>();
  /**
   * Objects under way that must not contain themselves: the library supports that only for arrays
   * and plain objects.
   */
  readonly #open = new Set<object>();
  readonly #path: Step[] = [];

  item(value: unknown, depth: number): unknown {
    switch (typeof value) {
      case "object":
        return value === null ? null : this.#object(value, depth);
      case "number":
        if (value === 0 && Object.is(value, -0)) this.hasMinusZero = true;
        return value;
      case "string":
        if (isWellFormed(value)) return value;
        throw this.#cannot("a text with a lone surrogate");
      case "bigint":
        if (BigInt.asIntN(8 * BIG_SIZE_MAX, value) === value) return value;
        throw refusal("it has too many items");
      case "function":
      case "symbol":
        throw this.#cannot(`a ${typeof value}`);
    }
    return value;
  }

  #object(value: object, depth: number): unknown {
    if (this.#open.has(value)) throw this.#cannot(`${instanceName(value)} within itself`);
    const copy = this.#copies.get(value);
    if (copy === undefined) return this.#new(value, depth);
    if (this.#shared.add(value).size > SHARED_MAX) {
      throw refusal("it has too many objects in several places");
    }
    return copy;
  }

  #new(value: object, depth: number): unknown {
    if (Array.isArray(value)) return this.#array(value, depth + 1);
    const prototype = Object.getPrototypeOf(value);
    // A plain object may also come from another realm.
    const isPlain = prototype === Object.prototype || prototype === null ||
      Object.getPrototypeOf(prototype) === null && value.constructor?.name === "Object";
    if (isPlain) return this.#plain(value as Record<string, unknown>, depth + 1);
    this.#open.add(value);
    const copy = this.#instance(value, depth);
    this.#open.delete(value);
    this.#copies.set(value, copy);
    return copy;
  }

  #instance(value: object, depth: number): unknown {
    if (ArrayBuffer.isView(value)) return this.#view(value);
    if (isA(value, Map)) return this.#map(value, depth + 2);
    if (isA(value, Set)) return this.#set(value, depth + 2);
    if (isA(value, Date)) return new Date(value.getTime());
    if (isA(value, Error) || classOf(value) === "DOMException") {
      return this.#error(value as Error, depth + 3);
    }
    if (isA(value, ArrayBuffer)) {
      if (isGone(value)) throw this.#cannot(GONE);
      return new Tag(["ArrayBuffer", new Uint8Array(value)], TAG_CLASS);
    }
    if (isA(value, RegExp)) {
      if (value.source.length > PATTERN_SIZE_MAX) throw refusal("it has too many items");
      return new Tag([value.source, value.flags], TAG_REGEXP);
    }
    throw this.#cannot(instanceName(value));
  }

  #array(values: readonly unknown[], depth: number): unknown[] {
    const { length } = values;
    const copy = new Array<unknown>(length);
    this.#copies.set(values, copy);
    for (let i = 0; i < length; i++) {
      const value = values[i];
      copy[i] = this.#inside(i, value, depth);
      if (value === undefined && !(i in values)) throw this.#cannot("a hole", i);
    }
    return copy;
  }

  #plain(value: Record<string, unknown>, depth: number): object {
    const copy: Record<string, unknown> = {};
    this.#copies.set(value, copy);
    for (const key of Object.keys(value)) {
      if (key === PROTO) throw this.#cannot("a property of that name", key);
      if (!isWellFormed(key)) throw this.#cannot("a name with a lone surrogate", key);
      copy[key] = this.#inside(key, value[key], depth);
    }
    return copy;
  }

  #map(map: ReadonlyMap<unknown, unknown>, depth: number): Map<unknown, unknown> {
    const copy = new Map<unknown, unknown>();
    for (const [key, value] of map) {
      const step = { shown: `.get(${shownKey(key)})` };
      copy.set(this.#inside(step, key, depth), this.#inside(step, value, depth));
    }
    return copy;
  }

  #set(set: ReadonlySet<unknown>, depth: number): Set<unknown> {
    const copy = new Set<unknown>();
    for (const value of set) copy.add(this.#inside({ shown: `{${copy.size}}` }, value, depth));
    return copy;
  }

  /**
   * An array of the constructor's arguments; the options also hold all else that must come back.
   */
  #error(error: Error, depth: number): Tag {
    const { stack } = error;
    const name = errorClassOf(error);
    const isAggregate = name === "AggregateError";
    const options: Record<string, unknown> = {};
    const set = (key: string, value: unknown) => options[key] = this.#inside(key, value, depth);
    if (error.name !== name) set("name", String(error.name));
    if (typeof stack === "string") set("stack", stack);
    if (Object.hasOwn(error, "cause")) set("cause", error.cause);
    const args: unknown[] = [name, this.#inside("message", String(error.message), depth), options];
    if (isAggregate) {
      args.splice(1, 0, this.#inside("errors", [...(error as AggregateError).errors], depth));
    }
    return new Tag(args, TAG_CLASS);
  }

  #view(view: ArrayBufferView): unknown {
    if (isGone(view)) throw this.#cannot(GONE);
    const { buffer, byteOffset, byteLength } = view;
    if (isA(view, DataView)) {
      const bytes = new Uint8Array(buffer, byteOffset, byteLength);
      return new Tag(["DataView", bytes], TAG_CLASS);
    }
    const View = VIEWS[(view as Uint8Array)[Symbol.toStringTag]];
    if (View === undefined) throw this.#cannot(instanceName(view));
    return new View(buffer, byteOffset, (view as Uint8Array).length);
  }

  #inside(step: Step, value: unknown, depth: number): unknown {
    this.#path.push(step);
    if (depth > this.deepest) {
      if (depth > layout.CBOR_DEPTH_MAX) throw refusal("it is nested too deeply");
      this.deepest = depth;
    }
    const copy = this.item(value, depth);
    this.#path.pop();
    return copy;
  }

  #cannot(what: string, ...further: Step[]): TypeError {
    const path = [...this.#path, ...further].map((step) =>
      typeof step === "number" ? `[${step}]` : typeof step === "string" ? pathOf(step) : step.shown
    );
    return refusal(`CBOR cannot carry $${path.join("")}, ${what}`);
  }
}

/** Whether a value is an instance of a class of the language, in any realm. */
function isA<T>(value: object, Class: abstract new (...args: never[]) => T): value is T & object {
  return value instanceof Class || classOf(value) === Class.name;
}

/** The class of the language that an error belongs to, or that its own class extends. */
function errorClassOf(error: Error): string {
  // In another realm, the classes are known by their names.
  let from: unknown = error;
  while ((from = Object.getPrototypeOf(from)) !== null) {
    const name = (from as Error).constructor?.name;
    if (name === "AggregateError" || ERRORS.some((each) => each.name === name)) return name;
  }
  return "Error";
}

function shownKey(key: unknown): string {
  if (typeof key === "string") return JSON.stringify(key);
  return typeof key === "object" ? "…" : String(key);
}

/** Makes the error for a value that cannot be written. */
export function refusal(why: string): TypeError {
  return new TypeError(`Cannot write message: ${why}`);
}

/**
 * Replaces the tags in a value that was read by the objects that they stand for.
 *
 * @throws {Error} if the content of a tag is invalid.
 */
export function revive(value: unknown): unknown {
  return new Reviver().item(value);
}

class Reviver {
  /** The objects that were converted, and their results. */
  readonly #done = new Map<object, unknown>();
  #patternSize = 0;

  item(value: unknown): unknown {
    if (typeof value !== "object" || value === null) return value;
    if (this.#done.has(value)) return this.#done.get(value);
    if (value instanceof Tag) return this.#tag(value);
    this.#done.set(value, value);
    if (Array.isArray(value)) value.forEach((each, i) => value[i] = this.item(each));
    else if (value instanceof Map) {
      const entries = [...value];
      value.clear();
      for (const [key, each] of entries) value.set(this.item(key), this.item(each));
    } else if (value instanceof Set) {
      const values = [...value];
      value.clear();
      for (const each of values) value.add(this.item(each));
    } else if (Object.getPrototypeOf(value) === Object.prototype) {
      const object = value as Record<string, unknown>;
      for (const key of Object.keys(object)) object[key] = this.item(object[key]);
    }
    return value;
  }

  #tag(tag: Tag): unknown {
    const made = tag.tag === TAG_REGEXP
      ? this.#pattern(tag.value)
      : tag.tag === TAG_CLASS_KEPT
      ? this.#class(tag, tag.value as unknown[])
      : undefined;
    if (made === undefined) throw new Error(`CBOR: tag ${tag.tag} around something else`);
    this.#done.set(tag, made);
    return made;
  }

  #pattern(content: unknown): RegExp | undefined {
    const [source, flags = "", ...rest] = Array.isArray(content) ? content : [content];
    if (typeof source !== "string" || typeof flags !== "string" || rest.length > 0) {
      return undefined;
    }
    this.#patternSize += source.length;
    if (this.#patternSize > PATTERN_SIZE_MAX) throw new Error("CBOR: it has too many items");
    return new RegExp(source, flags);
  }

  #class(tag: Tag, [name, ...args]: unknown[]): unknown {
    if (name === "ArrayBuffer" || name === "DataView") {
      const [bytes, ...rest] = args;
      if (!isBytes(bytes) || rest.length > 0) return undefined;
      // The same bytes may be used elsewhere in the value, so the buffer gets memory of its own.
      const { buffer } = bytes.slice();
      return name === "DataView" ? new DataView(buffer) : buffer;
    }
    const isAggregate = name === "AggregateError";
    const Class = ERRORS.find((each) => each.name === name);
    if (Class === undefined && !isAggregate) return undefined;
    const error = isAggregate ? new AggregateError([]) : new Class!();
    this.#done.set(tag, error);
    if (isAggregate) {
      const errors = this.item(args.shift());
      if (!Array.isArray(errors)) return undefined;
      defineHidden(error, "errors", errors);
    }
    const [message = "", given = {}, ...rest] = args;
    const options = this.item(given);
    const isSound = typeof message === "string" && rest.length === 0 &&
      typeof options === "object" && options !== null &&
      Object.getPrototypeOf(options) === Object.prototype;
    if (!isSound) return undefined;
    defineHidden(error, "message", message);
    const { name: ownName, stack } = options as { name?: unknown; stack?: unknown };
    if (typeof ownName === "string") defineHidden(error, "name", ownName);
    // An error without a stack would show the stack of this reader.
    defineHidden(error, "stack", typeof stack === "string" ? stack : `${error}`);
    if (Object.hasOwn(options, "cause")) defineHidden(error, "cause", (options as Error).cause);
    return error;
  }
}

/** Sets a property as the constructor of an error does: not enumerable. */
function defineHidden(error: Error, name: string, value: unknown): void {
  Object.defineProperty(error, name, { value, configurable: true, writable: true });
}
