import { assertEquals, assertRejects, assertThrows } from "@std/assert";
import { closeEndpoint, failEndpoint } from "../wait/state.ts";
import { ClosedError, PeerFailedError } from "../error.ts";
import {
  assertCode,
  codeOf,
  NEAR_WRAP,
  pattern,
  pipe,
  pipeSegment,
  scribed,
} from "../testing/fixture.ts";
import { Reader, Writer } from "./ends.ts";
import { Segment } from "../memory/segment.ts";
import { release, tryPeek } from "../more/lend.ts";
import { lastRead, readInto, tryReadInto, tryReadMessage } from "../more/raw.ts";

const utf8 = (text: string) => [...new TextEncoder().encode(text)];

Deno.test("a multipart message may be cut at every byte, in two parts and in three", () => {
  const text = JSON.stringify({ a: [1, "é€😀", null], b: "x" });
  const bytes = utf8(text);
  for (let one = 0; one < bytes.length; one++) {
    for (let two = one + 1; two <= bytes.length; two += 3) {
      const { reader, scribe } = scribed({ capacity: 512, start: NEAR_WRAP });
      const head = { codec: 2, tag: 8 };
      scribe.frame({ ...head, flags: 1, total: bytes.length, payload: bytes.slice(0, one) });
      const last = two === bytes.length;
      scribe.frame({ ...head, flags: last ? 2 : 0, payload: bytes.slice(one, two) });
      if (!last) scribe.frame({ ...head, flags: 2, payload: bytes.slice(two) });
      scribe.publish();
      assertEquals([reader.tryRead(), lastRead(reader).tag], [JSON.parse(text), 8]);
    }
  }
});

Deno.test("large messages pass the smallest ring at every size, the writer waiting", async () => {
  for (let size = 100; size < 420; size += 3) {
    const start = NEAR_WRAP + (size % 16) * 16;
    const { writer, reader } = pipe({ start, codec: "bytes" });
    const [message] = await Promise.all([reader.readAsync(), writer.writeAsync(pattern(size))]);
    assertEquals(message, pattern(size));
  }
});

Deno.test("tryWrite places all frames or none, and refuses what can never fit", () => {
  for (let start = 0; start < 256; start += 16) {
    const { writer, reader } = pipe({ start, codec: "bytes" });
    for (let size = 100; size <= 144; size++) {
      assertEquals(writer.tryWrite(pattern(size)), true, `${size} bytes at ${start}`);
      assertEquals(reader.tryRead(), pattern(size));
    }
    assertEquals(writer.tryWrite(pattern(40)), true);
    assertEquals(writer.tryWrite(pattern(40)), true);
    assertEquals(writer.tryWrite(pattern(130)), false);
    assertEquals([reader.tryRead(), reader.tryRead()], [pattern(40), pattern(40)]);
    assertEquals(reader.tryRead(), undefined);
    assertEquals(writer.tryWrite(pattern(130)), true);
    assertEquals(reader.tryRead(), pattern(130));
    assertThrows(() => writer.tryWrite(pattern(145)), RangeError);
  }
});

Deno.test("a write that times out inside a message is cancelled before the next one", () => {
  const { writer, reader } = pipe({ codec: "bytes" });
  writer.write(pattern(5));
  assertCode(() => writer.write(pattern(1000), { timeout: 2 }), "wait.timeout");
  assertEquals(reader.read(), pattern(5));
  assertEquals(reader.read({ timeout: 0 }), undefined);
  writer.write(pattern(6));
  assertCode(() => reader.read(), "message.cancelled");
  assertEquals(reader.read(), pattern(6));
});

Deno.test("a write that times out before its first frame leaves no trace", () => {
  const { writer, reader } = pipe({ codec: "bytes" });
  while (writer.tryWrite(pattern(0)));
  assertCode(() => writer.write(pattern(1), { timeout: 0 }), "wait.timeout");
  assertCode(() => writer.write(pattern(200), { timeout: 1 }), "wait.timeout");
  while (reader.tryRead() !== undefined);
  writer.write(pattern(3));
  assertEquals(reader.read(), pattern(3));
});

Deno.test("an end after a message given up cancels it if there is room, else truncates it", () => {
  for (const [room, code] of [[true, "message.cancelled"], [false, "message.truncated"]] as const) {
    const { writer, reader } = pipe({ codec: "bytes", start: 0 });
    // Three chunks of 64 bytes fit after three frames of 16; then only the `end` fits.
    for (let i = 0; !room && i < 3; i++) writer.write(pattern(0));
    assertCode(() => writer.write(pattern(1000), { timeout: 0 }), "wait.timeout");
    writer.end();
    writer.end();
    for (let i = 0; !room && i < 3; i++) reader.read();
    assertCode(() => reader.read(), code);
    assertEquals([reader.read(), reader.ended], [undefined, true]);
    assertCode(() => writer.write(pattern(1)), "pipe.ended");
    assertCode(() => writer.tryWrite(pattern(1)), "pipe.ended");
  }
});

Deno.test("a reader whose time is up keeps the parts that it has", () => {
  const { reader, scribe } = scribed({ capacity: 1024 });
  scribe.frame({ flags: 1, total: 4, payload: [1, 2] }).publish();
  assertEquals(reader.read({ timeout: 1 }), undefined);
  scribe.frame({ flags: 0, payload: [3] }).publish();
  const target = new Uint8Array(4);
  assertEquals(tryReadInto(reader, target), undefined);
  scribe.frame({ flags: 2, payload: [4] }).publish();
  assertThrows(() => tryReadInto(reader, new Uint8Array(3)), RangeError);
  assertEquals([tryReadInto(reader, target), target], [4, Uint8Array.of(1, 2, 3, 4)]);
  // The other way round: a read into the caller's memory begins it. That is free again after the
  // call.
  scribe.frame({ flags: 1, total: 4, payload: [5, 6] }).publish();
  assertEquals(tryReadInto(reader, target), undefined);
  target.fill(0);
  scribe.frame({ flags: 2, payload: [7, 8] }).publish();
  assertEquals(reader.tryRead(), Uint8Array.of(5, 6, 7, 8));
  // A read begins it and `peek` ends it: it is lent as a whole.
  scribe.frame({ flags: 1, total: 2, payload: [9] }).publish();
  assertEquals([reader.tryRead(), tryPeek(reader)], [undefined, undefined]);
  scribe.frame({ flags: 2, payload: [10] }).publish();
  const lent = tryPeek(reader)!;
  assertEquals([lent.payload, lent.first, lent.last], [Uint8Array.of(9, 10), true, true]);
  release(reader);
});

Deno.test("readInto leaves a message that is too large, whole or in parts", () => {
  const { writer, reader } = pipe({ codec: "bytes" });
  for (const size of [20, 100, 120]) {
    writer.write(pattern(size));
    assertThrows(() => readInto(reader, new Uint8Array(size - 1)), RangeError);
    const target = new Uint8Array(size + 2);
    assertEquals(readInto(reader, target), size);
    assertEquals(target.subarray(0, size), pattern(size));
  }
});

Deno.test("calls are dropped with message.kind, unless they are wanted", () => {
  for (const calls of [false, true]) {
    const { reader, scribe } = scribed({ calls });
    scribe.frame({ kind: 3, tag: 1 }).frame({ kind: 4, flags: 1, total: 1 });
    scribe.frame({ kind: 4, flags: 2, payload: [1] }).frame({ kind: 5 }).frame({}).publish();
    const kinds: (number | string)[] = [];
    for (let i = 0; i < 4; i++) {
      try {
        kinds.push(tryReadMessage(reader)!.kind);
      } catch (error) {
        kinds.push((error as { code: string }).code);
      }
    }
    assertEquals(kinds, calls ? [3, 4, 5, 1] : [...new Array(3).fill("message.kind"), 1]);
  }
});

Deno.test("a message at the limit passes, one above it does not", () => {
  const { writer, reader } = pipe({ codec: "bytes", maxMessageSize: 120 });
  writer.write(pattern(120));
  assertEquals(reader.read(), pattern(120));
  writer.write(pattern(121));
  assertCode(() => reader.read(), "message.size");
  assertEquals(reader.tryRead(), undefined);
  for (const limit of [-1, 1.5, 2 ** 32 + 1]) {
    assertThrows(() => pipe({ maxMessageSize: limit }), RangeError);
  }
});

Deno.test("timeouts: none waits, 0 looks, others pass", async () => {
  const { reader } = pipe();
  const begin = performance.now();
  assertEquals([reader.read({ timeout: 0 }), reader.ended], [undefined, false]);
  assertEquals(reader.read({ timeout: 30 }), undefined);
  assertEquals(await reader.readAsync({ timeout: 30 }), undefined);
  assertEquals(performance.now() - begin >= 58, true);
  for (const timeout of [-1, NaN, "1" as unknown as number]) {
    assertThrows(() => reader.read({ timeout }), RangeError);
    await assertRejects(() => reader.readAsync({ timeout }), RangeError);
  }
});

Deno.test("a signal ends an asynchronous wait with its reason, and nothing is lost", async () => {
  const { writer, reader } = pipe({ codec: "bytes" });
  const reason = new Error("enough");
  for (const verb of ["read", "write"] as const) {
    const control = new AbortController();
    const { signal } = control;
    const waiting = verb === "read"
      ? reader.readAsync({ signal })
      : writer.writeAsync(pattern(1000), { signal });
    const queued = verb === "read"
      ? reader.readAsync({ signal })
      : writer.writeAsync(pattern(10), { signal });
    setTimeout(() => control.abort(reason), 5);
    assertEquals(await assertRejects(() => waiting), reason);
    assertEquals(await assertRejects(() => queued), reason);
    assertEquals(await assertRejects(() => reader.readAsync({ signal })), reason);
    assertThrows(() => writer.write(pattern(1), { signal }), Error, "enough");
  }
  writer.write(pattern(3));
  assertCode(() => reader.read(), "message.cancelled");
  assertEquals(reader.read(), pattern(3));
});

Deno.test("asynchronous verbs keep the order of the calls, and copy what they encode", async () => {
  const { writer, reader } = pipe<{ n: number; fill: string }>();
  const value = { n: 0, fill: "x".repeat(150) };
  const writes: Promise<void>[] = [];
  for (; value.n < 8; value.n++) writes.push(writer.writeAsync(value));
  assertEquals(writer.tryWrite(value), false);
  writer.end(); // after the writes
  assertEquals(writer.ended, true);
  assertCode(() => writer.tryWrite(value), "pipe.ended");
  const reads = Array.from({ length: 8 }, () => reader.readAsync());
  assertEquals((await Promise.all(reads)).map((each) => each?.n), [0, 1, 2, 3, 4, 5, 6, 7]);
  await Promise.all(writes);
  assertEquals([await reader.readAsync(), reader.ended], [undefined, true]);
});

Deno.test("closing drops, and everything published is still read by the peer", async () => {
  const { writer, reader } = pipe();
  writer.write(1);
  writer.close();
  writer.close();
  assertCode(() => writer.write(2), "pipe.closed");
  assertCode(() => writer.end(), "pipe.closed");
  assertEquals(reader.read(), 1);
  assertCode(() => reader.read(), "peer.closed");
  assertCode(() => reader.tryRead(), "peer.closed");
  assertEquals(await codeOf(reader.readAsync()), "peer.closed");
  reader.close();
  assertCode(() => reader.read(), "pipe.closed");
});

Deno.test("with an end, the peer's close is not reported", () => {
  const { writer, reader } = pipe();
  writer.end();
  writer.close();
  for (let i = 0; i < 2; i++) assertEquals([reader.read(), reader.ended], [undefined, true]);
  reader.close();
  assertCode(() => reader.read(), "pipe.closed");
});

Deno.test("a writer learns that its reader is gone, and why", () => {
  const closed = pipe();
  closed.reader.close();
  assertCode(() => closed.writer.write(1), "peer.closed");
  assertCode(() => closed.writer.tryWrite(1), "peer.closed");
  const failed = pipe();
  failEndpoint(failed.segment, 1, "peer.lost");
  const error = assertThrows(() => failed.writer.write(1), PeerFailedError);
  assertEquals([error.code, error.reason], ["peer.failed", "peer.lost"]);
  assertCode(() => failed.reader.read(), "pipe.failed");
  const reason = assertThrows(() => failed.reader.read(), ClosedError).reason;
  assertEquals(reason, "peer.lost");
});

Deno.test("a reader gets what a failed writer published, then the reason", () => {
  const { segment, writer, reader } = pipe();
  writer.write(1);
  failEndpoint(segment, 0);
  assertEquals(reader.read(), 1);
  const error = assertThrows(() => reader.read(), PeerFailedError);
  assertEquals(error.reason, "peer.terminated");
});

Deno.test("[segment.state_invalid] what nobody may store makes a peer failed for good", () => {
  const reason = (reader: Reader) => assertThrows(() => reader.read(), PeerFailedError).reason;
  const invalid = pipe();
  for (const word of [7, 2, 1]) {
    invalid.segment.words(128 + 4, 4)[0] = word;
    assertEquals(reason(invalid.reader), "segment.state");
  }
  const { segment, reader: other } = pipe();
  const state = segment.words(128 + 4, 4);
  state[0] = 2;
  assertCode(() => other.read(), "peer.closed");
  state[0] = 1; // a final state must not change any more
  assertCode(() => other.read(), "peer.closed"); // [segment.state_kept]
});

Deno.test("closing on behalf of the owner ends its asynchronous wait", async () => {
  for (
    const [stop, code] of [[closeEndpoint, "pipe.closed"], [failEndpoint, "pipe.failed"]] as const
  ) {
    const { segment, writer, reader } = pipe({ codec: "bytes" });
    const reading = codeOf(reader.readAsync());
    stop(segment, 1);
    assertEquals(await reading, code);
    const full = pipe({ codec: "bytes" });
    const writing = codeOf(full.writer.writeAsync(pattern(1000)));
    stop(full.segment, 0);
    assertEquals(await writing, code);
    writer.close();
  }
});

Deno.test("a peer that closes or fails ends the asynchronous wait of the other", async () => {
  const one = pipe({ codec: "bytes" });
  const reading = codeOf(one.reader.readAsync());
  one.writer.close();
  assertEquals(await reading, "peer.closed");
  const two = pipe({ codec: "bytes" });
  const writing = codeOf(two.writer.writeAsync(pattern(1000)));
  failEndpoint(two.segment, 1);
  assertEquals(await writing, "peer.failed");
});

Deno.test("rings are found by index, and others refused", () => {
  const segment = pipeSegment();
  for (const channel of [1, -1]) {
    assertCode(() => Writer.attach(segment, { channel }), "segment.channel");
  }
  Writer.attach(segment, { channel: 0 });
  assertCode(() => Writer.attach(segment), "segment.endpoint");
  Reader.attach(segment);
  assertCode(
    () => Reader.attach(Segment.allocate({ endpoints: 1, channels: [] })),
    "segment.channel",
  );
});

Deno.test("a pipe works on an ArrayBuffer, polling", async () => {
  const geometry = { endpoints: 2, channels: [{ writer: 0, reader: 1, capacity: 256 }] };
  const segment = Segment.format(new ArrayBuffer(1280), geometry);
  const writer = Writer.attach(segment);
  const reader = Reader.attach(segment);
  const reading = reader.readAsync();
  writer.write([1]);
  assertEquals(await reading, [1]);
  assertEquals(reader.read({ timeout: 3 }), undefined);
});
