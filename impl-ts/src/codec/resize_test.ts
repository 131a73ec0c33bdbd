/** The caller's memory grows, shrinks or is detached, between calls or while a call waits. */

import {
  assert,
  assertEquals,
  assertRejects,
  assertStringIncludes,
  assertThrows,
} from "@std/assert";
import type { Codec } from "./codec.ts";
import { MillraceError } from "../error.ts";
import { codeOf, pattern, pipe, watched } from "../testing/fixture.ts";
import type { Writer } from "../pipe/ends.ts";
import { Port } from "../port/port.ts";
import { writeMany } from "../more/many.ts";
import { readInto, tryReadInto, writeMessage } from "../more/raw.ts";

const WAIT = { timeout: 5000 };
/** What stands in the ring before. It must never be handed out as a message. */
const OLD = 0xee;
const CHANGED = "its bytes were detached, or are fewer now";

/** Memory that can change its size, and a view of all of it, or of its first bytes only. */
function resizable(size: number, tracks = true) {
  const buffer = new ArrayBuffer(size, { maxByteLength: 4096 });
  const bytes = tracks ? new Uint8Array(buffer) : new Uint8Array(buffer, 0, size);
  bytes.set(pattern(size));
  return { buffer, bytes };
}

function growable(size: number, tracks = true) {
  const buffer = new SharedArrayBuffer(size, { maxByteLength: 4096 });
  const bytes = tracks ? new Uint8Array(buffer) : new Uint8Array(buffer, 0, size);
  bytes.set(pattern(size));
  return { buffer, bytes };
}

/** A pipe whose ring is full and holds old bytes everywhere. `known` is written to it before. */
function full(known?: Uint8Array) {
  const made = pipe({ capacity: 256 });
  const { segment, writer, reader } = made;
  for (let round = 0; known !== undefined && round < 3; round++) {
    writeMessage(writer, { payload: known });
    reader.tryRead();
  }
  const { dataOffset, dataSize } = segment.channels[0]!;
  segment.bytes(dataOffset, dataSize).fill(OLD);
  const filler = new Uint8Array(16).fill(OLD);
  while (writer.tryWrite(filler));
  const drain = () => {
    while (reader.tryRead() !== undefined);
  };
  return { ...made, drain };
}

for (const [name, make] of [["growable", growable], ["resizable", resizable]] as const) {
  for (const tracks of [true, false]) {
    Deno.test(`a ${name} buffer may grow between two writes and reads, tracked ${tracks}`, () => {
      const { writer, reader } = pipe({ codec: "bytes", capacity: 1024 });
      const from = make(24, tracks);
      const to = make(24, tracks);
      for (const size of [24, 24, 24, 64, 64, 200, 300]) {
        const grow = (buffer: ArrayBuffer | SharedArrayBuffer) =>
          buffer instanceof ArrayBuffer ? buffer.resize(size) : buffer.grow(size);
        grow(from.buffer);
        grow(to.buffer);
        from.bytes.set(pattern(from.bytes.length, size));
        to.bytes.fill(0);
        for (let round = 0; round < 3; round++) {
          writer.write(from.bytes);
          assertEquals(readInto(reader, to.bytes), tracks ? size : 24);
          assertEquals(to.bytes, from.bytes);
          writeMessage(writer, { payload: from.bytes });
          assertEquals(reader.read(), new Uint8Array(from.bytes));
          writeMany(writer, [from.bytes, from.bytes]);
          assertEquals(reader.tryRead(), new Uint8Array(from.bytes));
          assertEquals(tryReadInto(reader, to.bytes), from.bytes.length);
          assertEquals(to.bytes, from.bytes);
        }
      }
    });
  }

  Deno.test(`a ${name} buffer that grows under a write is sent as it was at the call`, async () => {
    for (const size of [40, 110, 700]) {
      const { writer, reader, drain } = full();
      const { buffer, bytes } = make(size);
      const sent = writer.writeAsync(bytes, WAIT);
      if (buffer instanceof ArrayBuffer) buffer.resize(size + 50);
      else buffer.grow(size + 50);
      bytes.fill(1, size);
      drain();
      const [message] = await Promise.all([reader.readAsync(WAIT), sent]);
      assertEquals(message, pattern(size));
    }
  });
}

for (const tracks of [true, false]) {
  Deno.test(`bytes that shrink under a write cost that message, tracked ${tracks}`, async () => {
    for (const size of [40, 110, 700]) {
      const { writer, reader, drain } = full();
      const { buffer, bytes } = resizable(size, tracks);
      const sent = writer.writeAsync(bytes, WAIT);
      buffer.resize(7);
      const outcome = sent.catch(String);
      drain();
      const next = writer.writeAsync("next");
      const seen: unknown[] = [];
      while (seen.at(-1) !== "next") {
        seen.push(await reader.readAsync(WAIT).catch((error) => error.code));
      }
      await next;
      // The ring was full, so that nothing of the message is in it, and nothing is cancelled.
      assertEquals(seen, ["next"], `${size}`);
      assertStringIncludes(`${await outcome}`, CHANGED);
    }
  });
}

Deno.test("bytes that shrink while a call blocks cost that message alone", () => {
  const writes: ((writer: Writer, bytes: Uint8Array) => void)[] = [
    (writer, bytes) => writer.write(bytes, WAIT),
    (writer, bytes) => writeMany(writer, ["before", bytes, "behind"], WAIT),
    (writer, payload) => writeMessage(writer, { payload }, WAIT),
  ];
  for (const write of writes) {
    for (const size of [100, 700]) { // in one frame, which finds no room, and in many
      const { buffer, bytes } = resizable(size);
      const mechanism = watched(() => {
        buffer.resize(3);
        reader.tryRead(); // makes room
      });
      const { writer, reader } = pipe({ capacity: 256, mechanism, spin: 0 });
      while (writer.tryWrite(new Uint8Array(64).fill(OLD)));
      reader.tryRead();
      assertThrows(() => write(writer, bytes), TypeError, CHANGED);
      const seen: unknown[] = [];
      writer.tryWrite("next");
      for (let value; value !== "next";) {
        try {
          value = reader.tryRead();
          if (value === undefined) writer.tryWrite("next");
          else if (typeof value === "string") seen.push(value);
          else assertEquals(value, new Uint8Array(64).fill(OLD));
        } catch (error) {
          seen.push((error as MillraceError).code);
        }
        assert(seen.length < 10, `${seen}`);
      }
      const expected = size === 700 ? ["message.cancelled", "next"] : ["next"];
      assertEquals(seen.filter((each) => each !== "before"), expected);
    }
  }
});

/** What makes the caller's bytes unusable while a write of them waits. */
const losses: Record<string, (buffer: ArrayBuffer) => void> = {
  "are transferred": (buffer) => structuredClone(buffer, { transfer: [buffer] }),
  "shrink to nothing": (buffer) => buffer.resize(0),
  "shrink below what is sent already": (buffer) => buffer.resize(1),
};

for (const [name, lose] of Object.entries(losses)) {
  Deno.test(`[frame.cancel] bytes that ${name} inside a message cost that alone`, async () => {
    const { writer, reader } = pipe({ capacity: 256 });
    const { buffer, bytes } = resizable(700);
    const sent = writer.writeAsync(bytes, WAIT);
    assertEquals(reader.tryRead(), undefined); // takes its first chunks, which are there
    lose(buffer);
    await assertRejects(() => sent, TypeError, CHANGED);
    writer.write("next");
    assertEquals(await codeOf(reader.readAsync(WAIT)), "message.cancelled");
    assertEquals(await reader.readAsync(WAIT), "next");
    writer.write("and on");
    assertEquals(reader.tryRead(), "and on");
  });
}

Deno.test("short bytes are not sent once they are detached", async () => {
  const bytes = new Uint8Array(64);
  const { writer, reader, drain } = full(bytes);
  const sent = [writer.writeAsync(bytes, WAIT), writer.writeAsync(bytes, WAIT)];
  structuredClone(bytes.buffer, { transfer: [bytes.buffer] });
  const outcomes = sent.map((each) => each.catch(String));
  drain();
  for (const outcome of outcomes) assertStringIncludes(`${await outcome}`, CHANGED);
  writer.write("next");
  assertEquals(reader.tryRead(), "next");
});

Deno.test("what is posted may shrink at once: it was copied", async () => {
  using here = Port.create<Uint8Array>({ capacity: 256 });
  using there = Port.attach<Uint8Array>(here.memory);
  for (const size of [40, 110, 700]) {
    const { buffer, bytes } = resizable(size);
    const posted = here.postMessage(bytes);
    buffer.resize(0);
    assertEquals(await there.readAsync(WAIT), pattern(size));
    await posted;
  }
});

Deno.test("a codec may make its payloads in memory that shrinks: each is copied", async () => {
  const { buffer, bytes } = resizable(2000);
  const codec: Codec<number> = {
    code: 200,
    encode(size) {
      buffer.resize(size);
      return bytes.fill(size & 255);
    },
    decode: (payload) => {
      assert(payload.every((byte) => byte === (payload.length & 255)), `${payload}`);
      return payload.length;
    },
  };
  const { writer, reader } = pipe<number>({ capacity: 256, codec });
  const sizes = [700, 3, 110, 0, 900, 40];
  const sent = sizes.map((size) => writer.writeAsync(size));
  buffer.resize(0);
  const seen: unknown[] = [];
  while (seen.length < sizes.length) seen.push(await reader.readAsync(WAIT));
  await Promise.all(sent);
  assertEquals(seen, sizes);
});

Deno.test("memory may shrink and grow between two reads of a message in parts", async () => {
  const { writer, reader } = pipe({ capacity: 256 });
  const { buffer, bytes } = resizable(700);
  const sent = writer.writeAsync(pattern(700), WAIT);
  assertEquals(tryReadInto(reader, bytes), undefined);
  buffer.resize(100); // between two calls the array is the caller's
  for (let caught; caught === undefined;) {
    try {
      assertEquals(tryReadInto(reader, bytes), undefined);
    } catch (error) {
      caught = error;
    }
    await new Promise((resolve) => setTimeout(resolve, 1));
    assert(caught === undefined || caught instanceof RangeError, `${caught}`);
  }
  buffer.resize(900);
  let size;
  while ((size = tryReadInto(reader, bytes)) === undefined) {
    await new Promise((resolve) => setTimeout(resolve, 1));
  }
  await sent;
  assertEquals([size, bytes.slice(0, 700)], [700, pattern(700)]);
});

Deno.test("bytes that are detached have no room for a message, which stays", () => {
  const { writer, reader } = pipe();
  const bytes = new Uint8Array(8);
  structuredClone(bytes.buffer, { transfer: [bytes.buffer] });
  writer.write("one byte");
  assertThrows(() => tryReadInto(reader, bytes), RangeError);
  assertEquals(reader.tryRead(), "one byte");
});
