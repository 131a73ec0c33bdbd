import { assert, assertEquals, assertRejects } from "@std/assert";
import { codeOf, pipe } from "../testing/fixture.ts";
import { MessageError, PeerClosedError } from "../error.ts";
import { fill, ports, until } from "./fixture.ts";
import { readMany, readManyAsync, tryReadMany, writeMany } from "../more/many.ts";
import { readableOf, writableOf } from "../more/streams.ts";

Deno.test("readMany takes what is there, up to a number, and waits for the first", async () => {
  const [a, b] = ports();
  assertEquals([tryReadMany(a, 3), readMany(a, 3, { timeout: 1 })], [undefined, undefined]);
  writeMany(b, [1, 2, 3]);
  b.write(4);
  assertEquals([readMany(a, 2), tryReadMany(a, 5), tryReadMany(a, 5)], [[1, 2], [3, 4], undefined]);
  const reading = readManyAsync(a, 9, { timeout: 1000 });
  writeMany(b, [5, 6]);
  assertEquals(await reading, [5, 6]);
  assertEquals(await readManyAsync(a, 9, { timeout: 1 }), undefined);
  b.write(7);
  b.end();
  assertEquals([readMany(a, 9), a.ended, readMany(a, 9), a.ended], [[7], true, undefined, true]);
  assertEquals(await readManyAsync(a, 9), undefined);
  for (const max of [0, -1, 1.5, NaN]) await assertRejects(() => readManyAsync(a, max), RangeError);
});

Deno.test("readMany reports a lost message after those before it, in order", () => {
  const { writer, reader } = pipe({ capacity: 1024, maxMessageSize: 20 });
  writer.write(1);
  writer.write("x".repeat(30));
  writer.write(2);
  assertEquals(readMany(reader, 9), [1]);
  try {
    tryReadMany(reader, 9);
    assert(false);
  } catch (error) {
    assert(error instanceof MessageError);
  }
  assertEquals([readMany(reader, 9), reader.tryRead()], [[2], undefined]);
  writer.write(3);
  writer.write("x".repeat(30));
  writer.end();
  assertEquals([readMany(reader, 9), reader.ended], [[3], false]);
  try {
    reader.read();
    assert(false);
  } catch (error) {
    assert(error instanceof MessageError);
  }
  assertEquals([reader.read(), reader.ended], [undefined, true]);
});

Deno.test("for await reads to the end, goes on after a break, and throws failures", async () => {
  const [a, b] = ports();
  writeMany(b, [1, 2, 3]);
  for await (const value of a) if (value === 2) break;
  b.write(4);
  b.end();
  const rest: unknown[] = [];
  for await (const value of a) rest.push(value);
  assertEquals([rest, a.ended], [[3, 4], true]);
  const { writer, reader } = pipe();
  writer.write(5);
  writer.close();
  const seen: unknown[] = [];
  await assertRejects(async () => {
    for await (const value of reader) seen.push(value);
  }, PeerClosedError);
  assertEquals(seen, [5]);
});

Deno.test("readable reads one message for each that is pulled, and none ahead", async () => {
  const [a, b] = ports();
  b.write(1);
  b.write(2);
  b.write(3);
  const stream = readableOf(a);
  const reader = stream.getReader();
  assertEquals(await reader.read(), { done: false, value: 1 });
  await new Promise((resolve) => setTimeout(resolve, 5));
  assertEquals(a.tryRead(), 2); // the stream has not taken it
  assertEquals(await reader.read(), { done: false, value: 3 });
  b.end();
  assertEquals(await reader.read(), { done: true, value: undefined });
});

Deno.test("readable fails as the reads do, and cancelling it closes the port", async () => {
  const [a, b] = ports();
  b.close();
  await assertRejects(() => readableOf(a).getReader().read(), PeerClosedError);
  const [c, d] = ports();
  writeMany(d, [1, 2]);
  for await (const value of readableOf(c).values({ preventCancel: true })) {
    assertEquals(value, 1);
    break;
  }
  assertEquals(c.read(), 2);
  await readableOf(c).cancel();
  assertEquals(await codeOf(c.readAsync()), "pipe.closed");
  assertEquals(await codeOf(d.readAsync()), "peer.closed");
});

Deno.test("a write to writable is done when the message is in the ring", async () => {
  const [a, b] = ports({ capacity: 256 });
  const writer = writableOf(a).getWriter();
  await writer.write(0);
  fill(a);
  let done = 0;
  for (let i = 1; i <= 3; i++) writer.write(i).then(() => done++);
  await new Promise((resolve) => setTimeout(resolve, 5));
  assertEquals([done, writer.desiredSize], [0, -2]);
  const closing = writer.close();
  const seen: unknown[] = [];
  for await (const value of b) if (value !== "fill") seen.push(value);
  await closing;
  assertEquals([seen, done, b.ended], [[0, 1, 2, 3], 3, true]);
});

Deno.test("aborting writable closes the port, also under a write that waits", async () => {
  const [a] = ports({ capacity: 256 });
  fill(a);
  const writing = writableOf(a).getWriter();
  const waiting = assertRejects(() => writing.write("x".repeat(200)), Error, "enough");
  await new Promise((resolve) => setTimeout(resolve, 5));
  await writing.abort(new Error("enough"));
  await waiting;
  assertEquals(await codeOf(a.writeAsync(1)), "pipe.closed");
});

Deno.test("aborting writable closes the port, and a peer that goes fails it", async () => {
  const [a, b] = ports();
  await writableOf(a).abort("enough");
  assertEquals(await codeOf(b.readAsync()), "peer.closed");
  const [c, d] = ports();
  d.close();
  await assertRejects(() => writableOf(c).getWriter().write(1), PeerClosedError);
});

Deno.test("streams pipe through a port and back", async () => {
  const [a, b] = ports({ capacity: 256 });
  const echo = readableOf(b).pipeTo(writableOf(b));
  const source = ReadableStream.from(Array.from({ length: 50 }, (_, i) => "x".repeat(i)));
  const sending = source.pipeTo(writableOf(a));
  const sizes: number[] = [];
  for await (const value of readableOf(a)) sizes.push(value.length);
  await Promise.all([echo, sending]);
  assertEquals(sizes, Array.from({ length: 50 }, (_, i) => i));
});

Deno.test("a stream, a loop, reads and events share what comes, each message once", async () => {
  const [a, b] = ports();
  const seen: number[] = [];
  a.onmessage = ({ data }) => seen.push(data);
  const stream = readableOf(a).getReader();
  const pulled = [stream.read(), a.readAsync()];
  writeMany(b, [0, 1, 2, 3]);
  await Promise.all(pulled.map(async (each) => {
    const value = await each;
    seen.push(typeof value === "object" ? value.value : value);
  }));
  await until(() => seen.length === 4);
  assertEquals(seen.toSorted(), [0, 1, 2, 3]);
  a.close();
});

Deno.test("aborting writable while it is being closed closes the port", async () => {
  const [a] = ports({ capacity: 256 });
  fill(a);
  const posted = codeOf(a.postMessage("posted"));
  const writing = writableOf(a).getWriter();
  const closing = codeOf(writing.close());
  await new Promise((resolve) => setTimeout(resolve, 5));
  await codeOf(writing.abort(new Error("enough")));
  assertEquals(await Promise.all([posted, closing]), ["pipe.closed", "pipe.closed"]);
});

Deno.test("[ring.one_load] readMany ends though the peer goes on writing", () => {
  const { writer, reader } = pipe({ capacity: 4096 });
  const { load } = Atomics;
  let count = 0;
  let isWriting = false;
  Atomics.load = ((view: Int32Array, index: number) => {
    if (!isWriting && count < 1000) { // each time the reader looks
      isWriting = true;
      writer.tryWrite(count++);
      isWriting = false;
    }
    return load(view, index);
  }) as typeof load;
  let read: number[] | undefined;
  try {
    read = tryReadMany(reader, 1e9);
  } finally {
    Atomics.load = load;
  }
  assertEquals(read, Array.from({ length: read!.length }, (_, n) => n));
  assert(count > 1 && count < 10, `${count}`);
});
