// The strict reader of CBOR, which judges what others read and write.

import { assert, assertEquals, assertNotEquals, assertThrows } from "@std/assert";
import { cbor } from "../impl-ts/src/codec/cbor.ts";
import { fromHex, toHex } from "./reference/bytes.ts";
import { formOfCbor } from "./reference/cbor.ts";
import { loadCases } from "./static/load.ts";
import { readCbor, writeCbor } from "./testees/broken/small_cbor.ts";

const form = (hex: string) => formOfCbor(fromHex(hex));

// Of the examples in appendix A of RFC 8949, those of which the chapter allows every tag.
const RFC8949: [string, string][] = [
  ["1818", "24"],
  ["1bffffffffffffffff", "18446744073709551615"],
  ["c249010000000000000000", "18446744073709551616"],
  ["3bffffffffffffffff", "-18446744073709551616"],
  ["c349010000000000000000", "-18446744073709551617"],
  ["f98000", "-0"],
  ["fb3ff199999999999a", "1.1"],
  ["f97bff", "65504"],
  ["fa7f7fffff", String(BigInt(2 ** 128 - 2 ** 104))],
  ["f90001", "5.960464477539063e-8"],
  ["f90400", "0.00006103515625"],
  ["f9c400", "-4"],
  ["fb7e37e43c8800759c", String(BigInt(1e300))],
  ["f97e00", "NaN"],
  ["fbfff0000000000000", "-Infinity"],
  ["f7", "undefined"],
  ["c11a514b67b0", "date 1363896240000"],
  ["4401020304", "h'01 02 03 04'"],
  ["62225c", '"\\"\\\\"'],
  ["64f0908591", '"\ud800\udd51"'],
  ["8301820203820405", "array(1, array(2, 3), array(4, 5))"],
  ["a201020304", "keyed map(1: 2, 3: 4)"],
  ["a26161016162820203", 'map("a": 1, "b": array(2, 3))'],
  ["5f42010243030405ff", "h'01 02 03 04 05'"],
  ["7f657374726561646d696e67ff", '"streaming"'],
  ["9f018202039f0405ffff", "array(1, array(2, 3), array(4, 5))"],
  ["bf6346756ef563416d7421ff", 'map("Amt": -2, "Fun": true)'],
];

Deno.test("formOfCbor reads the examples of RFC 8949", () => {
  for (const [hex, must] of RFC8949) assertEquals(form(hex), must, hex);
});

Deno.test("formOfCbor gives one form to what means the same, and others to what does not", () => {
  const same = [["01", "1801"], ["01", "f93c00"], ["01", "c24101"], [
    "a2616101616202",
    "a2616202616101",
  ]];
  for (const [one, other] of same) assertEquals(form(one!), form(other!));
  const others = [["00", "f98000"], ["8101", "d901028101"], ["a0", "d90103a0"], ["40", "60"]];
  for (const [one, other] of others) assertNotEquals(form(one!), form(other!));
});

Deno.test("formOfCbor tells one value in two places from two that are equal", () => {
  assertEquals(form("82d81c8101d81d00"), "array(#0=array(1), #0)");
  assertEquals(form("8281018101"), "array(array(1), array(1))");
  assertEquals(form("82d81c8101d81c8101"), form("8281018101")); // which nobody refers to
  assertEquals(form("d81c82d81d00d81d00"), "#0=array(#0, #0)");
  assertEquals(form("82d81c6161d81d00"), 'array("a", "a")');
});

Deno.test("formOfCbor refuses what is not well-formed in appendix F of RFC 8949", () => {
  const all =
    "18 19 1a 1b 1901 1a0102 1b01020304050607 38 58 78 98 9a01ff00 b8 d8 f8 f900 fa0000 " +
    "fb000000 41 61 5affffffff00 5bffffffffffffffff010203 7affffffff00 81 818181818181818181 " +
    "8200 a1 a20102 a100 a2000000 c0 5f4100 7f6100 9f 9f0102 bf bf01020102 819f 9f8000 " +
    "9f9f9f9f9fffffffff 9f819f819f9fffffff 1c 1d 1e 3c 3d 3e 5c 5d 5e 7c 7d 7e 9c 9d 9e bc bd be " +
    "dc dd de fc fd fe f800 f801 f818 f81f 5f00ff 5f21ff 5f6100ff 5f80ff 5fa0ff 5fc000ff 5fe0ff " +
    "7f4100ff 5f5f4100ffff 7f7f6100ffff ff 81ff 8200ff a1ff a1ff00 a100ff a20000ff 9f81ff " +
    "bf00ff bf000000ff 1f 3f df";
  for (const hex of all.split(" ")) assertThrows(() => form(hex), Error, undefined, hex);
});

// Whatever stands in a payload, the port for TypeScript, the small port and the kit's strict reader
// accept the same and understand it alike, in bounded time. A failure names the payload; the seeds
// are fixed.

const ROUNDS = 20_000;
const SEED = 0x5eed;

/** A generator of numbers below 2^32, the same for the same seed (mulberry32). */
function random(seed: number): (below: number) => number {
  return (below) => {
    seed = seed + 0x6d2b79f5 | 0;
    let mixed = Math.imul(seed ^ seed >>> 15, 1 | seed);
    mixed = mixed + Math.imul(mixed ^ mixed >>> 7, 61 | mixed) ^ mixed;
    return ((mixed ^ mixed >>> 14) >>> 0) % below;
  };
}

/** The payloads of the cases that a reader takes. */
const sound = [...loadCases().values()].flatMap(({ expect: { results = [] } }) =>
  results.flatMap((result) =>
    typeof result === "object" && "items" in result
      ? result.items.flatMap((item) => "cbor" in item ? [fromHex(item.cbor!)] : [])
      : []
  )
).filter(({ length }) => length < 200);

/** Heads that lead somewhere, more often than bytes of chance do. */
const HEADS = fromHex(
  "00 17 18 1b 20 40 41 5f 60 61 7f 80 81 82 9f a0 a1 bf c0 c1 c2 c3 d81b d81c " +
    "d81d 00 d84045 d90102 d90103 d9524a f4 f6 f7 f97e00 fa fb ff 6161 656361757365 646e616d65 " +
    "654572726f72",
);

/** A payload that was changed in some places, or is one of chance. */
function disturbed(below: (limit: number) => number): Uint8Array {
  const base = below(8) === 0 ? new Uint8Array(0) : sound[below(sound.length)]!;
  let bytes = [...base];
  for (let changes = 1 + below(4); changes > 0; changes--) {
    const at = below(bytes.length + 1);
    const piece = [...HEADS.subarray(at % HEADS.length, at % HEADS.length + 1 + below(4))];
    const other = sound[below(sound.length)]!;
    switch (below(6)) {
      case 0:
        bytes[at] = below(256);
        break;
      case 1:
        bytes.splice(at, 0, ...piece);
        break;
      case 2:
        bytes.splice(at, 1 + below(3));
        break;
      case 3:
        bytes = [...bytes.slice(0, at), ...other.subarray(below(other.length))];
        break;
      case 4:
        bytes = [0x82, ...bytes, ...other];
        break;
      case 5:
        bytes.splice(at, 0, HEADS[below(HEADS.length)]!);
    }
  }
  return Uint8Array.from(bytes, (byte) => byte ?? 0);
}

/** The form of a payload, by whichever of the two; `undefined` where it is refused. */
function formBy(form: (payload: Uint8Array) => string, payload: Uint8Array): string | undefined {
  try {
    return form(payload);
  } catch (error) {
    if (error instanceof Error) return undefined;
    throw error;
  }
}

/** What a reader's language may have no value for, or write in another way. */
const MAY_DIFFER = /float16|regular expression|class\(/;
/** A reader need not take it within itself. */
const MAY_BE_REFUSED = /#.*(?:keyed map|set)\(/;
/** The form does not say which of two equal elements is the one that others refer to. */
const MAY_MERGE = /(?:set|map)\(.*#|#.*(?:set|map)\(/;

function viaTypeScript(payload: Uint8Array): string {
  const value: unknown = cbor.decode(payload.slice());
  return value === undefined ? "undefined" : formOfCbor(cbor.encode(value));
}

Deno.test("cbor: the port and the strict reader understand whatever comes alike", () => {
  const below = random(SEED);
  let taken = 0;
  for (let round = 0; round < ROUNDS; round++) {
    const payload = disturbed(below);
    const must = formBy(formOfCbor, payload);
    const got = formBy(viaTypeScript, payload);
    if (must !== undefined) taken++;
    if (must !== undefined && MAY_DIFFER.test(must)) continue;
    if (got === undefined && must !== undefined && MAY_BE_REFUSED.test(must)) continue;
    if (got !== undefined && must !== undefined && MAY_MERGE.test(must)) continue;
    assertEquals(got, must, toHex(payload));
  }
  assert(taken > ROUNDS / 20, `only ${taken} payloads were taken`);
});

Deno.test("cbor: the small port and the strict reader understand whatever comes alike", () => {
  const below = random(SEED + 1);
  const viaSmall = (payload: Uint8Array) => formOfCbor(writeCbor(readCbor(payload)));
  for (let round = 0; round < ROUNDS; round++) {
    const payload = disturbed(below);
    assertEquals(formBy(viaSmall, payload), formBy(formOfCbor, payload), toHex(payload));
  }
});
