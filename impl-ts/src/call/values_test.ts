/** Lists of values: what is read in a short way is what the long way gives. */

import { assertEquals } from "@std/assert";
import { list, outcome } from "./fixture.ts";
import { readValues } from "./values.ts";
import { layout } from "../memory/layout.ts";

/** A list of one value with these bytes. */
function listOf(text: string, codec: number): Uint8Array {
  const bytes = new TextEncoder().encode(text);
  const head = [1, 0, 0, 0, 0, 0, 0, 0, bytes.length, 0, 0, 0, codec, 0, 0, 0];
  return Uint8Array.of(...head, ...bytes);
}

function readOf(text: string, codec = layout.CODEC_JSON): unknown {
  return outcome(() => readValues(listOf(text, codec), undefined).values[0]);
}

Deno.test("readValues reads numbers as JSON.parse does, and refuses what it refuses", () => {
  const good = [
    "0",
    "7",
    "10",
    "999999999999999",
    "91199144899807749",
    "-1",
    "-0",
    "1.5",
    "1e3",
    "  8",
  ];
  for (const text of good) assertEquals(readOf(text), JSON.parse(text), text);
  for (const text of ["00", "01", "1_0", "0x1", "1 2", "+1", "-", "1/", "1:"]) {
    assertEquals(readOf(text), "message.json", text);
  }
});

Deno.test("encodeValues writes numbers as JSON.stringify does", () => {
  for (const number of [0, -0, 1, 1.5, 1e21, 1e-7, 123456789012345680000, NaN, -Infinity]) {
    const { values } = readValues(list([number]), undefined);
    assertEquals(values, [JSON.parse(JSON.stringify(number))]);
  }
});

Deno.test("readValues gives each short text, whichever came before it", () => {
  // 31 * "A" + "a" is 31 * "B" + "B": texts that are kept in one place.
  const texts = ["Aa", "BB", "Aa", "AaAa", "BBBB", "AaBB", "", "ask", "a\u00fc", "ask"];
  for (const text of texts) assertEquals(readOf(text, layout.CODEC_TEXT), text);
  for (let n = 0; n < 1000; n++) assertEquals(readOf(`name ${n}`, layout.CODEC_TEXT), `name ${n}`);
});
