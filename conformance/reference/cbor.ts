/**
 * Codec `cbor`: a strict reader of RFC 8949, as far as `spec/codec.md` allows it, that brings a
 * payload into one form: two payloads that mean the same value have the same.
 *
 * @module
 */

import { toHex } from "./bytes.ts";
import { limitOf } from "./layout.ts";

/** A map that has, or may have, other keys than texts. */
const KEYED = "keyed map";
const DEPTH_MAX = limitOf("cbor_depth_max");

/** What an item is; a reference has the node that it means. */
interface Node {
  /** Around its items; a scalar has none. */
  name: string;
  items?: Node[];
  /** Whether each two of the items are a key and a value. */
  isMap?: true;
  /** Whether the order of what it holds has no meaning. */
  isUnordered?: true;
  target?: Node;
  /** Whether it has a number. */
  isShared?: true;
  /** The type of a scalar, where a tag asks for one. */
  bytes?: Uint8Array;
  text?: string;
  number?: number;
}

/** By tag: the elements of a typed array, by name, and how one is read. */
const ELEMENTS = new Map<number, [string, number, (view: DataView, at: number) => unknown]>();
for (const [tag, isLittle] of [[64, false], [68, true]] as const) {
  ELEMENTS.set(tag + 1, ["uint16", 2, (view, at) => view.getUint16(at, isLittle)]);
  ELEMENTS.set(tag + 2, ["uint32", 4, (view, at) => view.getUint32(at, isLittle)]);
  ELEMENTS.set(tag + 3, ["uint64", 8, (view, at) => view.getBigUint64(at, isLittle)]);
  ELEMENTS.set(tag + 9, ["int16", 2, (view, at) => view.getInt16(at, isLittle)]);
  ELEMENTS.set(tag + 10, ["int32", 4, (view, at) => view.getInt32(at, isLittle)]);
  ELEMENTS.set(tag + 11, ["int64", 8, (view, at) => view.getBigInt64(at, isLittle)]);
  ELEMENTS.set(tag + 16, ["float16", 2, (view, at) => half(view.getUint16(at, isLittle))]);
  ELEMENTS.set(tag + 17, ["float32", 4, (view, at) => view.getFloat32(at, isLittle)]);
  ELEMENTS.set(tag + 18, ["float64", 8, (view, at) => view.getFloat64(at, isLittle)]);
}
ELEMENTS.set(68, ["uint8 clamped", 1, (view, at) => view.getUint8(at)]);
ELEMENTS.set(72, ["int8", 1, (view, at) => view.getInt8(at)]);

/**
 * The value of a payload in its one form.
 *
 * @throws {Error} with the fact that is wrong, where no reader may accept it. [codec.bad_cbor]
 */
export function formOfCbor(payload: Uint8Array): string {
  const reader = new Reader(payload);
  const node = reader.item(0);
  expect(reader.at === payload.length, "bytes follow upon the item");
  return print(node, new Map(), referred(node, new Set(), new Set()));
}

class Reader {
  readonly #bytes: Uint8Array;
  readonly #view: DataView;
  readonly #shared: Node[] = [];
  at = 0;

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
    this.#view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  }

  item(depth: number): Node {
    expect(depth <= DEPTH_MAX, "it is nested too deeply");
    const first = this.#take(1)[0]!;
    const [major, info] = [first >> 5, first & 31];
    expect(
      info < 28 || info === 31 && major !== 0 && major !== 1 && major !== 6,
      "a reserved head",
    );
    if (major === 7) return this.#simple(info);
    const count = info === 31 ? undefined : this.#argument(info);
    if (major === 0) return number(count!);
    if (major === 1) return number(-1n - count!);
    if (major === 2 || major === 3) return this.#string(major, count);
    if (major === 6) return this.#tagged(Number(count), depth + 1);
    return this.#items(major === 5, count, depth + 1, { name: major === 5 ? "map" : "array" });
  }

  #take(size: number): Uint8Array {
    expect(size <= this.#bytes.length - this.at, "it ends too early");
    return this.#bytes.subarray(this.at, this.at += size);
  }

  #argument(info: number): bigint {
    if (info < 24) return BigInt(info);
    const bytes = this.#take(2 ** (info - 24));
    return bytes.reduce((sum, byte) => sum * 256n + BigInt(byte), 0n);
  }

  #simple(info: number): Node {
    if (info >= 25 && info <= 27) {
      const size = 2 ** (info - 24);
      const at = this.at;
      this.#take(size);
      const view = this.#view;
      return number(
        size === 2
          ? half(view.getUint16(at))
          : size === 4
          ? view.getFloat32(at)
          : view.getFloat64(at),
      );
    }
    expect(info !== 31, "a break outside of an item");
    const value = info === 24 ? this.#take(1)[0]! : info;
    expect(info !== 24 || value >= 32, "a simple value in the wrong form");
    const name = ["false", "true", "null", "undefined"][value - 20];
    expect(name !== undefined, "a simple value without a meaning");
    return { name };
  }

  #string(major: number, count: bigint | undefined): Node {
    if (count !== undefined) return string(major, this.#take(Number(count)));
    const parts: number[] = [];
    while (!this.#takeBreak()) {
      const first = this.#take(1)[0]!;
      expect(first >> 5 === major && (first & 31) < 28, "a part of another type");
      const part = this.#take(Number(this.#argument(first & 31)));
      string(major, part);
      for (const byte of part) parts.push(byte);
    }
    return string(major, Uint8Array.from(parts));
  }

  /** Takes the byte that ends an item of indefinite length, if it comes next. */
  #takeBreak(): boolean {
    const isIt = this.#bytes[this.at] === 0xff;
    if (isIt) this.at++;
    return isIt;
  }

  #items(isMap: boolean, count: bigint | undefined, depth: number, node: Node): Node {
    node.items = [];
    if (isMap) [node.isMap, node.isUnordered] = [true, true];
    const whole = count === undefined ? undefined : Number(count) * (isMap ? 2 : 1);
    for (let done = 0; whole === undefined || done < whole; done++) {
      if (whole === undefined && (!isMap || done % 2 === 0) && this.#takeBreak()) break;
      node.items.push(this.item(depth));
    }
    const isKeyed = isMap && node.items.some(({ text }, i) => i % 2 === 0 && text === undefined);
    if (isKeyed) node.name = KEYED;
    return node;
  }

  #tagged(tag: number, depth: number): Node {
    if (tag === 28) {
      const node: Node = { name: "" };
      this.#shared.push(node);
      const inner = this.item(depth);
      const isOwn = inner.target === undefined && inner.isShared === undefined;
      expect(isOwn, "tag 28 is around another one, or around a tag 29");
      return Object.assign(node, inner, { isShared: true });
    }
    const must = (good: boolean) => expect(good, `tag ${tag} is around something else`);
    const element = ELEMENTS.get(tag);
    const isTyped = element !== undefined || tag === 64;
    const majors = isTyped ? [2] : AROUND[tag];
    must(majors === undefined || majors.includes(this.#bytes[this.at]! >> 5));
    const inner = this.item(depth);
    const { items = [], bytes, text, number: count } = inner;
    if (isTyped) {
      return element === undefined ? inner : { name: listOf(bytes!, element) };
    }
    switch (tag) {
      case 0:
        must(RFC3339.test(text!) && !isNaN(Date.parse(text!)));
        return { name: `date ${Date.parse(text!)}` };
      case 1:
        must(count !== undefined);
        return { name: `date ${new Date(Math.round(count! * 1000)).getTime()}` };
      case 2:
      case 3: {
        const sum = bytes!.reduce((sum, byte) => sum * 256n + BigInt(byte), 0n);
        return number(tag === 2 ? sum : -1n - sum);
      }
      case 27:
        must(items[0]?.text !== undefined);
        return { name: "class", items: items.flatMap(looked) };
      case 29: {
        const target = this.#shared[count!];
        expect(target !== undefined, "no tag 28 has this number");
        return { name: "", target };
      }
      case 258:
        return { name: "set", items, isUnordered: true };
      case 259:
        return { ...inner, name: KEYED };
      case 21066:
        must(text !== undefined || items.length >= 1 && items.length <= 2);
        must(items.every((each) => each.text !== undefined));
        return {
          name: "regular expression",
          items: [items[0] ?? inner, items[1] ?? { name: '""', text: "" }],
        };
      case 55799:
        return inner;
    }
    throw new Error(`nobody knows tag ${tag}`);
  }
}

/** The types of what a tag is around. */
const AROUND: Record<number, number[]> = {
  0: [3],
  1: [0, 1, 7],
  2: [2],
  3: [2],
  27: [4],
  29: [0],
  258: [4],
  259: [5],
  21066: [3, 4],
};

const RFC3339 = /^\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)$/;

/** The options of an error that its constructor looks at; the stack is another in each thread. */
function looked(node: Node): Node[] {
  if (!node.isMap) return [node];
  const items = node.items!.flatMap((key, i, all) =>
    i % 2 || key.text !== "cause" ? [] : [key, all[i + 1]!]
  );
  return items.length === 0 ? [] : [{ ...node, items }];
}

function number(value: bigint | number): Node {
  const isInteger = typeof value === "bigint" || Number.isInteger(value) && !Object.is(value, -0);
  const name = isInteger ? String(BigInt(value)) : Object.is(value, -0) ? "-0" : String(value);
  return { name, number: Number(value) };
}

function string(major: number, bytes: Uint8Array): Node {
  if (major === 2) return { name: `h'${toHex(bytes)}'`, bytes };
  try {
    const text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
    return { name: JSON.stringify(text), text };
  } catch {
    throw new Error("a text is not well-formed UTF-8");
  }
}

function listOf(
  bytes: Uint8Array,
  [name, size, read]: [string, number, (view: DataView, at: number) => unknown],
): string {
  expect(bytes.length % size === 0, `an array of ${name} is cut`);
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  const all = Array.from({ length: bytes.length / size }, (_, index) => read(view, index * size));
  return `${name} [${all.map((each) => Object.is(each, -0) ? "-0" : String(each)).join(", ")}]`;
}

/** The value of a float of two bytes. */
function half(bits: number): number {
  const [sign, exponent, rest] = [bits >> 15 === 0 ? 1 : -1, (bits >> 10) & 31, bits & 1023];
  if (exponent === 31) return rest === 0 ? sign * Infinity : NaN;
  return sign * (exponent === 0 ? rest * 2 ** -24 : (rest + 1024) * 2 ** (exponent - 25));
}

/** The nodes that others refer to. */
function referred(node: Node, found: Set<Node>, seen: Set<Node>): Set<Node> {
  if (node.target !== undefined) {
    found.add(node.target);
    return found;
  }
  if (seen.has(node)) return found;
  seen.add(node);
  for (const each of node.items ?? []) referred(each, found, seen);
  return found;
}

function print(node: Node, labels: Map<Node, number>, marked: Set<Node>): string {
  const target = node.target ?? node;
  const label = labels.get(target);
  if (label !== undefined) return `#${label}`;
  const { name, items, isMap, isUnordered } = target;
  if (items === undefined) return name;
  let mark = "";
  if (marked.has(target)) {
    labels.set(target, labels.size);
    mark = `#${labels.size - 1}=`;
  }
  const all = items.map((each) => print(each, labels, marked));
  if (!isUnordered) return `${mark}${name}(${all.join(", ")})`;
  // Of equal keys, scalars or one value in two places, the last counts. So for elements of a set.
  const entries = new Map<string | Node, { key: string; value: string }>();
  for (let i = 0; i < all.length; i += isMap ? 2 : 1) {
    const own = items[i]!.target ?? items[i]!;
    const key = all[i] === "-0" ? "0" : all[i]!;
    const id = own.items === undefined ? key : own;
    entries.set(id, { key: entries.get(id)?.key ?? key, value: isMap ? `: ${all[i + 1]}` : "" });
  }
  const lines = [...entries.values()].map(({ key, value }) => key + value);
  return `${mark}${name}(${lines.toSorted().join(", ")})`;
}

function expect(good: boolean, fact: string): asserts good {
  if (!good) throw new Error(fact);
}
