// The ends of `bare.ts`: on one thread where nothing has to wait, and between two that sleep.

import { assertEquals, assertThrows } from "@std/assert";
import { bareEnds, bareMemory, SABMessagePort } from "./bare.ts";

const CAPACITY = 256;
/** Only a test that hangs gets there. */
const BOUND_MS = 30_000;

function pair() {
  const memory = bareMemory(CAPACITY);
  return { a: bareEnds(memory, "a", true), b: bareEnds(memory, "b", true) };
}

Deno.test("BareReader reads what BareWriter wrote, across the end of the ring", () => {
  const { a, b } = pair();
  for (let size = 1; size < 120; size++) {
    const value = "x".repeat(size);
    a.writer.write(JSON.stringify(value));
    assertEquals(b.reader.read(0), value);
    assertEquals(b.reader.tryRead(), undefined);
  }
});

Deno.test("BareReader hands out the messages of a batch one at a time, in order", () => {
  const { a, b } = pair();
  assertEquals(a.writer.tryWrite("[1,[2],3]", true), true);
  a.writer.write("[4]");
  const read = Array.from({ length: 5 }, () => b.reader.tryRead());
  assertEquals(read, [1, [2], 3, [4], undefined]);
});

Deno.test("BareWriter.tryWrite refuses what has no room, and then takes it", () => {
  const { a, b } = pair();
  const text = JSON.stringify("x".repeat(100));
  assertEquals([1, 2, 3].map(() => a.writer.tryWrite(text, false)), [true, true, false]);
  b.reader.tryRead();
  assertEquals(a.writer.tryWrite(text, false), true);
});

Deno.test("BareWriter.tryWrite throws for a text that has more bytes than letters", () => {
  assertThrows(() => pair().a.writer.tryWrite('"é"', false), Error, "A text of 3 has 4 bytes");
});

Deno.test("BareWriter.writeLater and BareReader.listen wake each other", async () => {
  const { a, b } = pair();
  const count = 2_000;
  const heard: unknown[] = [];
  const all = new Promise<void>((resolve) => {
    b.reader.listen((value) => {
      if (heard.push(value) === count) resolve();
    });
  });
  for (let n = 0; n < count; n++) await a.writer.writeLater(`${n}`.padStart(4 + n % 90), false);
  await all;
  b.reader.close();
  assertEquals(heard, Array.from({ length: count }, (_, n) => n));
});

Deno.test("SABMessagePort keeps the order of posts that have to wait for room", async () => {
  const memory = new SharedArrayBuffer(2 * (512 + 64 * 64));
  const [a, b] = [new SABMessagePort("a", memory), new SABMessagePort("b", memory)];
  const posts = Array.from({ length: 1_000 }, (_, id) => ({ id, text: "x".repeat(id % 10) }));
  const heard: unknown[] = [];
  const first = Promise.withResolvers<void>();
  const all = Promise.withResolvers<void>();
  const bound = setTimeout(() => all.reject(new Error(`Heard ${heard.length}`)), BOUND_MS);
  b.onmessage = ({ data }) => {
    const count = heard.push(data);
    if (count === posts.length) first.resolve();
    if (count === posts.length + 2) all.resolve();
  };
  for (const post of posts) a.postMessage(post);
  await Promise.race([first.promise, all.promise]);
  a.postMessage(1);
  await a.postMessage(2);
  await all.promise;
  clearTimeout(bound);
  b.close();
  assertEquals(heard, [...posts, 1, 2]);
});
