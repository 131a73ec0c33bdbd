import { assertEquals, assertRejects, assertThrows } from "@std/assert";
import { assertCode, pattern, pipe, scribed } from "../testing/fixture.ts";
import { release, tryPeek } from "../more/lend.ts";
import { writeMany } from "../more/many.ts";
import { lastRead, readMessage, tryReadInto, tryReadMessage } from "../more/raw.ts";

const utf8 = (text: string) => [...new TextEncoder().encode(text)];

Deno.test("JSON values, text and bytes come back as they were", () => {
  const values = [null, true, 0, -1.5, "", "é€😀\0", "\ufefftext", [], [[]], {}, {
    a: { b: [1, "x"] },
  }];
  const json = pipe({ capacity: 4096 });
  for (const value of values) {
    json.writer.write(value);
    assertEquals(json.reader.read(), value);
    assertEquals(lastRead(json.reader).codec, 2);
  }
  json.writer.write(pattern(9));
  assertEquals(json.reader.read(), pattern(9));
  const text = pipe({ codec: "text", capacity: 4096 });
  for (const value of ["", "a", "\ufeffé€😀", "x".repeat(300), "é".repeat(700)]) {
    text.writer.write(value);
    assertEquals([text.reader.read(), lastRead(text.reader).codec], [value, 1]);
  }
});

Deno.test("a lone surrogate is never written: refused as text, escaped in JSON", async () => {
  const { writer, reader } = pipe({ codec: "text" });
  for (const text of ["\ud800x", "x\udc00", "\udc00\ud800", "€\ud83d"]) {
    assertThrows(() => writer.write(text), TypeError, "lone surrogate");
    assertThrows(() => writer.tryWrite(text), TypeError);
    assertThrows(() => writeMany(writer, ["ok", text]), TypeError);
    assertEquals(reader.read(), "ok");
    await assertRejects(() => writer.writeAsync(text), TypeError);
  }
  writer.write("\ud83d\ude00\ufffd"); // a surrogate pair is not a lone one, nor is U+FFFD
  assertEquals([reader.tryRead(), reader.tryRead()], ["\ud83d\ude00\ufffd", undefined]);
  const json = pipe();
  json.writer.write("\ud800x");
  assertEquals(readMessage(json.reader)?.payload, Uint8Array.from(utf8('"\\ud800x"')));
  json.writer.write(["\ud800x"]);
  assertEquals(json.reader.read(), ["\ud800x"]);
});

Deno.test("where strings have no isWellFormed, lone surrogates are found all the same", () => {
  const { prototype } = String as unknown as { prototype: { isWellFormed: unknown } };
  const { isWellFormed } = prototype;
  const { writer, reader } = pipe({ codec: "text" });
  try {
    prototype.isWellFormed = undefined;
    assertThrows(() => writer.write("\ud800x"), TypeError);
    assertThrows(() => writer.write("\ud83d\ude00\ud83d"), TypeError);
    writer.write("\ud83d\ude00");
  } finally {
    prototype.isWellFormed = isWellFormed;
  }
  assertEquals(reader.read(), "\ud83d\ude00");
});

Deno.test("what a codec cannot carry is the caller's mistake", async () => {
  const { writer: json, reader } = pipe();
  const circle: { self?: unknown } = {};
  circle.self = [circle];
  for (const value of [undefined, () => 1, Symbol("s"), 1n, { n: 1n }, circle]) {
    assertThrows(() => json.write(value), TypeError);
    assertThrows(() => json.tryWrite(value), TypeError);
    assertThrows(() => writeMany(json, [value]), TypeError);
    await assertRejects(() => json.writeAsync(value), TypeError);
  }
  // Inside a value, this codec does as `JSON.stringify` does.
  json.write([undefined, () => 1, NaN, { a: undefined, b: 1 }]);
  assertEquals(reader.read(), [null, null, null, { b: 1 }]);
  assertEquals(reader.tryRead(), undefined);
  for (const value of [1, new Uint8Array(1), undefined, null]) {
    assertThrows(() => pipe({ codec: "text" }).writer.write(value), TypeError);
  }
  for (const value of ["x", {}, new Uint16Array(1), undefined]) {
    assertThrows(() => pipe({ codec: "bytes" }).writer.write(value), TypeError);
  }
  assertThrows(() => pipe({ codec: "xml" as "json" }), TypeError);
});

Deno.test("a faulty payload costs one message, and the next arrives", () => {
  const rows: [string, number, number[]][] = [
    ["ok", 1, []],
    ["ok", 1, utf8("\ufeff")],
    ["message.text", 1, [0xff]],
    ["message.text", 1, [0xc0, 0x80]],
    ["message.text", 1, [0xed, 0xa0, 0x80]],
    ["message.text", 1, [0xf4, 0x90, 0x80, 0x80]],
    ["message.text", 1, [0xe2, 0x82]],
    ["ok", 2, utf8(" 1\n")],
    ["message.json", 2, []],
    ["message.json", 2, utf8("\ufeff1")],
    ["message.json", 2, utf8("{")],
    ["message.json", 2, utf8("1 2")],
    ["message.text", 2, [0x22, 0xff, 0x22]],
    ["ok", 3, utf8("[1]")],
    ["message.json", 3, []],
    ["message.json", 3, utf8("[]")],
    ["message.json", 3, utf8("{}")],
    ["message.json", 3, utf8("1")],
    ["message.json", 3, utf8("[1")],
    ["message.text", 3, [0x5b, 0xff, 0x5d]],
    ["message.codec", 4, []],
    ["message.codec", 127, [1]],
    ["message.codec", 128, [1]],
    ["message.codec", 255, []],
  ];
  for (const [code, codec, payload] of rows) {
    const { reader, scribe } = scribed();
    scribe.frame({ codec, payload }).frame({ codec: 2, payload: utf8("7") }).publish();
    if (code === "ok") reader.tryRead();
    else assertCode(() => reader.tryRead(), code);
    assertEquals(reader.tryRead(), 7, `${codec} ${payload}`);
    const raw = scribed();
    raw.scribe.frame({ codec, payload, tag: 5 }).publish();
    const message = tryReadMessage(raw.reader);
    assertEquals(message, { kind: 1, codec, tag: 5, payload: Uint8Array.from(payload) });
  }
});

Deno.test("a batch is unpacked in order, with its tag; the specification's example", () => {
  const { reader, scribe } = scribed();
  scribe.frame({ codec: 3, tag: 3, payload: utf8('[{"a":1},null]') }).publish();
  assertEquals([reader.read(), lastRead(reader).tag, lastRead(reader).codec], [{ a: 1 }, 3, 2]);
  assertEquals([reader.read(), reader.tryRead()], [null, undefined]);
});

Deno.test("what is left of a batch is served to every kind of read", () => {
  const { reader, scribe } = scribed();
  scribe.frame({ codec: 3, tag: 3, payload: utf8('[1,"é",[2],{}]') }).publish();
  reader.read();
  assertEquals(tryReadMessage(reader)?.payload, Uint8Array.from(utf8('"é"')));
  const target = new Uint8Array(8);
  assertThrows(() => tryReadInto(reader, new Uint8Array(2)), RangeError);
  assertEquals([tryReadInto(reader, target), lastRead(reader).tag], [3, 3]);
  assertEquals(tryPeek(reader)?.payload, Uint8Array.from(utf8("{}")));
  release(reader);
  assertEquals(reader.tryRead(), undefined);
});

Deno.test("writeMany packs short JSON into batches, and nothing else", () => {
  const { writer, reader } = pipe({ capacity: 4096 });
  writeMany(writer, [1, "two", pattern(3), { n: 4 }, null, 6]);
  const codecs: number[] = [];
  const copy = pipe({ capacity: 4096 });
  writeMany(copy.writer, [1, "two", pattern(3), { n: 4 }, null, 6]);
  for (let m; (m = tryReadMessage(copy.reader)) !== undefined;) codecs.push(m.codec);
  assertEquals(codecs, [3, 0, 3]);
  const values = Array.from({ length: 6 }, () => reader.read());
  assertEquals(values, [1, "two", pattern(3), { n: 4 }, null, 6]);
  // Above half of the smallest ring, a batch of two does not fit: the values go one by one.
  const small = pipe();
  writeMany(small.writer, ["x".repeat(80), "y".repeat(80)]);
  assertEquals(small.reader.read(), "x".repeat(80));
  assertEquals(small.reader.read(), "y".repeat(80));
});

Deno.test("[codec.batch_read] the elements have the kind and the tag of their batch", () => {
  for (const kind of [1, 3, 4, 5]) {
    const { reader, scribe } = scribed({ calls: true });
    scribe.frame({ kind, codec: 3, tag: 3, payload: utf8("[1,2,3,4]") }).publish();
    const seen: number[][] = [];
    const note = () =>
      seen.push([lastRead(reader).kind, lastRead(reader).codec, lastRead(reader).tag]);
    assertEquals(reader.read(), 1);
    note();
    assertEquals(tryReadMessage(reader), { kind, codec: 2, tag: 3, payload: Uint8Array.of(50) });
    note();
    const lent = tryPeek(reader)!;
    seen.push([lent.kind, lent.codec, lent.tag]);
    release(reader);
    assertEquals(tryReadInto(reader, new Uint8Array(1)), 1);
    note();
    assertEquals(seen, new Array(4).fill([kind, 2, 3]));
  }
});

Deno.test("[codec.unknown] an unknown codec is reported when the message is complete", () => {
  const { reader, scribe } = scribed({ maxMessageSize: 4, capacity: 1024 });
  const head = { codec: 9, tag: 1 };
  scribe.frame({ ...head, flags: 1, total: 2, payload: [1] }).publish();
  assertEquals(reader.tryRead(), undefined);
  scribe.frame({ ...head, flags: 2, payload: [2] }).publish();
  assertCode(() => reader.tryRead(), "message.codec");
  scribe.frame({ ...head, flags: 1, total: 2, payload: [1] }).frame({ ...head, flags: 6 });
  scribe.frame({ ...head, flags: 1, total: 5 }).frame({ ...head, flags: 6 }).publish();
  assertCode(() => reader.tryRead(), "message.cancelled");
  assertCode(() => reader.tryRead(), "message.size");
  scribe.frame({ ...head, flags: 1, total: 3, payload: [1] });
  scribe.frame({ ...head, flags: 2, payload: [2] }).publish();
  assertCode(() => reader.tryRead(), "frame.total");
});

Deno.test("a value whose toJSON leaves nothing is refused, not sent as null", () => {
  const { writer, reader } = pipe();
  const nothing = { toJSON: () => undefined };
  assertThrows(() => writer.write(nothing), TypeError);
  assertThrows(() => writeMany(writer, [1, nothing]), TypeError);
  assertEquals([reader.tryRead(), reader.tryRead()], [1, undefined]);
  writeMany(writer, [new Date(0), 2]);
  assertEquals([reader.tryRead(), reader.tryRead()], ["1970-01-01T00:00:00.000Z", 2]);
});
