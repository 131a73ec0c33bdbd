// What becomes of calls and messages under way when a peer's endpoint is vacated.

import { assertEquals, assertRejects, assertThrows } from "@std/assert";
import { ClosedError, PeerFailedError, SegmentError } from "../error.ts";
import { assertCode, codeOf, pipe, pipeSegment, scribed } from "../testing/fixture.ts";
import { Hub } from "./hub.ts";
import { layout } from "../memory/layout.ts";
import { Reader, Writer } from "../pipe/ends.ts";
import { Port } from "../port/port.ts";
import { pollingMechanism } from "../wait/mechanism.ts";
import { failEndpoint } from "../wait/state.ts";
import { release, tryPeek } from "./lend.ts";
import { revive } from "./revive.ts";
import { tryReadInto, tryReadMessage } from "./raw.ts";
import { writeMany } from "./many.ts";

const WAIT = { timeout: 10_000 };

/** A port whose peer has crashed, and whose rings are small. */
function crashed(capacity = 256) {
  const port = Port.create<string>({ capacity });
  const first = Port.attach<string>(port.memory);
  return { port, first, crash: () => failEndpoint(port.segment, 1, "peer.terminated") };
}

Deno.test("vacatePeer gives a client of a hub back: the next one goes on, and so do others", () => {
  using hub = Hub.create<string>(3);
  const clients = hub.ports.map((port) => Port.from<string>(port.handoff()));
  clients[1]!.write("last words");
  hub.ports[1]!.write("not read");
  failEndpoint(hub.segment, 2, "peer.terminated");
  assertEquals(hub.select(WAIT)?.tryRead(), "last words");
  assertEquals(hub.select(WAIT), hub.ports[1]);
  assertThrows(() => hub.ports[1]!.tryRead(), PeerFailedError);
  revive(hub.ports[1]!);
  assertEquals(hub.select({ timeout: 0 }), undefined);
  hub.ports[1]!.write("welcome");
  using next = Port.from<string>(hub.ports[1]!.handoff());
  next.write("hello");
  clients[2]!.write("still here");
  const heard = [hub.select(WAIT), hub.select(WAIT)].map((port) => port!.tryRead());
  assertEquals(heard.sort(), ["hello", "still here"]);
  assertEquals(next.read(WAIT), "welcome");
  // The first owner is told that it is the owner no more, and changes nothing.
  assertCode(() => clients[1]!.tryWrite("late"), "pipe.failed");
  clients[1]!.close();
  hub.ports[1]!.write("more");
  assertEquals(next.read(WAIT), "more");
  // A client has one peer, the hub has many.
  hub.close();
  assertThrows(() => revive(next), TypeError, "channels that this end does not use");
});

Deno.test("vacatePeer refuses what may not be now, and changes nothing", () => {
  const { port, first, crash } = crashed();
  const refuse = (why: string) => {
    const before = port.segment.bytes(0, port.segment.size).slice();
    assertThrows(() => revive(port), TypeError, `Cannot vacate peer: ${why}`);
    assertEquals(port.segment.bytes(0, port.segment.size), before);
  };
  refuse("it has not closed");
  first.write("one");
  crash();
  refuse("what it has published is not read");
  assertEquals(port.read(WAIT), "one");
  revive(port);
  refuse("it has not closed"); // it is vacant
  const toJSON = () => {
    failEndpoint(port.segment, 1);
    refuse("a value is being encoded");
    return 1;
  };
  assertCode(() => port.write({ toJSON } as unknown as string), "peer.failed");
  port.close();
  assertThrows(() => revive(port), ClosedError);
});

Deno.test("[segment.vacate_words] the cursors first, then the record, and the state last", () => {
  const { port, crash } = crashed();
  port.write("lost");
  crash();
  const { store, compareExchange, or } = Atomics;
  const seen: string[] = [];
  const record = 128 + 128;
  const { channels } = port.segment;
  const nameOf = (words: Int32Array, at: number) => {
    const offset = words.byteOffset + at * 4;
    const ring = channels.findIndex(({ controlOffset }) =>
      offset >= controlOffset && offset < controlOffset + 512
    );
    return ring >= 0
      ? "ring"
      : offset >= record
      ? ["", "state", "wakes", "agent", "generation", "features"][(offset - record) / 4]!
      : "own";
  };
  try {
    Object.assign(Atomics, {
      store(words: Int32Array, at: number, value: number) {
        seen.push(nameOf(words, at));
        return store(words, at, value);
      },
      compareExchange(words: Int32Array, at: number, from: number, to: number) {
        seen.push(nameOf(words, at));
        return compareExchange(words, at, from, to);
      },
      or(words: Int32Array, at: number, value: number) {
        seen.push("rung");
        return or(words, at, value);
      },
    });
    revive(port);
  } finally {
    Object.assign(Atomics, { store, compareExchange, or });
  }
  const rings = new Array(6).fill("ring");
  const words = ["wakes", "agent", "features", "generation", "state"];
  assertEquals(seen, [...rings, ...words, "rung", "rung"]);
});

Deno.test("[segment.vacate_peer] a ring that this end does not use stands in the way", () => {
  const segment = Port.create({ capacity: 256 }).segment;
  segment.words(128, 256)[layout.ENDPOINT_STATE_WORD] = 0; // both are vacant
  const reader = Reader.attach(segment, { channel: 0 });
  failEndpoint(segment, 0);
  assertThrows(() => revive(reader), TypeError, "channels that this end does not use");
});

Deno.test("[pipe.vacated] asynchronous reads go on waiting, for the next owner", async () => {
  const { port, crash } = crashed();
  const reading = port.readAsync(WAIT);
  await new Promise((resolve) => setTimeout(resolve, 5));
  crash();
  revive(port); // before the read has looked
  using next = Port.attach<string>(port.memory);
  next.write("hello");
  assertEquals(await reading, "hello");
});

Deno.test("vacatePeer in the close event of a port: events go on for the next owner", async () => {
  const { port, first, crash } = crashed();
  const heard: string[] = [];
  port.onmessage = ({ data }) => heard.push(data);
  let vacated!: () => void;
  port.addEventListener("close", (event) => {
    if (event.error === undefined) return; // our own close
    heard.push(event.error.code);
    revive(port);
    vacated();
  });
  for (const life of ["one", "two", "three"]) {
    const { closed, readable } = port;
    const gone = new Promise<void>((resolve) => vacated = resolve);
    const peer = life === "one" ? first : Port.attach<string>(port.memory);
    peer.write(life);
    crash();
    await gone;
    assertEquals((await closed)?.code, "peer.failed");
    assertEquals([port.closed === closed, port.readable === readable], [false, false]);
  }
  assertEquals(heard, ["one", "peer.failed", "two", "peer.failed", "three", "peer.failed"]);
  port.close();
});

Deno.test("[pipe.vacated] a write that was begun fails, and nobody gets the rest", async () => {
  const { port, crash } = crashed();
  const begun = port.writeAsync("x".repeat(1000), WAIT);
  const behind = port.writeAsync("whole", WAIT); // no frame of it is placed
  await new Promise((resolve) => setTimeout(resolve, 5));
  crash();
  revive(port);
  await assertRejects(() => begun, PeerFailedError, "in the middle of the message");
  await behind;
  using next = Port.attach<string>(port.memory);
  port.write("after");
  assertEquals([next.read(WAIT), next.read(WAIT), next.tryRead()], ["whole", "after", undefined]);
});

Deno.test("[pipe.vacated] what was posted and not begun is for the next owner", async () => {
  const { port, crash } = crashed();
  const values = ["one", "two", "three"]; // less than a quarter of the ring
  const posts = values.map((value) => codeOf(port.postMessage(value)));
  crash();
  revive(port);
  using next = Port.attach<string>(port.memory);
  const got: unknown[] = [];
  while (got.length < 3) got.push(await next.readAsync(WAIT));
  assertEquals(got, values);
  assertEquals(await Promise.all(posts), ["no error", "no error", "no error"]);
});

Deno.test("[pipe.vacated] an end that waited for its turn ends no stream but its own", async () => {
  const { port, crash } = crashed();
  const begun = codeOf(port.writeAsync("x".repeat(1000), WAIT));
  const ending = port.endAsync(WAIT);
  await new Promise((resolve) => setTimeout(resolve, 5));
  crash();
  revive(port);
  assertEquals(await begun, "peer.failed");
  await ending;
  using next = Port.attach<string>(port.memory);
  port.write("goes on");
  await port.endAsync(WAIT); // the `end` that waited is placed now
  assertEquals([next.read(WAIT), next.read(WAIT), next.ended], ["goes on", undefined, true]);
});

Deno.test("[segment.vacate_read] an end inside a message has to be reported first", () => {
  const { reader, segment, scribe } = scribed();
  scribe.frame({ flags: 1, total: 9, payload: [1, 2] }).publish();
  assertEquals(reader.tryRead(), undefined);
  scribe.frame({ kind: 2, flags: 0 }).publish();
  failEndpoint(segment, 0);
  assertThrows(() => revive(reader), TypeError);
  assertCode(() => reader.tryRead(), "message.truncated");
  revive(reader);
  assertEquals([reader.tryRead(), reader.ended], [undefined, false]);
});

Deno.test("[segment.vacate_read] chunks that nobody has collected are unread", () => {
  const { reader, segment, scribe } = scribed();
  scribe.frame({ flags: 1, total: 9, payload: [1, 2] }).publish();
  failEndpoint(segment, 0);
  assertThrows(() => revive(reader), TypeError);
  assertCode(() => reader.tryRead(), "peer.failed");
  revive(reader);
  assertEquals(reader.tryRead(), undefined);
});

Deno.test("[pipe.lend] what is lent of a batch stays lent, and is given back as ever", () => {
  const { writer, reader, segment } = pipe({ capacity: 1024 });
  writeMany(writer, [1, 2]);
  assertEquals([reader.tryRead(), tryPeek(reader)?.size], [1, 1]); // the lent frame is a copy
  failEndpoint(segment, 0);
  revive(reader);
  assertThrows(() => tryPeek(reader), TypeError, "a frame is lent already");
  release(reader);
  Writer.attach(segment).write("next");
  assertEquals(reader.tryRead(), "next");
});

Deno.test("[pipe.lend_one] nothing is read while a frame is lent, from a batch neither", () => {
  const { writer, reader } = pipe({ capacity: 1024 });
  writeMany(writer, [1, 2, 3]);
  assertEquals([reader.tryRead(), tryPeek(reader)?.size], [1, 1]);
  const target = new Uint8Array(8);
  const calls = [
    () => reader.tryRead(),
    () => tryReadMessage(reader),
    () => tryReadInto(reader, target),
    () => reader.read({ timeout: 0 }),
  ];
  for (const call of calls) assertThrows(call, TypeError, "a frame is lent");
  release(reader);
  assertEquals(reader.tryRead(), 3);
});

Deno.test("[segment.vacate_state] a state that has changed since stays as it is", () => {
  const { port, crash } = crashed();
  crash();
  const at = (256 >> 2) + layout.ENDPOINT_STATE_WORD;
  const words = port.segment.words(0, 512);
  const { compareExchange } = Atomics;
  try {
    Atomics.compareExchange = ((view: Int32Array, index: number, from: number, to: number) => {
      words[at] = 9; // a state that nobody may store
      return compareExchange(view, index, from, to);
    }) as typeof compareExchange;
    revive(port);
  } finally {
    Atomics.compareExchange = compareExchange;
  }
  assertEquals(assertThrows(() => port.tryRead(), PeerFailedError).reason, "segment.state");
});

Deno.test("[segment.vacate_dead] an owner that is seen to live is not replaced", () => {
  let isAlive = true;
  const segment = pipeSegment();
  const mechanism = Object.assign(Object.create(pollingMechanism()), { isAlive: () => isAlive });
  const reader = Reader.attach(segment, { mechanism });
  failEndpoint(segment, 0);
  assertThrows(() => revive(reader), TypeError, "its owner lives");
  isAlive = false;
  revive(reader);
});

Deno.test("vacatePeer lets the same file or memory be attached to again, once at a time", () => {
  const { port, crash } = crashed();
  assertThrows(() => Port.attach(port.memory), SegmentError);
  for (let generation = 1; generation < 4; generation++) {
    crash();
    assertThrows(() => Port.attach(port.memory), SegmentError);
    revive(port);
    const next = Port.attach<string>(port.memory);
    assertThrows(() => Port.attach(port.memory), SegmentError);
    next.write(`${generation}`);
    assertEquals(port.read(WAIT), `${generation}`);
  }
});
