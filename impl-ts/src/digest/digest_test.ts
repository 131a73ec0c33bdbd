import { assert, assertEquals, assertThrows } from "@std/assert";
import { createHash } from "node:crypto";
import { hasCore } from "./core.ts";
import { Sha1, sha1, Sha256, sha256 } from "./digest.ts";

const IS_ALL = Deno.env.get("MILLRACE_TEST_ALL") === "1";

const KINDS = [
  { name: "sha1", make: () => new Sha1(), once: sha1, size: 20 },
  { name: "sha256", make: () => new Sha256(), once: sha256, size: 32 },
] as const;

/** The examples of FIPS 180, and two more short ones that fill one block and more than one. */
const VECTORS: readonly [text: string, times: number, sha1: string, sha256: string][] = [
  [
    "",
    1,
    "da39a3ee5e6b4b0d3255bfef95601890afd80709",
    "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
  ],
  [
    "abc",
    1,
    "a9993e364706816aba3e25717850c26c9cd0d89d",
    "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
  ],
  [
    "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
    1,
    "84983e441c3bd26ebaae4aa1f95129e5e54670f1",
    "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1",
  ],
  [
    "abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmn" +
    "hijklmnoijklmnopjklmnopqklmnopqrlmnopqrsmnopqrstnopqrstu",
    1,
    "a49b2446a02c645bf419f995b67091253a04a259",
    "cf5b16a778af8380036ce59e7b0492370b249b11e8f07a51afac45037afee9d1",
  ],
  [
    "a",
    1_000_000,
    "34aa973cd4c4daa4f61eeb2bdbad27316534016f",
    "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0",
  ],
  [
    "0123456701234567012345670123456701234567012345670123456701234567",
    10,
    "dea356a2cddd90c7a7ecedc5ebb563934f460452",
    "594847328451bdfa85056225462cc1d867d877fb388df0ce35f25ab5562bfbb5",
  ],
];

/** Pseudorandom bytes, in memory of either kind. */
function noise(size: number, Memory: typeof ArrayBuffer | typeof SharedArrayBuffer): Uint8Array {
  const bytes = new Uint8Array(new Memory(size));
  let state = 1;
  for (let at = 0; at < size; at++) {
    state = Math.imul(state, 1_664_525) + 1_013_904_223 | 0;
    bytes[at] = state >>> 24;
  }
  return bytes;
}

function expected(name: string, bytes: Uint8Array): string {
  return createHash(name).update(Uint8Array.from(bytes)).digest("hex");
}

Deno.test("digest: the examples of FIPS 180, at once and in parts", () => {
  for (const [text, times, ...hex] of VECTORS) {
    const bytes = new TextEncoder().encode(text.repeat(times));
    for (const [index, { make, once }] of KINDS.entries()) {
      assertEquals(once(bytes).toHex(), hex[index]);
      const digest = make();
      const part = new TextEncoder().encode(text);
      for (let n = 0; n < times; n++) digest.update(part);
      assertEquals(digest.hex(), hex[index]);
      assertEquals(digest.length, bytes.length);
    }
  }
});

for (const { name, make } of KINDS) {
  Deno.test(`digest: ${name} of 0 to 1,000 bytes, cut anywhere, private or shared`, () => {
    const memories = [noise(1000, ArrayBuffer), noise(1000, SharedArrayBuffer)] as const;
    const digest = make();
    const target = new Uint8Array(digest.size);
    const wrong: [length: number, cut: number][] = [];
    for (let length = 0; length <= 1000; length++) {
      const must = createHash(name).update(memories[0].subarray(0, length)).digest();
      for (let cut = 0; cut <= length; cut++) {
        const bytes = memories[(length + cut) % 2 as 0 | 1];
        digest.reset().update(bytes.subarray(0, cut)).update(bytes.subarray(cut, length));
        digest.digestInto(target);
        let different = 0;
        for (let at = 0; at < target.length; at++) different |= target[at]! ^ must[at]!;
        if (different !== 0 && wrong.length < 5) wrong.push([length, cut]);
      }
    }
    assertEquals(wrong, []);
  });

  Deno.test(`digest: ${name} byte by byte, asked for at every length`, () => {
    const bytes = noise(300, SharedArrayBuffer);
    const digest = make();
    for (let length = 0; length < bytes.length; length++) {
      assertEquals(digest.hex(), expected(name, bytes.subarray(0, length)));
      assertEquals(digest.clone().hex(), digest.hex());
      digest.update(bytes.subarray(length, length + 1));
    }
  });

  Deno.test(`digest: ${name} of long arrays at any alignment, after any rest`, () => {
    // After so many bytes, this thread has its core.
    const many = new Uint8Array(1 << 20);
    for (let n = 0; n < 17; n++) new Sha1().update(many);
    assertEquals(hasCore(), true);
    for (const Memory of [ArrayBuffer, SharedArrayBuffer]) {
      const bytes = noise(200_300, Memory);
      for (const length of [4_000, 65_400, 65_536, 65_537, 65_600, 131_072, 200_000]) {
        for (let start = 0; start < 9; start++) {
          const cut = start + 7 * start;
          const part = bytes.subarray(start, start + length);
          const digest = make().update(part.subarray(0, cut)).update(part.subarray(cut));
          assertEquals(digest.hex(), expected(name, part), `${length} bytes from ${start}`);
        }
      }
    }
  });

  // More than 2^32 bits.
  if (IS_ALL) {
    Deno.test(`digest: ${name} of more than 512 MiB`, () => {
      const part = noise(16 << 20, SharedArrayBuffer);
      const copy = Uint8Array.from(part);
      const [digest, other] = [make(), createHash(name)];
      for (let n = 1; n <= 33; n++) {
        digest.update(part);
        other.update(copy);
        if (n >= 32) assertEquals(digest.hex(), other.copy().digest("hex"));
      }
      assertEquals(digest.length, 33 << 24);
    });
  }
}

Deno.test("digest: what is asked for changes nothing, and reset forgets", () => {
  for (const { make, size } of KINDS) {
    const digest = make().update(noise(100, ArrayBuffer));
    const before = digest.digest();
    assertEquals(before.length, size);
    assertEquals(digest.size, size);
    const target = new Uint8Array(size + 2).fill(7);
    digest.digestInto(target);
    assertEquals(target, Uint8Array.of(...before, 7, 7));
    assertEquals(digest.hex(), before.toHex());
    const other = digest.clone();
    assert(other.constructor === digest.constructor);
    digest.reset();
    assertEquals(digest.hex(), make().hex());
    assertEquals(digest.length, 0);
    assertEquals(other.hex(), before.toHex());
  }
});

Deno.test("digest: bytes are read when they are given, and any view of bytes will do", () => {
  const memory = new SharedArrayBuffer(64, { maxByteLength: 256 });
  const bytes = new Uint8Array(memory);
  const digest = new Sha1().update(bytes);
  memory.grow(256);
  bytes.fill(1);
  digest.update(bytes);
  const all = new Uint8Array(320).fill(1, 64);
  assertEquals(digest.hex(), expected("sha1", all));
  class Special extends Uint8Array {}
  assertEquals(new Sha1().update(new Special(3)).hex(), new Sha1().update(new Uint8Array(3)).hex());
});

Deno.test("digest: what is no array of bytes is refused, and changes nothing", () => {
  const values = ["abc", 7, null, undefined, [1], new ArrayBuffer(8), new Uint16Array(8), {}];
  for (const { make, once, size } of KINDS) {
    const digest = make().update(Uint8Array.of(1));
    const before = digest.hex();
    for (const value of values) {
      const wrong = value as Uint8Array;
      assertThrows(() => digest.update(wrong), TypeError, "for a Uint8Array");
      assertThrows(() => digest.digestInto(wrong), TypeError, "for a Uint8Array");
      assertThrows(() => once(wrong), TypeError, "for a Uint8Array");
    }
    assertThrows(() => digest.update("abc" as never), TypeError, "new TextEncoder().encode(text)");
    const short = new Uint8Array(size - 1);
    assertThrows(() => digest.digestInto(short), RangeError, `it has ${size} bytes`);
    assertEquals(short.every((byte) => byte === 0), true);
    assertEquals(digest.hex(), before);
  }
});

Deno.test("Digest: is made as one of its two kinds alone", async () => {
  const { Digest } = await import("./digest.ts");
  class Other extends Digest {}
  assertThrows(() => new Other({}), TypeError, "it is made as Sha1 or Sha256");
});
