// The strict reader of CBOR, which judges what others read and write.

import { assertEquals, assertNotEquals, assertThrows } from "@std/assert";
import { fromHex } from "./reference/bytes.ts";
import { formOfCbor } from "./reference/cbor.ts";

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
