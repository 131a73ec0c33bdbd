// Whatever the bytes are, the inspector ends, throws nothing, and prints no more than it may.

import { assert } from "@std/assert";
import { Ajv2020 } from "ajv/2020";
import { loadCases, resolve } from "../static/load.ts";
import { annotate, diff, format, formatLines, inspect, type Inspection } from "./mod.ts";

const schema = JSON.parse(
  await Deno.readTextFile(new URL("../inspect.schema.json", import.meta.url)),
);
const validate = new Ajv2020({ allErrors: true, strict: false }).compile(schema);

const SEEDS = 4;
/** Bytes that are more often wrong in an interesting way than others. */
const VALUES = [0, 1, 2, 3, 6, 7, 16, 31, 64, 127, 128, 255];

/** Numbers from a seed, below a bound. */
function makeRandom(seed: number): (below: number) => number {
  let state = (seed * 2654435761) >>> 0 || 1;
  return (below) => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return (state >>> 0) % below;
  };
}

/** Changes a few bytes: of the header and the tables, of the control words, of anything. */
function mutate(image: Uint8Array, random: (below: number) => number): Uint8Array {
  const size = random(8) === 0 ? random(image.length + 1) : image.length;
  const bytes = image.slice(0, size);
  for (let count = 1 + random(4); count > 0 && size > 0; count--) {
    const most = [64, 512, 1100, size][random(4)]!;
    const at = random(Math.min(size, most));
    const value = random(3) === 0 ? random(256) : VALUES[random(VALUES.length)]!;
    bytes.fill(value, at, at + [1, 1, 2, 4, 8][random(5)]!);
  }
  return bytes;
}

function assertBounded(bytes: Uint8Array, found: Inspection, text: string): void {
  const count = found.faults.length + found.notes.length + found.reports.length;
  const endpoints = found.endpoints?.length ?? 0;
  const channels = found.channels?.length ?? 0;
  assert(count <= 3 * 33 * (endpoints + channels + 1), `${count} findings`);
  // A line of text for each endpoint, and for each channel no more than its frames may have.
  const lines = text.split("\n").length;
  assert(lines <= 40 + endpoints + channels * (12 + 33) + count * 6, `${lines} lines`);
  assert(endpoints * 128 + channels * 64 <= bytes.length, "records that are not there");
}

Deno.test("inspect, format, annotate and diff take every change of every case's image", () => {
  const images = [...loadCases().values()].map((entry) => resolve(entry, loaded).memory);
  let faults = 0;
  for (let seed = 1; seed <= SEEDS; seed++) {
    images.forEach((image, index) => {
      const bytes = mutate(image, makeRandom(seed * 65_537 + index));
      const place = `seed ${seed}, image ${index}`;
      const found = inspect(bytes, { now: 1e12 });
      if (found.fault !== null) faults += 1;
      assert(validate(found), `${place}: ${JSON.stringify(validate.errors?.slice(0, 3))}`);
      assertBounded(bytes, found, format(found));
      if (seed > 1) return; // The dumps take most of the time.
      const lines = annotate(bytes, { now: 1e12 });
      assert(lines.reduce((sum, { size }) => sum + size, 0) === bytes.length, place);
      assert(formatLines(lines).length < 200 * (lines.length + 1));
      assert((diff(image, bytes) === "") === equals(image, bytes), place);
    });
  }
  assert(faults > images.length, `only ${faults} faults: the changes are too tame`);
});

const loaded = loadCases();

function equals(a: Uint8Array, b: Uint8Array): boolean {
  return a.length === b.length && a.every((byte, index) => byte === b[index]);
}

Deno.test("inspect takes bytes that nobody has written", () => {
  const random = makeRandom(20260203);
  for (let count = 0; count < 500; count++) {
    const bytes = Uint8Array.from({ length: random(600) }, () => random(256));
    if (random(2) === 0) bytes.set(new TextEncoder().encode("MILLRACE").subarray(0, bytes.length));
    for (const as of ["segment", "mailbox", undefined] as const) {
      const found = inspect(bytes, { ...(as && { as }), now: 0 });
      assert(validate(found), JSON.stringify(validate.errors?.slice(0, 3)));
      assertBounded(bytes, found, format(found));
    }
    annotate(bytes);
  }
});

Deno.test("inspect walks a full ring of the smallest chunks in bounded time", () => {
  // 2^18 parts of one byte: keeping or copying them one by one for each would never end.
  const capacity = 2 ** 23;
  const bytes = new Uint8Array(1024 + capacity);
  const view = new DataView(bytes.buffer);
  bytes.set(resolve(loaded.get("segment/pipe")!, loaded).memory.subarray(0, 1024));
  view.setUint32(0x10, bytes.length, true);
  view.setUint32(0x198, capacity, true);
  const count = capacity / 32 - 2;
  view.setUint32(0x200, 32 * (count + 1), true);
  view.setUint32(0x400, 16, true);
  view.setUint32(0x404, 0x0101, true);
  view.setUint32(0x410, count, true);
  for (let index = 1; index <= count; index++) {
    view.setUint32(0x400 + 32 * index, 1, true);
    view.setUint32(0x404 + 32 * index, index === count ? 0x0201 : 1, true);
  }
  const found = inspect(bytes);
  assert(found.fault === null, found.fault?.fact);
  assert(found.channels![0]!.ring!.message_count === 1);
  assert(format(found).length < 10_000);
});
