import { assertEquals, assertThrows } from "@std/assert";
import { closeEndpoint, failEndpoint } from "../wait/state.ts";
import { assertCode, codeOf, pattern } from "../testing/fixture.ts";
import { Port } from "./port.ts";
import { type PortCreateOptions, portGeometry, portMemory } from "./options.ts";
import { Segment } from "../memory/segment.ts";
import { abandon, claim, peek, publish, release } from "../more/lend.ts";
import { readInto, readMessage, writeMessage } from "../more/raw.ts";

// deno-lint-ignore no-explicit-any
function ports(options: PortCreateOptions = {}): [Port<any>, Port<any>] {
  const here = Port.create(options);
  return [here, Port.attach(here.memory, { ...options, side: "b" })];
}

Deno.test("a port sends both ways, ends each way, and closes both", () => {
  const [a, b] = ports();
  a.write({ n: 1 });
  b.write("two");
  assertEquals([b.read(), a.read()], [{ n: 1 }, "two"]);
  a.end();
  b.write(3);
  assertEquals([b.read(), b.ended, a.read(), a.ended], [undefined, true, 3, false]);
  b.close();
  assertCode(() => a.read(), "peer.closed");
  assertCode(() => b.write(1), "pipe.closed");
  a.close();
  assertCode(() => a.read(), "pipe.closed");
});

Deno.test("Port is disposed by using, and its halves offer everything", () => {
  const here = Port.create({ codec: "bytes" });
  {
    using there = Port.attach(here.memory, { codec: "bytes" });
    const place = claim(there, 3);
    place.payload.set([1, 2, 3]);
    publish(there);
    assertEquals(peek(here)?.payload.slice(), Uint8Array.of(1, 2, 3));
    release(here);
    claim(there, 1);
    abandon(there);
    writeMessage(there, { payload: pattern(3), codec: 200, tag: 9 });
    assertEquals(readMessage(here), { kind: 1, codec: 200, tag: 9, payload: pattern(3) });
    assertEquals(readInto(here, new Uint8Array(1), { timeout: 0 }), undefined);
    assertEquals(here.ended, false);
  }
  assertCode(() => here.read(), "peer.closed");
});

Deno.test("either side may create on blank memory, and sides are taken once", () => {
  const options = { capacity: [256, 1024], start: 2 ** 32 - 16 } as const;
  const memory = portMemory(options);
  const b = Port.create({ ...options, memory, side: "b" });
  const a = Port.create({ ...options, memory });
  a.write(1);
  assertEquals(b.read(), 1);
  assertCode(() => Port.attach(memory), "segment.endpoint");
  assertCode(() => Port.create({ memory }), "segment.size");
  assertThrows(() => Port.attach(memory, { side: "c" as "a" }), TypeError);
  for (const wrong of [{ inboxCount: -1 }, { inboxSize: 0.5 }, { capacity: 100 }]) {
    assertThrows(() => Port.create(wrong), RangeError);
  }
});

Deno.test("a segment that is no port is refused", () => {
  const pipe = { endpoints: 2, channels: [{ writer: 0, reader: 1, capacity: 256 }] };
  assertCode(() => Port.attach(Segment.allocate(pipe).memory), "segment.channel");
  const ring = (writer: number, reader: number) => ({ writer, reader, capacity: 256 });
  const triangle = { endpoints: 3, channels: [ring(0, 1), ring(1, 2), ring(2, 0)] };
  assertCode(() => Port.attach(Segment.allocate(triangle).memory), "segment.channel");
  const hub = { endpoints: 3, channels: [ring(1, 2), ring(0, 1), ring(2, 1), ring(1, 0)] };
  assertCode(() => Port.attach(Segment.allocate(hub).memory), "segment.channel");
  assertEquals(portGeometry({ capacity: 256 }).endpoints, 2);
});

Deno.test("two floods of blocking order pass through the inboxes", async () => {
  const [a, b] = ports({ capacity: 256, codec: "bytes" });
  const count = 60;
  const converse = async (port: Port) => {
    for (let i = 0; i < count; i++) await port.writeAsync(pattern(90 + i, i));
    for (let i = 0; i < count; i++) assertEquals(await port.readAsync(), pattern(90 + i, i));
  };
  await Promise.all([converse(a), converse(b)]);
});

Deno.test("beyond the limits of the inbox, two floods wait for their deadlines", async () => {
  for (const limit of [{ inboxCount: 3 }, { inboxSize: 250 }, { inboxCount: 0 }]) {
    const [a, b] = ports({ capacity: 256, codec: "bytes", ...limit });
    const flood = async (port: Port) => {
      for (;;) await port.writeAsync(pattern(90), { timeout: 20 });
    };
    assertEquals(await Promise.all([codeOf(flood(a)), codeOf(flood(b))]), [
      "wait.timeout",
      "wait.timeout",
    ]);
    for (const port of [a, b]) {
      let count = 0;
      while (port.tryRead() !== undefined) count++;
      assertEquals(count >= 2 && count <= 7, true, `${count}`);
    }
  }
});

Deno.test("what comes into the inbox wakes a read, and errors keep their place", async () => {
  const [a, b] = ports({ capacity: 256, maxMessageSize: 100 });
  const reads = [a.readAsync(), a.readAsync(), a.readAsync()].map(codeOrValue);
  while (b.tryWrite("x".repeat(30)));
  const writing = b.writeAsync("z".repeat(110)).then(() => b.writeAsync(5));
  while (a.tryWrite(0));
  assertCode(() => a.write(0, { timeout: 5 }), "wait.timeout");
  assertEquals(await Promise.all(reads), ["x".repeat(30), "x".repeat(30), "x".repeat(30)]);
  const rest: unknown[] = [];
  for (let i = 0; i < 9 && rest.at(-1) !== 5; i++) rest.push(await codeOrValue(a.readAsync()));
  await writing;
  assertEquals(rest.slice(-2), ["message.size", 5]);
});

Deno.test("the inbox serves every kind of read, and the end after it", async () => {
  const [a, b] = ports({ capacity: 256, codec: "bytes" });
  for (let i = 0; i < 4; i++) b.write(pattern(20, i));
  b.end();
  await codeOf(a.writeAsync(pattern(900), { timeout: 1 }));
  assertEquals([a.ended, a.read()], [false, pattern(20)]);
  assertEquals(readMessage(a)?.payload, pattern(20, 1));
  const target = new Uint8Array(20);
  assertThrows(() => readInto(a, new Uint8Array(19)), RangeError);
  assertEquals([readInto(a, target), target], [20, pattern(20, 2)]);
  assertEquals(peek(a)?.payload, pattern(20, 3));
  release(a);
  assertEquals([a.read(), a.ended], [undefined, true]);
});

Deno.test("a corrupt peer fails both directions of a port", () => {
  const [a, b] = ports({ capacity: 256 });
  b.write(1);
  const channel = a.segment.channels[1]!;
  a.segment.bytes(channel.dataOffset, 16)[4] = 77;
  assertCode(() => a.read(), "frame.kind");
  assertCode(() => a.write(1), "peer.failed");
  assertCode(() => b.read(), "pipe.failed");
});

Deno.test("closing and failing from elsewhere end what a port waits for", async () => {
  for (
    const [stop, code] of [[closeEndpoint, "pipe.closed"], [failEndpoint, "pipe.failed"]] as const
  ) {
    const [a] = ports({ capacity: 256, codec: "bytes" });
    const waiting = [codeOf(a.readAsync()), codeOf(a.writeAsync(pattern(999)))];
    stop(Segment.attach(a.memory), 0);
    assertEquals(await Promise.all(waiting), [code, code]);
  }
});

Deno.test("a port attaches at once to what Segment.attachAsync has waited for", async () => {
  const memory = portMemory({ capacity: 256 });
  const attaching = Segment.attachAsync(memory).then(() => Port.attach(memory, { timeout: 0 }));
  const a = Port.create({ memory, capacity: 256 });
  a.write(1);
  assertEquals((await attaching).read(), 1);
});

async function codeOrValue(promise: Promise<unknown>): Promise<unknown> {
  try {
    return await promise;
  } catch (error) {
    return (error as { code: string }).code;
  }
}
