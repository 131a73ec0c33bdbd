// What becomes of calls and messages under way when a peer's endpoint is vacated.

import { assertEquals, assertThrows } from "@std/assert";
import { ClosedError, PeerFailedError, SegmentError } from "../error.ts";
import { assertCode, codeOf, pipe, pipeSegment, scribed } from "../testing/fixture.ts";
import { remote } from "../call/call.ts";
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

Deno.test("revive gives a client of a hub back: the next one goes on, and so do others", () => {
  using hub = Hub.create<string>(3);
  const clients = hub.ports.map((port) => Port.from<string>(port.handoff()));
  clients[1]!.write("last words");
  hub.ports[1]!.write("not read");
  failEndpoint(hub.segment, 2, "peer.terminated");
  assertEquals(hub.select(WAIT)?.tryRead(), "last words");
  assertEquals(hub.select(WAIT), hub.ports[1]);
  assertThrows(() => hub.ports[1]!.tryRead(), PeerFailedError);
  const old = hub.ports[1]!;
  assertEquals(revive(old), hub.ports[1]);
  assertCode(() => old.tryRead(), "pipe.closed");
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

Deno.test("revive refuses what may not be now, and changes nothing", () => {
  const { port: old, first, crash } = crashed();
  let port = old;
  const refuse = (why: string) => {
    const before = port.segment.bytes(0, port.segment.size).slice();
    assertThrows(() => revive(port), TypeError, `Cannot revive: ${why}`);
    assertEquals(port.segment.bytes(0, port.segment.size), before);
  };
  refuse("its peer has not closed");
  first.write("one");
  crash();
  refuse("what its peer has published is not read");
  assertEquals(port.read(WAIT), "one");
  port = revive(port);
  refuse("its peer has not closed"); // it is vacant
  let encoded = 0;
  const toJSON = () => {
    failEndpoint(port.segment, 1);
    refuse("a value is being encoded");
    return ++encoded;
  };
  port.write({ toJSON } as unknown as string);
  assertEquals(encoded, 1);
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

Deno.test("revive closes the old end: reads and calls end, listeners get no more", async () => {
  const { port, crash } = crashed();
  const heard: unknown[] = [];
  const reading = codeOf(port.readAsync(WAIT));
  const calling = codeOf(remote<{ double(n: number): number }>(port).double(1));
  port.onmessage = ({ data }) => heard.push(data);
  port.onclose = ({ error }) => heard.push(error);
  await new Promise((resolve) => setTimeout(resolve, 5));
  crash();
  using fresh = revive(port); // before anything of the old one has looked
  using next = Port.attach<string>(fresh.memory);
  next.write("hello");
  assertEquals(await fresh.readAsync(WAIT), "hello");
  assertEquals([await reading, await calling], ["pipe.closed", "peer.failed"]);
  assertEquals([heard, await port.closed], [[undefined], undefined]);
  assertCode(() => port.write("no more"), "pipe.closed");
});

Deno.test("revive in the close event of a port: the new port is listened to", async () => {
  const { port, first, crash } = crashed();
  const heard: string[] = [];
  let current = port;
  let revived!: () => void;
  const listen = () => {
    const mine = current;
    mine.onmessage = ({ data }) => heard.push(data);
    mine.onclose = ({ error }) => {
      if (error === undefined) return; // our own close
      heard.push(error.code);
      current = revive(mine);
      listen();
      revived();
    };
  };
  listen();
  for (const life of ["one", "two", "three"]) {
    const { closed } = current;
    const gone = new Promise<void>((resolve) => revived = resolve);
    const peer = life === "one" ? first : Port.attach<string>(port.memory);
    peer.write(life);
    crash();
    await gone;
    assertEquals((await closed)?.code, "peer.failed");
  }
  assertEquals(heard, ["one", "peer.failed", "two", "peer.failed", "three", "peer.failed"]);
  current.close();
});

Deno.test("[pipe.vacated] a write that was begun fails, and nobody gets the rest", async () => {
  const { port, crash } = crashed();
  const begun = codeOf(port.writeAsync("x".repeat(1000), WAIT));
  const after = port.writeAsync("whole", WAIT); // no frame of it is placed
  await new Promise((resolve) => setTimeout(resolve, 5));
  crash();
  using fresh = revive(port);
  assertEquals(await begun, "peer.failed");
  await after;
  using next = Port.attach<string>(port.memory);
  fresh.write("last");
  assertEquals([next.read(WAIT), next.read(WAIT), next.tryRead()], ["whole", "last", undefined]);
});

Deno.test("[pipe.vacated] what was posted and not begun is for the next owner", async () => {
  const { port, crash } = crashed();
  const values = ["one", "two", "three"]; // less than a quarter of the ring
  const posts = values.map((value) => codeOf(port.postMessage(value)));
  crash();
  using fresh = revive(port);
  posts.push(codeOf(fresh.postMessage("four")));
  using next = Port.attach<string>(port.memory);
  const got: unknown[] = [];
  while (got.length < 4) got.push(await next.readAsync(WAIT));
  assertEquals(got, [...values, "four"]);
  assertEquals(await Promise.all(posts), posts.map(() => "no error"));
  assertEquals([port.link.isKeeping, fresh.link.isKeeping], [false, false]);
});

Deno.test("[pipe.vacated] what was accepted can still be given up, and is not placed", async () => {
  const { port, crash } = crashed();
  const abort = new AbortController();
  const texts = ["lost", "next", "not", "last"].map((text) => text.padEnd(100)); // one has room
  const posts = texts.map((text, n) =>
    codeOf(port.postMessage(text, { signal: n === 2 ? abort.signal : undefined }))
  );
  crash();
  using fresh = revive(port);
  abort.abort(new Error("enough"));
  using next = Port.attach<string>(fresh.memory);
  assertEquals([await next.readAsync(WAIT), await next.readAsync(WAIT)], [texts[1], texts[3]]);
  const fates = ["no error", "no error", "Error: enough", "no error"];
  assertEquals([await Promise.all(posts), next.tryRead()], [fates, undefined]);
});

Deno.test("[pipe.vacated] an end that waited for its turn ends no stream but its own", async () => {
  const { port, crash } = crashed();
  const begun = codeOf(port.writeAsync("x".repeat(1000), WAIT));
  const ending = codeOf(port.endAsync(WAIT));
  await new Promise((resolve) => setTimeout(resolve, 5));
  crash();
  using fresh = revive(port);
  assertEquals([await begun, await ending], ["peer.failed", "peer.failed"]);
  using next = Port.attach<string>(port.memory);
  fresh.write("goes on");
  await fresh.endAsync(WAIT);
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
  const next = revive(reader);
  assertEquals([next.tryRead(), next.ended], [undefined, false]);
});

Deno.test("[segment.vacate_read] chunks that nobody has collected are unread", () => {
  const { reader, segment, scribe } = scribed();
  scribe.frame({ flags: 1, total: 9, payload: [1, 2] }).publish();
  failEndpoint(segment, 0);
  assertThrows(() => revive(reader), TypeError);
  assertCode(() => reader.tryRead(), "peer.failed");
  assertEquals(revive(reader).tryRead(), undefined);
});

Deno.test("[pipe.vacated_rest] the rest of a batch comes first, and a lent frame ends", () => {
  const { writer, reader, segment } = pipe({ capacity: 1024 });
  writeMany(writer, [1, 2, 3]);
  assertEquals([reader.tryRead(), tryPeek(reader)?.size], [1, 1]); // the lent frame is a copy
  failEndpoint(segment, 0);
  assertThrows(() => revive(reader), TypeError, "is not read");
  release(reader);
  const next = revive(reader);
  Writer.attach(segment).write("next");
  assertEquals([next.tryRead(), next.tryRead(), next.tryRead()], [3, "next", undefined]);
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
  let fresh: Port<string>;
  try {
    Atomics.compareExchange = ((view: Int32Array, index: number, from: number, to: number) => {
      words[at] = 9; // a state that nobody may store
      return compareExchange(view, index, from, to);
    }) as typeof compareExchange;
    fresh = revive(port);
  } finally {
    Atomics.compareExchange = compareExchange;
  }
  assertEquals(assertThrows(() => fresh.tryRead(), PeerFailedError).reason, "segment.state");
});

Deno.test("[segment.vacate_dead] an owner that is seen to live is not replaced", () => {
  let isAlive = true;
  const segment = pipeSegment();
  const mechanism = Object.assign(Object.create(pollingMechanism()), { isAlive: () => isAlive });
  const reader = Reader.attach(segment, { mechanism });
  failEndpoint(segment, 0);
  assertThrows(() => revive(reader), TypeError, "the owner of its peer lives");
  isAlive = false;
  revive(reader);
});

Deno.test("revive lets the same file or memory be attached to again, once at a time", () => {
  const { port: first, crash } = crashed();
  let port = first;
  assertThrows(() => Port.attach(port.memory), SegmentError);
  for (let generation = 1; generation < 4; generation++) {
    crash();
    assertThrows(() => Port.attach(port.memory), SegmentError);
    port = revive(port);
    const next = Port.attach<string>(port.memory);
    assertThrows(() => Port.attach(port.memory), SegmentError);
    next.write(`${generation}`);
    assertEquals(port.read(WAIT), `${generation}`);
  }
});
