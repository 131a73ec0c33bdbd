/** Codecs of the application's own. */

import { assertEquals, assertInstanceOf, assertRejects, assertThrows } from "@std/assert";
import type { Codec } from "./codec.ts";
import { MessageError } from "../error.ts";
import { assertCode, pattern, pipe, pipeSegment, scribed } from "../testing/fixture.ts";
import { Port } from "../port/port.ts";
import { Reader, Writer } from "../pipe/ends.ts";
import { writeMany } from "../more/many.ts";
import { lastRead, writeMessage } from "../more/raw.ts";

interface Point {
  readonly x: number;
  readonly y: number;
}

/** Two doubles. The codec makes all payloads in the same bytes. */
const point: Codec<Point> & { readonly scratch: Float64Array } = {
  code: 128,
  scratch: new Float64Array(2),
  encode({ x, y }) {
    this.scratch.set([x, y]);
    return new Uint8Array(this.scratch.buffer);
  },
  decode(payload) {
    const [x, y] = new Float64Array(payload.buffer);
    if (x === undefined || y === undefined) throw new RangeError("no point");
    return { x, y };
  },
};

/** Bytes, back to front. A decoded value is the payload itself. */
const reversed: Codec<Uint8Array> = {
  code: 255,
  encode: (value) => value.toReversed(),
  decode: (payload) => payload.reverse(),
};

Deno.test("values of an application's codec come back, of one frame and of many", () => {
  const { writer, reader } = pipe<Point>({ codec: point, capacity: 1024 });
  writer.write({ x: 0.5, y: -1 });
  assertEquals([reader.read(), lastRead(reader).codec], [{ x: 0.5, y: -1 }, 128]);
  const bytes = pipe<Uint8Array>({ codec: reversed, capacity: 1024 });
  for (const size of [0, 1, 64, 112]) {
    bytes.writer.write(pattern(size));
    assertEquals(bytes.reader.read(), pattern(size));
  }
  assertEquals(bytes.writer.tryWrite(pattern(600)), true);
  assertEquals([bytes.reader.read(), lastRead(bytes.reader).codec], [pattern(600), 255]);
});

Deno.test("what a codec decodes is its own to keep", () => {
  const { writer, reader } = pipe<Uint8Array>({ codec: reversed });
  writer.write(pattern(8, 1));
  const first = reader.read();
  writer.write(pattern(8, 2));
  reader.read();
  assertEquals(first, pattern(8, 1));
});

Deno.test("types follow from the codec", () => {
  const port = Port.create({ codec: point });
  const peer = Port.attach(port.memory, { codec: point });
  const written: Point = { x: 1, y: 2 };
  port.write(written);
  const read: Point | undefined = peer.read();
  assertEquals(read, written);
  // @ts-expect-error A string is no point: the check of types must refuse this line.
  const wrong = () => port.write("x");
  assertEquals(wrong.length, 0);
  const segment = pipeSegment();
  const writer: Writer<Point> = Writer.attach(segment, { codec: point });
  const reader: Reader<Point> = Reader.attach(segment, { codecs: [point] });
  writer.write(written);
  assertEquals(reader.read()?.x, 1);
});

Deno.test("a codec may use its bytes again while writes wait", async () => {
  const { writer, reader } = pipe<Point>({ codec: point });
  const points = Array.from({ length: 40 }, (_, n) => ({ x: n, y: -n }));
  const writes = points.map((value) => writer.writeAsync(value));
  for (const value of points) assertEquals(await reader.readAsync(), value);
  await Promise.all(writes);
});

Deno.test("a reader knows several codecs, and those of this library", () => {
  const { reader, scribe } = scribed({ codec: reversed, codecs: [point, reversed] });
  const doubles = [...new Uint8Array(Float64Array.of(3, 4).buffer)];
  scribe.frame({ codec: 255, payload: [1, 2] }).frame({ codec: 128, payload: doubles })
    .frame({ codec: 2, payload: [55] }).frame({ codec: 129 }).frame({ codec: 0 }).publish();
  assertEquals([reader.read(), reader.read(), reader.read()], [
    Uint8Array.of(2, 1),
    { x: 3, y: 4 },
    7,
  ]);
  assertCode(() => reader.read(), "message.codec");
  assertEquals(reader.read(), new Uint8Array(0));
});

Deno.test("a codec that fails to decode costs one message, and is the error's cause", async () => {
  const { reader, scribe } = scribed({ codec: point });
  for (let n = 0; n < 2; n++) scribe.frame({ codec: 128, payload: [1, 2, 3, 4, 5, 6, 7, 8] });
  scribe.frame({ codec: 128, flags: 1, total: 8, payload: [1, 2] })
    .frame({ codec: 128, flags: 2, payload: [3, 4, 5, 6, 7, 8] });
  scribe.frame({ codec: 2, payload: [55] }).publish();
  const error = assertThrows(() => reader.read(), MessageError, "codec 128 failed: RangeError");
  assertEquals(error.code, "message.codec");
  assertInstanceOf(error.cause, RangeError);
  await assertRejects(() => reader.readAsync(), MessageError);
  assertCode(() => reader.read(), "message.codec");
  assertEquals(reader.read(), 7);
});

Deno.test("a codec that decodes to undefined, which is no message, costs one message", () => {
  const nothing = { code: 130, encode: () => pattern(1), decode: () => undefined };
  const { writer, reader } = pipe<undefined>({ codec: nothing });
  writer.write(undefined);
  writeMessage(writer, { payload: pattern(2) });
  assertCode(() => reader.read(), "message.codec");
  assertEquals<unknown>(reader.read(), pattern(2));
});

Deno.test("what encode throws is the caller's, and nothing is written", async () => {
  const failing: Codec<number> = {
    code: 200,
    encode(value) {
      if (value < 0) throw new RangeError("negative");
      return value === 0 ? [0] as unknown as Uint8Array : pattern(value);
    },
    decode: (payload) => payload.length,
  };
  const { writer, reader } = pipe<number>({ codec: failing });
  assertThrows(() => writer.write(-1), RangeError, "negative");
  assertThrows(() => writer.tryWrite(0), TypeError, "codec 200");
  await assertRejects(() => writer.writeAsync(-1), RangeError);
  assertThrows(() => writeMany(writer, [3, -1, 4]), RangeError);
  assertEquals([reader.tryRead(), reader.tryRead()], [3, undefined]);
  writer.write(5);
  assertEquals(reader.read(), 5);
});

Deno.test("what is no codec is refused before the endpoint is taken", () => {
  const { encode, decode } = reversed;
  const segment = pipeSegment();
  for (const code of [2, 127, 256, -1, 128.5, NaN, "128" as unknown as number]) {
    const codec = { code, encode, decode };
    assertThrows(() => Writer.attach(segment, { codec }), RangeError);
    assertThrows(() => Reader.attach(segment, { codec }), RangeError);
    assertThrows(() => Reader.attach(segment, { codecs: [codec] }), RangeError);
    assertThrows(() => Port.create({ codec }), RangeError);
  }
  for (const codec of [{ code: 128, encode }, { code: 128, decode }, "xml", null, 7]) {
    const wrong = codec as unknown as typeof reversed;
    assertThrows(() => Writer.attach(segment, { codec: wrong }), TypeError);
    assertThrows(() => Reader.attach(segment, { codec: wrong }), TypeError);
    assertThrows(() => Port.create({ codec: wrong }), TypeError);
  }
  // 5 is the number of CBOR, whoever writes it.
  Port.create({ codec: { code: 5, encode, decode } }).close();
  const twin = { ...reversed };
  assertThrows(() => Reader.attach(segment, { codecs: [reversed, twin] }), TypeError, "255");
  assertThrows(() => Port.create({ codec: reversed, codecs: [twin] }), TypeError);
  Writer.attach(segment, { codec: reversed });
  Reader.attach(segment, { codec: reversed, codecs: [reversed] });
});

Deno.test("whatever a codec throws, its message alone is lost", () => {
  const { proxy, revoke } = Proxy.revocable({}, {});
  revoke();
  const text = {
    toString() {
      throw new RangeError("no text either");
    },
  };
  const thrown: unknown[] = [Symbol("odd"), proxy, text, undefined, Object.create(null)];
  const odd: Codec<number> = {
    code: 130,
    encode: (index) => Uint8Array.of(index),
    decode([index]) {
      if (index! < thrown.length) throw thrown[index!];
      return index!;
    },
  };
  const { writer, reader } = pipe<number>({ codec: odd });
  for (let index = 0; index <= thrown.length; index++) writer.write(index);
  for (const reason of thrown) {
    const error = assertThrows(() => reader.tryRead(), MessageError);
    assertEquals([error.code, Object.is(error.cause, reason)], ["message.codec", true]);
  }
  assertEquals(reader.tryRead(), thrown.length);
});
