import { assertEquals, assertThrows } from "@std/assert";
import { assertCode, NEAR_WRAP, pattern, pipe, scribed } from "../testing/fixture.ts";
import { layout } from "../memory/layout.ts";
import { abandon, claim, finish, peek, publish, release, tryClaim, tryPeek } from "../more/lend.ts";
import { tryReadMessage } from "../more/raw.ts";
import { statsOf } from "../pipe/ends.ts";

function control(words: Int32Array) {
  const RING_TAIL_WORD = layout.RING_TAIL_WORD;
  const RING_HEAD_WORD = layout.RING_HEAD_WORD;
  const RING_READER_WANTS_WORD = layout.RING_READER_WANTS_WORD;
  const RING_WRITER_WANTS_WORD = layout.RING_WRITER_WANTS_WORD;
  return [RING_TAIL_WORD, RING_HEAD_WORD, RING_READER_WANTS_WORD, RING_WRITER_WANTS_WORD]
    .map((word) => words[word]! >>> 0);
}

Deno.test("the ring of the specification's example, across 2^32", async () => {
  const { segment, writer, reader } = pipe({ start: 0xffffff80, codec: "bytes" });
  const words = segment.words(512, 512);
  writer.write(pattern(112));
  reader.read();
  assertEquals(control(words), [0, 0, 0, 0]);
  const arriving = reader.readAsync();
  assertEquals(control(words), [0, 0, 0x11, 0]);
  writer.write(new TextEncoder().encode("hello"));
  assertEquals(control(words), [32, 0, 0, 0]);
  const frame = [5, 0, 0, 0, 1, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x68, 0x65, 0x6c, 0x6c, 0x6f];
  assertEquals([...segment.bytes(1024, 21)], frame);
  await arriving;
  assertEquals([statsOf(writer).wakes, statsOf(reader).parks], [1, 1]);
});

Deno.test("a frame that would cross the end of the byte area goes after a pad", () => {
  const { segment, writer, reader } = pipe({ start: 0, codec: "bytes" });
  writer.write(pattern(100));
  writer.write(pattern(60));
  reader.read();
  reader.read();
  writer.write(pattern(64)); // at 208, with 48 bytes to the end
  assertEquals([...segment.bytes(1024 + 208, 16)].slice(0, 8), [32, 0, 0, 0, 6, 0, 0, 0]);
  assertEquals(reader.read(), pattern(64));
  assertEquals(control(segment.words(512, 512)).slice(0, 2), [336, 336]);
});

Deno.test("messages of every size pass every position of the smallest ring", () => {
  for (let start = NEAR_WRAP; start < NEAR_WRAP + 256; start += 16) {
    const { writer, reader } = pipe({ start, codec: "bytes" });
    for (let size = 0; size <= 112; size++) {
      assertEquals(writer.tryWrite(pattern(size, start)), true);
      assertEquals(reader.tryRead(), pattern(size, start));
    }
    assertEquals(reader.tryRead(), undefined);
  }
});

Deno.test("a full ring refuses, keeps 16 bytes for an end, and returns all in order", () => {
  for (const size of [0, 1, 16, 17, 40, 48, 104, 112]) {
    for (let start = 0; start < 256; start += 16) {
      const { segment, writer, reader } = pipe({ start, codec: "bytes" });
      let count = 0;
      while (writer.tryWrite(pattern(size, count))) count++;
      const tail = segment.words(512, 512)[layout.RING_TAIL_WORD]!;
      assertEquals(tail - start <= 240, true);
      assertEquals(count >= 1, true);
      writer.end();
      for (let i = 0; i < count; i++) assertEquals(reader.read(), pattern(size, i));
      assertEquals([reader.read(), reader.ended], [undefined, true]);
    }
  }
});

Deno.test("a slow reader gives a writer that waits the room of each message", async () => {
  const { writer, reader } = pipe({ capacity: 1024, codec: "bytes" });
  const timeout = 2_000;
  for (let round = 0; round < 3; round++) {
    while (writer.tryWrite(pattern(16))) { /* until it is full */ }
    // One message is far from a quarter of the ring, and no other is read meanwhile.
    const written = writer.writeAsync(pattern(16), { timeout });
    reader.tryRead();
    await written;
  }
});

Deno.test("a ring fills up exactly, with a pad", () => {
  const { segment, writer, reader } = pipe({ start: 0, codec: "bytes" });
  writer.write(pattern(112));
  writer.write(pattern(64)); // up to 208
  reader.read();
  reader.read();
  // A pad of 48, then 240 - 48 = 192 bytes of frames: 112 and 48 payload.
  assertEquals(writer.tryWrite(pattern(112)), true);
  assertEquals(writer.tryWrite(pattern(48)), true);
  assertEquals(writer.tryWrite(pattern(0)), false);
  const words = segment.words(512, 512);
  assertEquals(words[layout.RING_TAIL_WORD]! - words[layout.RING_HEAD_WORD]!, 240);
  assertEquals([reader.read(), reader.read()], [pattern(112), pattern(48)]);
});

Deno.test("a tail out of bounds is the writer's fault", () => {
  const rows: [number, boolean][] = [
    [240, true],
    [256, true],
    [272, false],
    [8, false],
    [1, false],
    [0xfffffff0, false],
    [0x80000000, false],
  ];
  for (const [tail, valid] of rows) {
    const { segment, reader, scribe } = scribed();
    scribe.frame({ kind: 6, flags: 0, payload: [...pattern(240)] });
    scribe.tail = tail;
    scribe.publish();
    const word = () => segment.words(128 + 4, 4)[0]!;
    if (!valid) {
      assertCode(() => reader.tryRead(), "ring.cursor");
      assertEquals(word(), 3 | (layout.REASON_RING_CURSOR << 8));
      assertCode(() => reader.read(), "ring.cursor");
    } else if (tail === 256) assertEquals(reader.tryRead(), undefined);
    else assertCode(() => reader.tryRead(), "frame.size");
  }
});

Deno.test("a tail that goes back is the writer's fault, even within the bounds", () => {
  const { reader, scribe } = scribed();
  scribe.frame({ payload: [1] }).frame({ payload: [2] }).publish();
  reader.tryRead();
  scribe.tail = 32;
  scribe.publish();
  assertEquals(reader.tryRead(), Uint8Array.of(2)); // shown by an earlier load
  assertCode(() => reader.tryRead(), "ring.cursor");
});

Deno.test("a head out of bounds is the reader's fault", () => {
  for (const head of [8, 16, 240, 256, 0xfffffff0, 0x80000000]) {
    const { segment, writer } = pipe({ start: 0, codec: "bytes" });
    writer.write(pattern(100));
    writer.write(pattern(80));
    const words = segment.words(512, 512);
    words[layout.RING_HEAD_WORD] = head;
    const valid = head === 16;
    if (valid) assertEquals(writer.tryWrite(pattern(0)), true);
    else assertCode(() => writer.tryWrite(pattern(112)), "ring.cursor");
    if (!valid) assertEquals(segment.words(256 + 4, 4)[0], 3 | (16 << 8));
    if (!valid) assertCode(() => writer.tryWrite(pattern(1)), "ring.cursor");
  }
});

Deno.test("claim lends the place, publish shows it, abandon takes it back", () => {
  const { segment, writer, reader } = pipe({ start: 0 });
  const place = claim(writer, 100, { codec: 200, tag: 9 });
  const first = segment.channels[0]!.dataOffset + 16; // after the header
  assertEquals([place.offset, place.size, place.payload.length], [first, 100, 100]);
  assertThrows(() => writer.write(1), TypeError);
  assertThrows(() => claim(writer, 1), TypeError);
  assertThrows(() => finish(writer, 101), RangeError);
  place.payload.set(pattern(10));
  assertEquals(tryReadMessage(reader), undefined);
  publish(writer, 10);
  const message = tryReadMessage(reader);
  assertEquals(message, { kind: 1, codec: 200, tag: 9, payload: pattern(10) });
  claim(writer, 112);
  abandon(writer);
  assertThrows(() => abandon(writer), TypeError);
  assertThrows(() => finish(writer), TypeError);
  assertThrows(() => claim(writer, 113), RangeError);
  tryClaim(writer, 1)!.payload[0] = 7;
  finish(writer);
  tryClaim(writer, 0);
  finish(writer);
  assertEquals(tryReadMessage(reader), undefined);
  publish(writer);
  assertEquals(tryReadMessage(reader)?.payload, Uint8Array.of(7));
  assertEquals(tryReadMessage(reader)?.payload.length, 0);
  while (tryClaim(writer, 48) !== undefined) publish(writer);
  assertCode(() => claim(writer, 48, { timeout: 1 }), "wait.timeout");
});

Deno.test("peek lends whole messages and chunks, and holds the head back", () => {
  const { segment, writer, reader } = pipe({ start: 0, codec: "bytes" });
  const head = () => segment.words(512, 512)[layout.RING_HEAD_WORD];
  writer.write(pattern(30));
  const lent = peek(reader)!;
  assertEquals([lent.first, lent.last, lent.total, lent.codec], [true, true, 30, 0]);
  assertEquals(lent.payload.slice(), pattern(30));
  assertThrows(() => reader.read(), TypeError);
  assertThrows(() => peek(reader), TypeError);
  assertEquals(head(), 0);
  release(reader);
  assertEquals(head(), 48);
  assertThrows(() => release(reader), TypeError);
  assertEquals(writer.tryWrite(pattern(130)), true);
  const parts: number[] = [];
  for (let done = false; !done;) {
    const chunk = tryPeek(reader)!;
    assertEquals([chunk.total, chunk.first], [130, parts.length === 0]);
    parts.push(...chunk.payload);
    done = chunk.last;
    release(reader);
    if (!done) assertThrows(() => reader.read(), TypeError);
  }
  assertEquals(Uint8Array.from(parts), pattern(130));
  writer.write(pattern(3));
  assertEquals(reader.read(), pattern(3));
  assertEquals(tryPeek(reader), undefined);
});
