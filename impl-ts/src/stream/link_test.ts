import { assert, assertEquals, assertThrows } from "@std/assert";
import { pattern, random } from "../testing/fixture.ts";
import { ForbiddenError, MessageError, MillraceError, PeerFailedError } from "../error.ts";
import type { Port } from "../port/port.ts";
import { StreamLink } from "./link.ts";
import { Line, SMALL } from "./fixture.ts";

/**
 * All messages that a port has, and how it ends: not at all, by `end`, or with a code and a reason.
 */
function drain(port: Port<unknown>): [unknown[], string] {
  const got: unknown[] = [];
  for (;;) {
    try {
      const value = port.tryRead();
      if (value === undefined) return [got, port.ended ? "ended" : "nothing"];
      got.push(value);
    } catch (error) {
      if (error instanceof MessageError) got.push(error.code);
      else if (error instanceof PeerFailedError) return [got, `${error.reason}`];
      else if (error instanceof MillraceError) return [got, error.code];
      else throw error;
    }
  }
}

/** Values of all sizes up to three windows. */
function values(next: () => number): unknown[] {
  return Array.from({ length: 12 }, () => {
    const size = next() % [10, 100, 260, 800][next() % 4]!;
    return next() % 2 === 0 ? pattern(size) : { text: "é".repeat(size / 2), n: next() };
  });
}

Deno.test("StreamLink: what is posted arrives, in order, however the transport cuts", async () => {
  for (let seed = 1; seed <= 40; seed++) {
    const next = random(seed);
    const most = [1, 2, 15, 16, 17, 100, 1000][seed % 7]!;
    const line = new Line(SMALL, { largest: 256, window: 1024 }, () => 1 + next() % most);
    const [a, b] = [line.a.port!, line.b.port!];
    const [there, back] = [values(next), values(next)];
    for (const value of there) a.postMessage(value);
    for (const value of back) b.postMessage(value);
    const got: unknown[] = [];
    const gotBack: unknown[] = [];
    for (let round = 0; round < 100 && got.length + gotBack.length < 24; round++) {
      await line.settle();
      got.push(...drain(b)[0]);
      gotBack.push(...drain(a)[0]);
    }
    assertEquals([got, gotBack], [there, back], `seed ${seed}`);
    a.end();
    line.move();
    assertEquals(drain(b), [[], "ended"]);
  }
});

/** The bytes of a side that has written three messages, one of them in chunks, and closed. */
async function recorded(): Promise<[Uint8Array, unknown[]]> {
  const side = new StreamLink<unknown>(SMALL);
  const peer = new StreamLink<unknown>({ largest: 128, window: 1024 });
  const sent = ["first", pattern(300), { last: [1, 2, 3] }];
  const bytes: number[] = [];
  side.receive(peer.transmit()!);
  const take = () => {
    for (let piece; (piece = side.transmit()) !== undefined;) bytes.push(...piece);
  };
  const posted = Promise.all(sent.map((value) => side.port!.postMessage(value)));
  for (let turn = 0; turn < 20; turn++) {
    await new Promise((resolve) => setTimeout(resolve, 0));
    take();
  }
  await posted;
  side.port!.close();
  take();
  return [Uint8Array.from(bytes), sent];
}

Deno.test("StreamLink: stopped at every byte, whole messages and nothing else arrive", async () => {
  const [bytes, sent] = await recorded();
  let most = 0;
  for (let size = 0; size <= bytes.length; size++) {
    const side = new StreamLink<unknown>({ largest: 128, window: 1024 });
    side.receive(bytes.subarray(0, size));
    side.receiveEnd();
    if (size < 32) {
      assert(side.port === undefined);
      assertEquals((side.failure as PeerFailedError).reason, "peer.lost");
      continue;
    }
    const [got, end] = drain(side.port!);
    assertEquals(got, sent.slice(0, got.length), `${size} bytes`);
    assertEquals(end, size === bytes.length ? "peer.closed" : "peer.lost");
    assert(got.length >= most, `${size} bytes`);
    most = got.length;
    assert(side.isDone);
  }
  assertEquals(most, 3);
});

Deno.test("StreamLink: of changed and foreign bytes come documented errors only", async () => {
  const [bytes] = await recorded();
  const next = random(7);
  const ends = new Set<string>();
  for (let round = 0; round < 4000; round++) {
    const side = new StreamLink<unknown>({ largest: 128, window: 1024, maxMessageSize: 512 });
    const garbled = bytes.slice();
    for (let count = next() % 4; count >= 0; count--) {
      const at = (next() % 8 === 0 ? 0 : 32) + next() % (bytes.length - 32);
      if (next() % 2 === 0) garbled[at] = next() & 0xff;
      else garbled.copyWithin(at, at + 1); // drops one byte by moving the rest
    }
    const size = 1 + next() % 50;
    for (let at = 0; at < garbled.length; at += size) side.receive(garbled.subarray(at, at + size));
    if (next() % 2 === 0) side.receiveEnd();
    if (side.port !== undefined) ends.add(drain(side.port)[1]);
    else if (side.failure !== undefined) ends.add(`${(side.failure as PeerFailedError).reason}`);
    for (let count = 0; side.transmit() !== undefined; count++) assert(count < 10);
  }
  for (const end of ["frame.kind", "frame.flags", "frame.reserved", "frame.size", "stream.magic"]) {
    assert(ends.has(end), `${end} never came: ${[...ends]}`);
  }
});

Deno.test("StreamLink: nobody reads, and no more than the window comes", async () => {
  const line = new Line(SMALL, { largest: 256, window: 1024 });
  let posted = 0;
  for (let count = 0; count < 100; count++) {
    line.a.port!.postMessage(pattern(48)).then(() => posted++, () => {});
  }
  await line.settle();
  // The window holds 16 frames of 64 bytes, and the ring before it 7: it has twice the largest
  // frame.
  assertEquals(posted, 16 + 7);
  assertEquals(drain(line.b.port!)[0].length, 16);
  await line.settle();
  assertEquals(drain(line.b.port!)[0].length, 16);
});

Deno.test("StreamLink: thousands of messages that are read in parts, and given back", async () => {
  const line = new Line<Uint8Array>({}, {});
  const count = 20_000;
  for (let n = 0; n < count; n++) line.a.port!.postMessage(Uint8Array.of(n & 0xff, n >> 8));
  let next = 0;
  for (let round = 0; next < count && round < 1000; round++) {
    await line.settle();
    for (let left = 1500; left > 0 && next < count; left--) {
      const value = line.b.port!.tryRead();
      if (value === undefined) break;
      assertEquals(value[0]! + (value[1]! << 8), next++);
    }
  }
  assertEquals(next, count);
});

Deno.test("StreamLink: what was written before a close still waits for credit", async () => {
  const line = new Line<Uint8Array>(SMALL, { largest: 256, window: 256 });
  const [a, b] = [line.a.port!, line.b.port!];
  let count = 0;
  while (a.tryWrite(pattern(48))) if (++count % 4 === 0) line.move();
  a.close();
  await line.settle();
  assert(!line.a.hasEnded && count > 4);
  const got: unknown[] = [];
  for (let round = 0; round < 20 && !line.a.hasEnded; round++) {
    got.push(...drain(b as Port<unknown>)[0]);
    await line.settle();
  }
  got.push(...drain(b as Port<unknown>)[0]);
  assertEquals([got.length, drain(b as Port<unknown>)[1]], [count, "peer.closed"]);
});

Deno.test("StreamLink: a blocking call is refused, and an asynchronous one waits", async () => {
  const line = new Line<string>();
  assertThrows(() => line.b.port!.read(), ForbiddenError);
  assertEquals(line.b.port!.read({ timeout: 0 }), undefined);
  const reading = line.b.port!.readAsync();
  line.a.port!.write("hello");
  line.move();
  assertEquals(await reading, "hello");
});

Deno.test("StreamLink: wake is called for what a port does, and for what arrives", async () => {
  let wakes = 0;
  const a = new StreamLink<string>(SMALL, () => wakes++);
  const b = new StreamLink<string>(SMALL);
  a.receive(b.transmit()!);
  b.receive(a.transmit()!);
  assert(wakes > 0);
  wakes = 0;
  assertEquals(a.transmit(), undefined);
  a.port!.write("hello");
  assertEquals(wakes, 1);
  assert(a.transmit() !== undefined);
  await 0;
  a.port!.close();
  assertEquals(wakes, 2);
});

Deno.test("StreamLink: sizes that a preface may not have are refused", () => {
  const most = 2 ** 30;
  const wrong = [{ largest: 100 }, { largest: 144, window: 128 }, { window: 2 ** 31 }];
  // With these, a ring for one frame beside the whole window would be too large.
  for (const options of [...wrong, { window: most }, { largest: most, window: most }]) {
    assertThrows(() => new StreamLink(options), RangeError);
  }
  assertThrows(() => new StreamLink({ capacity: 300 }), RangeError);
});
