// Every form of input gives the same bytes, and what is none of them is refused with a reason.

import { assertEquals, assertThrows } from "@std/assert";
import { toHex, toImage } from "../reference/bytes.ts";
import { waitingPipe } from "./golden_fixture.ts";
import { decodeInput, INPUT_MAX, InputError, parseText } from "./input.ts";

const image = waitingPipe();

/** What `hexdump -C` prints. */
function hexdump(bytes: Uint8Array): string {
  const lines: string[] = [];
  let before = "";
  for (let at = 0; at < bytes.length; at += 16) {
    const shown = bytes.slice(at, at + 16);
    const hex = toHex(shown);
    const text = [...shown].map((byte) =>
      byte > 31 && byte < 127 ? String.fromCharCode(byte) : "."
    );
    const offset = at.toString(16).padStart(8, "0");
    if (hex !== before) lines.push(`${offset}  ${hex.padEnd(48)}  |${text.join("")}|`);
    else if (lines.at(-1) !== "*") lines.push("*");
    before = hex;
  }
  return `${[...lines, bytes.length.toString(16).padStart(8, "0")].join("\n")}\n`;
}

/** What `xxd` prints. */
function xxd(bytes: Uint8Array): string {
  const lines: string[] = [];
  for (let at = 0; at < bytes.length; at += 16) {
    const shown = bytes.slice(at, at + 16);
    const hex = toHex(shown).replaceAll(" ", "").replace(/.{4}(?!$)/g, "$& ");
    const text = [...shown].map((byte) =>
      byte > 31 && byte < 127 ? String.fromCharCode(byte) : "."
    );
    lines.push(`${at.toString(16).padStart(8, "0")}: ${hex.padEnd(39)}  ${text.join("")}`);
  }
  return `${lines.join("\n")}\n`;
}

const forms: [string, string, string][] = [
  ["digits", "hexadecimal", toHex(image)],
  ["digits in lines", "hexadecimal", toHex(image).replaceAll(" ", "").replace(/.{60}/g, "$&\n")],
  ["numbers of a language", "hexadecimal", toHex(image).replace(/\w\w/g, "0x$&,")],
  ["escapes of a string", "hexadecimal", toHex(image).replaceAll(" ", "").replace(/../g, "\\x$&")],
  ["hexdump -C", "dump", hexdump(image)],
  ["xxd", "dump", xxd(image)],
  ["an image", "image", JSON.stringify(toImage(image))],
  ["a case", "image", JSON.stringify({ id: "a/b", image: toImage(image) })],
];

for (const [name, form, text] of forms) {
  Deno.test(`parseText reads ${name}`, () => {
    assertEquals(parseText(text), { bytes: image, form: form as "dump" });
    assertEquals(decodeInput(new TextEncoder().encode(text)).bytes, image);
  });
}

Deno.test("parseText reads the lines of a chapter, and of od", () => {
  const bytes = Uint8Array.of(...new Uint8Array(16), 0x4d, 0x49, 1, 2);
  assertEquals(parseText("0010  4d 49 01 02   ring, be ad").bytes, bytes);
  assertEquals(parseText("000010 4d 49 01 02\n000014").bytes, bytes);
});

Deno.test("parseText reads lines of an image, and cuts off what lies after its size", () => {
  const line = { offset: 2, hex: "01 02" };
  assertEquals([...parseText(JSON.stringify(line)).bytes], [0, 0, 1, 2]);
  assertEquals([...parseText(JSON.stringify([line])).bytes], [0, 0, 1, 2]);
  assertEquals([...parseText(JSON.stringify({ size: 3, bytes: [line] })).bytes], [0, 0, 1]);
});

const wrong: [string, RegExp][] = [
  ["", /no digits/],
  ["0x", /no digits/],
  ["123", /odd number of digits, 3/],
  ["no hex", /"n" is no digit/],
  ["{", /Cannot read image/],
  ["[1]", /a line is not \{ offset, hex \}/],
  ['{"bytes": 1}', /no array/],
  ['{"size": -1, "bytes": []}', /no count of bytes/],
  ['{"size": 1e15, "bytes": []}', /more than/],
  ['[{"offset": 1e15, "hex": "00"}]', /more than/],
  ["00000010  01 02\n00000000  01 02", /offset 0 goes back/],
  ["0000000 494d 4c4c\n0000004", /use hexdump -C/],
  [`${(INPUT_MAX + 1).toString(16).padStart(8, "0")}  01`, /more than/],
];

for (const [text, fact] of wrong) {
  Deno.test(`parseText refuses ${JSON.stringify(text.slice(0, 40))}`, () => {
    assertThrows(() => parseText(text), InputError, fact.exec("")?.[0] ?? "");
    try {
      parseText(text);
    } catch (error) {
      assertEquals(fact.test((error as Error).message), true, (error as Error).message);
    }
  });
}

Deno.test("decodeInput takes bytes as they are, but for a text in one of the forms", () => {
  const form = (text: string) => decodeInput(new TextEncoder().encode(text)).form;
  assertEquals(decodeInput(image), { bytes: image, form: "bytes" });
  assertEquals(form("4d 49"), "hexadecimal");
  assertEquals(form("dear reader"), "bytes");
  assertEquals(form("4d 49 and more"), "bytes");
  assertEquals(form(""), "bytes");
  assertThrows(() => form('{"size": 1}x'), InputError);
});
