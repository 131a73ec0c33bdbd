import { assert, assertEquals, assertThrows } from "@std/assert";
import { layout } from "../memory/layout.ts";
import { writeMany } from "../more/many.ts";
import { writeMessage } from "../more/raw.ts";
import { Reader, Writer } from "../pipe/ends.ts";
import { Segment } from "../memory/segment.ts";
import { messageOf, post, turn, within } from "./sab_fixture.ts";
import { SABMessagePort, SABPipe } from "./sab_message_port.ts";
import { ringCapacity } from "./sab_wire.ts";

const text = (sab: SharedArrayBuffer, at = 0) =>
  new TextDecoder().decode(new Uint8Array(sab).slice(at, at + 8));

Deno.test("ringCapacity: the largest ring that fits, and none in what is small or askew", () => {
  const buffer = new SharedArrayBuffer(0);
  for (
    const [byteOffset, byteLength, capacity] of [
      [0, 131_072, 65_536],
      [131_072, 131_072, 65_536],
      [0, 132_096, 131_072],
      [0, 131_968, 65_536],
      [128, 1280, 256],
      [0, 1152, 0],
      [64, 4096, 0],
      [4, 131_072, 0],
      [0, 131_080, 0],
      [0, 2 ** 32, 2 ** 30],
    ] as const
  ) assertEquals(ringCapacity({ buffer, byteOffset, byteLength }), capacity);
});

Deno.test("the wire follows from offset and size, and from the choice", () => {
  const wireOf = (...args: [number, number]) => new SABPipe("w", 8192, ...args).wire;
  assertEquals([wireOf(0, 8192), wireOf(1280, 1280), wireOf(128, 1280)], ["ring", "ring", "ring"]);
  assertEquals([wireOf(4, 4096), wireOf(0, 1152), wireOf(0, 1284)], Array(3).fill("mailbox"));
  assertEquals(new SABPipe("w", 8192, 0, null, null, { wire: "mailbox" }).wire, "mailbox");
  assertEquals(new SABPipe("w", 8192, 0, null, null, { wire: "ring" }).wire, "ring");
  assertEquals(new SABPipe("w", 8192, 0, null, null, { wire: undefined }).wire, "ring");
  // Both halves of a port use a ring, or both use a mailbox.
  for (const [size, wire] of [[2560, "ring"], [2568, "mailbox"], [72, "mailbox"]] as const) {
    const port = new SABMessagePort("a", new SharedArrayBuffer(size));
    assertEquals([port._writer.wire, port._reader.wire], [wire, wire]);
  }
  // The second half would begin at offset 33.
  assertThrows(() => new SABMessagePort("a", new SharedArrayBuffer(66)), RangeError);
});

Deno.test("on a ring, a section is a segment, whichever side comes first", async () => {
  const sab = new SharedArrayBuffer(4096);
  const b = new SABMessagePort("b", sab);
  assertEquals([text(sab), text(sab, 2048)], ["MILLRACE", "MILLRACE"]);
  const a = new SABMessagePort("a", sab);
  await post(a._writer, 1);
  assertEquals(b.tryRead(), 1);
  const other = new SharedArrayBuffer(4096);
  new Uint8Array(other).fill(7);
  assertThrows(() => new SABPipe("w", other), Error, "segment.");
});

Deno.test("on a ring, a reader of Millrace gets the messages one by one", async () => {
  const writer = new SABPipe("w", 4096);
  const reader = Reader.attach(Segment.attach(writer.buffer));
  await post(writer, { n: 1 });
  await post(writer, 2, null, undefined, "four");
  const read = [0, 1, 2, 3, 4].map(() => reader.read({ timeout: 0 }));
  assertEquals(read, [{ n: 1 }, 2, null, null, "four"]);
  reader.close();
  assertEquals(writer.isDisposed(), true);
});

Deno.test("on a ring, a writer of Millrace can use any codec and batch", async () => {
  const reader = new SABPipe("r", 4096);
  const segment = Segment.attach(reader.buffer);
  const writer = Writer.attach(segment);
  writeMany(writer, [1, 2, 3]);
  assertEquals([reader.tryRead(), reader.tryRead(9)], [1, [3, 2]]);
  writer.write({ n: 4 });
  writeMessage(writer, { codec: 1, payload: new TextEncoder().encode("text") });
  writer.write(Uint8Array.of(5));
  assertEquals(reader.tryRead(9), [Uint8Array.of(5), "text", { n: 4 }]);
  const lost = { codec: 200, payload: new Uint8Array(1) };
  writeMessage(writer, lost);
  writer.write("good");
  assertThrows(() => reader.tryRead(), Error, "message.codec");
  assertEquals(reader.tryRead(), "good");
  const seen: unknown[] = [];
  reader.onmessage = ({ data }) => seen.push(data);
  writeMessage(writer, lost);
  writer.write("better");
  await turn();
  assertEquals(seen, ["better"]);
  reader.onmessage = null;
  // The end of the writer's stream counts as a close.
  const read = messageOf(() => reader.asyncRead());
  writer.end();
  assertEquals(await read, "SABPipe disposed");
});

Deno.test("on a ring, a burst that one frame does not hold arrives in order", async () => {
  const writer = new SABPipe("w", 4096);
  const reader = new SABPipe("r", writer.buffer);
  const values = Array.from({ length: 300 }, (_, n) => ({ n, fill: "x".repeat(n) }));
  const written = Promise.all(values.map((value) => writer.postMessage(value)));
  await turn();
  reader.queueLimit = values.length; // from now on one frame at a time
  const read = reader.tryRead(values.length).reverse();
  assert(read.length > 5 && read.length < values.length, `${read.length} in one frame`);
  while (read.length < values.length) read.push(await within(reader.asyncRead()));
  await within(written);
  assertEquals(read, values);
});

Deno.test("on a ring, bytes that break it are reported, and end the delivery", async () => {
  const writer = new SABPipe("w", 4096);
  const reader = new SABPipe("r", writer.buffer);
  const { controlOffset } = Segment.attach(writer.buffer).channels[0]!;
  Atomics.store(writer.i32!, (controlOffset >> 2) + layout.RING_TAIL_WORD, 5);
  assertThrows(() => reader.tryRead(), Error, "ring.cursor");
  reader.onmessage = () => {};
  await turn();
  assertEquals(reader._messageLoopActive, false);
});

Deno.test("on a ring, bytes that break it reject every promise", async () => {
  const writer = new SABPipe("w", 4096);
  const waiting = [writer.postMessage("x".repeat(10_000))];
  await turn();
  waiting.push(writer.postMessage("behind it"));
  const { controlOffset } = Segment.attach(writer.buffer).channels[0]!;
  Atomics.store(writer.i32!, (controlOffset >> 2) + layout.RING_HEAD_WORD, 5);
  for (const promise of waiting) {
    assert((await messageOf(() => promise)).includes("ring.cursor"));
  }
});
