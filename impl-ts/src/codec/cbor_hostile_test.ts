// Malicious payloads: each costs one message, in bounded time and memory.

import { assert, assertEquals, assertStringIncludes, assertThrows } from "@std/assert";
import { cbor } from "./cbor.ts";
import { MessageError, Port } from "../mod.ts";
import { writeMessage } from "../more/raw.ts";

const CODEC = 5;
const ROUNDS = 20_000;
const SEED = 20261123;

/** Pseudorandom numbers below a limit; the same sequence for the same seed. */
function random(seed: number): (below: number) => number {
  return (below) => {
    seed = Math.imul(seed ^ (seed >>> 15), 0x2c1b3c6d) + 0x9e3779b9 | 0;
    const mixed = Math.imul(seed ^ (seed >>> 12), 0x297a2d39);
    return ((mixed ^ (mixed >>> 15)) >>> 0) % below;
  };
}

/** Repeats some bytes. */
function times(count: number, ...bytes: number[]): Uint8Array {
  const all = new Uint8Array(count * bytes.length);
  for (let i = 0; i < count; i++) all.set(bytes, i * bytes.length);
  return all;
}

/** A value of all supported kinds, some of them shared. */
function everything(): unknown {
  const date = new Date(1500);
  const map = new Map<unknown, unknown>([[1, date], ["a", 2n ** 70n]]);
  const list = [undefined, null, NaN, -1, 70000, "text", "ü", map, date, new Float32Array(3)];
  const set = new Set<unknown>([list, /x/g, new ArrayBuffer(2)]);
  return { list, set, map, error: new TypeError("no", { cause: set }), date };
}

Deno.test("cbor: whatever a peer writes costs that message alone, and never hangs", () => {
  using here = Port.create<Uint8Array>({ codec: "bytes" });
  using there = Port.attach<unknown>(here.memory, { codec: cbor });
  const below = random(SEED);
  const sound = cbor.encode(everything()).slice();
  const counts = { taken: 0, refused: 0 };
  for (let round = 0; round < ROUNDS; round++) {
    const payload = sound.slice(0, below(8) === 0 ? below(sound.length) : sound.length);
    for (let changes = 1 + below(3); changes > 0 && payload.length > 0; changes--) {
      payload[below(payload.length)] = below(256);
    }
    writeMessage(here, { codec: CODEC, payload });
    here.write(Uint8Array.of(round));
    try {
      there.read({ timeout: 1000 });
      counts.taken++;
    } catch (error) {
      const isOne = error instanceof MessageError && error.code === "message.codec";
      if (!isOne) throw new Error(`round ${round}: ${payload.join()}`, { cause: error });
      counts.refused++;
    }
    assertEquals(there.read({ timeout: 1000 }), Uint8Array.of(round));
  }
  assert(counts.taken > 1000 && counts.refused > 1000, JSON.stringify(counts));
});

Deno.test("cbor: every cut payload is refused, every changed byte is refused or read", () => {
  const sound = cbor.encode(everything()).slice();
  for (let size = 0; size < sound.length; size++) {
    assertThrows(() => cbor.decode(sound.slice(0, size)));
  }
  for (let at = 0; at < sound.length; at++) {
    for (const byte of [0, 0x1f, 0x5f, 0x7f, 0x9a, 0x9f, 0xbf, 0xdb, 0xf8, 0xfb, 0xff]) {
      const payload = sound.slice();
      payload[at] = byte;
      try {
        cbor.decode(payload);
      } catch (error) {
        assert(error instanceof Error);
      }
    }
  }
});

Deno.test("cbor: a length beyond the payload takes no memory", () => {
  const heads = [0x5a, 0x7a, 0x9a, 0xba].map((head) => [head, 0xff, 0xff, 0xff, 0xf0]);
  const long = [0x5b, 0x7b, 0x9b, 0xbb].map((head) => [head, 0, 0, 0, 1, 0, 0, 0, 0]);
  for (const head of [...heads, ...long]) {
    const payload = Uint8Array.from([...head, 1, 2, 3]);
    assertStringIncludes(assertThrows(() => cbor.decode(payload), Error).message, "ends too early");
  }
  // Each of many arrays claims all bytes that follow. The memory set aside is bounded nevertheless.
  const nested = new Uint8Array(1000 * 5);
  for (let i = 0; i < 1000; i++) nested.set([0x9a, 0, 0, 0x0f, 0xff], 5 * i);
  assertThrows(() => cbor.decode(nested), Error, "ends too early");
});

Deno.test("cbor: nesting of any kind ends at its limit, and takes no stack", () => {
  const kinds: number[][] = [[0x81], [0xa1, 0x01], [0xa1, 0x61, 0x61], [0x9f], [0xbf, 0x61, 0x61]];
  const tagged = [[0xd9, 1, 2, 0x81], [0xd9, 1, 3, 0xa1, 1], [0xd9, 0xd9, 0xf7], [0xd8, 28, 0x81]];
  for (const bytes of [...kinds, ...tagged]) {
    const payload = times(100_000, ...bytes);
    assertStringIncludes(assertThrows(() => cbor.decode(payload), Error).message, "deeply");
  }
});

Deno.test("cbor: what becomes much more memory than bytes is bounded", () => {
  const few = [
    [0x80],
    [0xa0],
    [0xd9, 1, 2, 0x80],
    [0xd9, 1, 3, 0xa0],
    [0xd8, 72, 0x40],
    [0xc1, 0],
    [0xd8, 28, 0x80],
  ];
  for (const bytes of few) {
    const count = Math.floor((8 << 20) / bytes.length);
    const head = [0x9a, count >> 24, count >> 16, count >> 8, count];
    const all = times(count, ...bytes);
    const payload = new Uint8Array(5 + all.length);
    payload.set(head);
    payload.set(all, 5);
    const begin = performance.now();
    assertStringIncludes(assertThrows(() => cbor.decode(payload), Error).message, "too many items");
    assert(performance.now() - begin < 10_000);
  }
  // A writer refuses such a value, because it could not be read.
  const value = new Array((1 << 22) + 1).fill(0);
  assertThrows(() => cbor.encode(value), TypeError, "too many items");
});

Deno.test("cbor: a reference takes no more than it says", () => {
  // Ten arrays, each of ten references to the one before: copies would be 10^10 values.
  const bytes: number[] = [0x8a];
  for (let i = 0; i < 10; i++) {
    bytes.push(0xd8, 28, 0x8a);
    for (let j = 0; j < 10; j++) bytes.push(...(i === 0 ? [j] : [0xd8, 29, i - 1]));
  }
  const value = cbor.decode(Uint8Array.from(bytes)) as unknown[][];
  assertEquals(value.length, 10);
  assertEquals(value[9]![9], value[8]);
});

Deno.test("cbor: one large integer, or regular expression, is bounded too", () => {
  for (const tag of [[0xc2, 0x5b], [0xd9, 0x52, 0x4a, 0x7b]]) {
    const size = 32 << 20;
    const payload = new Uint8Array(tag.length + 8 + size).fill(0x61);
    payload.set([...tag, 0, 0, 0, 0, size >>> 24, size >> 16, size >> 8, size]);
    const begin = performance.now();
    assertStringIncludes(assertThrows(() => cbor.decode(payload), Error).message, "too many items");
    assert(performance.now() - begin < 5000);
  }
  // A writer of such a value gets the error at the write.
  assertThrows(() => cbor.encode(1n << (1n << 26n)), TypeError, "too many items");
  assertThrows(() => cbor.encode(new RegExp("a".repeat(1 << 20))), TypeError, "too many items");
  assertEquals(cbor.decode(cbor.encode(1n << 20000n)), 1n << 20000n);
  const { source } = cbor.decode(cbor.encode(new RegExp("a".repeat(10_000)))) as RegExp;
  assertEquals(source.length, 10_000);
});
