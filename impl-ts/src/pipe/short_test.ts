/**
 * Messages of a few bytes: all sizes, all that can stand in their way, and each way to read them.
 */

import { assertEquals, assertThrows } from "@std/assert";
import { MessageError, MillraceError } from "../error.ts";
import {
  assertCode,
  codeOf,
  onTailLoads,
  pattern,
  pipe,
  random,
  type RawFrame,
  Scribe,
  scribed,
} from "../testing/fixture.ts";
import { layout } from "../memory/layout.ts";
import { Port } from "../port/port.ts";
import type { Segment } from "../memory/segment.ts";
import { lastRead, readInto, tryReadInto, tryReadMessage } from "../more/raw.ts";
import { abandon, claim } from "../more/lend.ts";
import { tryReadMany, writeMany } from "../more/many.ts";

const CAPACITY = 256;
const AREA_SIZE = 400;

/** Stores what no peer may store: that an endpoint whose state was final is attached. */
function reattach(segment: Segment, endpoint: number): void {
  const offset = layout.ENDPOINT_TABLE_OFFSET + endpoint * layout.ENDPOINT_RECORD_SIZE;
  const words = segment.words(offset, layout.ENDPOINT_RECORD_SIZE);
  words[layout.ENDPOINT_STATE_WORD] = layout.ENDPOINT_STATE_ATTACHED;
}

Deno.test("every size passes through arrays used again, and nothing beside them is touched", () => {
  for (const capacity of [256, 1024]) {
    const { writer, reader } = pipe({ codec: "bytes", capacity });
    for (let size = 0; size <= Math.min(280, capacity / 2 - 16); size++) {
      const source = new Uint8Array(new ArrayBuffer(AREA_SIZE), 8, size);
      const area = new Uint8Array(AREA_SIZE);
      const target = area.subarray(8, 8 + size);
      for (let round = 0; round < 6; round++) {
        source.set(pattern(size, round));
        area.fill(255);
        // Small messages go out several at a time, so that they meet the end of the area all the
        // same.
        const most = size < 40 ? 3 : 1;
        let count = 0;
        while (count < most && writer.tryWrite(source)) count++;
        for (; count > 0; count--) {
          assertEquals(readInto(reader, target, { timeout: 0 }), size);
          assertEquals(target, source);
        }
        assertEquals(area.subarray(0, 8).every((byte) => byte === 255), true);
        assertEquals(area.subarray(8 + size).every((byte) => byte === 255), true);
      }
      assertEquals([lastRead(reader).kind, lastRead(reader).codec, lastRead(reader).tag], [
        layout.FRAME_KIND_DATA,
        0,
        0,
      ]);
    }
  }
});

Deno.test("whatever stands in the way of a write stands in the way of short bytes", async () => {
  const bytes = pattern(8);
  const kept = () => {
    const made = pipe<unknown>({ capacity: 1024 });
    for (let i = 0; i < 3; i++) made.writer.write(bytes);
    for (let i = 0; i < 3; i++) made.reader.tryRead();
    return made;
  };
  const ended = kept();
  ended.writer.end();
  assertCode(() => ended.writer.write(bytes), "pipe.ended");
  assertCode(() => ended.writer.tryWrite(bytes), "pipe.ended");

  const claimed = kept();
  claim(claimed.writer, 8);
  assertThrows(() => claimed.writer.write(bytes), TypeError, "a claim is open");
  abandon(claimed.writer);
  assertEquals(claimed.writer.tryWrite(bytes), true);

  const encoding = kept();
  encoding.writer.write({
    toJSON: () => assertThrows(() => encoding.writer.write(bytes), TypeError, "being encoded").name,
  });
  encoding.writer.write(bytes);
  assertEquals([encoding.reader.tryRead(), encoding.reader.tryRead()], ["TypeError", bytes]);

  const taken = kept();
  const large = taken.writer.writeAsync(pattern(2000));
  assertEquals(taken.writer.tryWrite(bytes), false);
  assertEquals((await taken.reader.readAsync() as Uint8Array).length, 2000);
  await large;
  taken.writer.write(bytes);
  assertEquals(taken.reader.tryRead(), bytes);

  const owed = kept();
  assertCode(() => owed.writer.write(pattern(2000), { timeout: 0 }), "wait.timeout");
  owed.writer.write(bytes); // there is room for it, after the cancel
  assertCode(() => owed.reader.tryRead(), "message.cancelled");
  assertEquals(owed.reader.tryRead(), bytes);

  const gone = kept();
  gone.reader.close();
  assertCode(() => gone.writer.write(bytes), "peer.closed");
  reattach(gone.segment, 1);
  assertCode(() => gone.writer.write(bytes), "peer.closed"); // [segment.state_kept]

  const closed = kept();
  closed.writer.close();
  reattach(closed.segment, 0);
  assertCode(() => closed.writer.write(bytes), "pipe.closed");
  assertEquals(await codeOf(closed.writer.writeAsync(bytes)), "pipe.closed");
});

Deno.test("[ring.room] short messages leave the bytes of an end free", () => {
  const { writer, reader } = pipe({ codec: "bytes", capacity: CAPACITY, start: 0 });
  const empty = new Uint8Array(0);
  for (let lap = 0; lap < 3; lap++) {
    let count = 0;
    while (writer.tryWrite(empty)) count++;
    assertEquals(count, CAPACITY / 16 - 1);
    while (tryReadInto(reader, empty) !== undefined) count--;
    assertEquals(count, 0);
  }
});

Deno.test("what any bytes in a ring come to does not depend on how they are read", () => {
  for (let seed = 0; seed < 3_000; seed++) {
    const next = random(seed);
    const maxMessageSize = [20, 64, 1 << 20][next() % 3]!;
    const [whole, into] = [scribed({ maxMessageSize }), scribed({ maxMessageSize })];
    const target = new Uint8Array(next() % 8 === 0 ? 40 : CAPACITY);
    for (let i = 0; i < 12; i++) {
      if (next() % 3 > 0) scrawl([whole.scribe, into.scribe], next);
      const expected = outcome(() => {
        const message = tryReadMessage(whole.reader);
        if (message === undefined) return undefined;
        const { kind, codec, tag, payload } = message;
        return [kind, codec, tag, payload];
      });
      let found = outcome(() => {
        const size = tryReadInto(into.reader, target);
        if (size === undefined) return undefined;
        const { kind, codec, tag } = lastRead(into.reader);
        return [kind, codec, tag, target.slice(0, size)];
      });
      // The message stays, and can be read again.
      if (found === "RangeError") {
        found = outcome(() => {
          const { kind, codec, tag, payload } = tryReadMessage(into.reader)!;
          return [kind, codec, tag, payload];
        });
      }
      assertEquals(found, expected, `seed ${seed}, step ${i}`);
      const at = layout.RING_HEAD_WORD;
      assertEquals(into.scribe.control[at], whole.scribe.control[at], `seed ${seed}, step ${i}`);
      assertEquals(into.reader.ended, whole.reader.ended);
    }
  }
});

/** Writes a frame, most often a valid one, or stores a wrong tail. */
function scrawl(scribes: Scribe[], next: () => number): void {
  const wrong = next() % 6 === 0;
  const size = next() % 60;
  const frame = {
    kind: wrong ? next() % 8 : next() % 16 === 0 ? 200 : 1,
    flags: next() % 8 === 0 ? next() % 5 : 3,
    codec: next() % 4 === 0 ? next() % 5 : 0,
    reserved: next() % 32 === 0 ? 1 : 0,
    tag: next(),
    payload: [...pattern(size, next() % 256)],
    ...(next() % 16 === 0 ? { size: next() % 300 } : {}),
  };
  const tail = next() % 24 === 0 ? next() % 600 : undefined;
  const around = next() % 16 === 0;
  for (const scribe of scribes) {
    // A writer without checks goes around the end of the area, and leaves no pad.
    const toEnd = CAPACITY - scribe.tail % CAPACITY;
    if (toEnd < 80 && !around) {
      scribe.frame({ kind: 6, flags: 0, payload: new Array(toEnd - 16).fill(0) });
    }
    scribe.frame(frame);
    if (tail === undefined) scribe.publish();
    else Atomics.store(scribe.control, layout.RING_TAIL_WORD, tail);
  }
}

function outcome(read: () => unknown): unknown {
  try {
    return read();
  } catch (error) {
    if (error instanceof MillraceError) return error.code;
    if (error instanceof RangeError) return "RangeError";
    throw error;
  }
}

Deno.test("the limit holds for short messages, and the next one is read", () => {
  const { writer, reader } = pipe({ codec: "bytes", maxMessageSize: 10 });
  const target = new Uint8Array(64);
  for (let round = 0; round < 3; round++) {
    writer.write(pattern(11));
    writer.write(pattern(10, round));
    assertEquals(assertThrows(() => readInto(reader, target), MessageError).code, "message.size");
    assertEquals(readInto(reader, target), 10);
    assertEquals(target.subarray(0, 10), pattern(10, round));
  }
});

Deno.test("[ring.fault] after a fault, a read neither looks nor finds", () => {
  const { reader, scribe } = scribed();
  const target = new Uint8Array(64);
  for (let round = 0; round < 4; round++) {
    scribe.frame({ payload: [1, 2, 3] }).publish();
    assertEquals(readInto(reader, target), 3);
  }
  Atomics.store(scribe.control, layout.RING_TAIL_WORD, scribe.tail + 8);
  assertCode(() => readInto(reader, target), "ring.cursor");
  scribe.frame({ payload: [1, 2, 3] }).publish();
  assertCode(() => readInto(reader, target, { timeout: 0 }), "ring.cursor");
  assertCode(() => tryReadInto(reader, target), "ring.cursor");
});

Deno.test("what is left of a batch comes before a short message", () => {
  using here = Port.create<unknown>();
  using there = Port.attach<unknown>(here.memory);
  const target = new Uint8Array(64);
  for (let round = 0; round < 4; round++) {
    writeMany(here, [1, 22]);
    here.write(Uint8Array.of(7, 8, 9));
    assertEquals(there.read(), 1);
    assertEquals(readInto(there, target), 2);
    assertEquals(target.subarray(0, 2), new TextEncoder().encode("22"));
    assertEquals(readInto(there, target), 3);
  }
});

Deno.test("the report of a lost message comes before a short message", () => {
  const { writer, reader } = pipe({ codec: "bytes", maxMessageSize: 10 });
  const target = new Uint8Array(64);
  for (let round = 0; round < 4; round++) {
    writer.write(pattern(1));
    writer.write(pattern(11));
    writer.write(pattern(2));
    assertEquals(tryReadMany(reader, 9), [pattern(1)]);
    assertCode(() => readInto(reader, target), "message.size");
    assertEquals(readInto(reader, target), 2);
  }
});

Deno.test("[ring.one_load] a read loads the tail once, whatever is there", () => {
  const { reader, scribe } = scribed();
  const target = new Uint8Array(64);
  const load = (...frames: RawFrame[]) => {
    for (const frame of frames) scribe.frame(frame);
    scribe.publish();
    return tailLoads(scribe, () => tryReadInto(reader, target));
  };
  const message = { payload: [1, 2] };
  const extension = { kind: 200, flags: 0 };
  for (let round = 0; round < 4; round++) {
    assertEquals(load(), [1, undefined]);
    assertEquals(load(message), [1, 2]);
    assertEquals(load(extension), [1, undefined]);
    assertEquals(load(message, extension), [1, 2]);
    // The frame known before is no message. The message that came meanwhile is found all the same.
    assertEquals(load(message), [1, 2]);
  }
});

/** Returns how often a call loads the tail, and what the call returns. */
function tailLoads<R>(scribe: Scribe, call: () => R): [number, R] {
  let loads = 0;
  const result = onTailLoads(scribe, (count) => loads = count, call);
  return [loads, result];
}

Deno.test("what a read hands out as bytes stays when the next message comes", () => {
  const { writer, reader } = pipe<Uint8Array>({ codec: "bytes" });
  const sizes = [40, 40, 0, 41, 7];
  const all = sizes.map((size, index) => {
    writer.write(pattern(size, index));
    return reader.read({ timeout: 0 })!;
  });
  all.forEach((bytes, index) => {
    assertEquals(bytes, pattern(sizes[index]!, index));
    assertEquals([bytes.byteOffset, bytes.buffer.byteLength], [0, bytes.length]);
  });
});

Deno.test("short texts of any lengths are read one after the other", () => {
  const { writer, reader } = pipe<string>({ codec: "text", capacity: 1024 });
  for (const text of ["", "a", "abc", "abc", "ab", "\ufeffa", "é", "x".repeat(256), "y", ""]) {
    writer.write(text);
    assertEquals(reader.read({ timeout: 0 }), text);
  }
});
