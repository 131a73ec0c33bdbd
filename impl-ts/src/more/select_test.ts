import { assertEquals, assertRejects, assertStrictEquals, assertThrows } from "@std/assert";
import {
  assertCode,
  codeOf,
  pattern,
  pipe,
  pipeSegment,
  Scribe,
  watched,
  withClock,
} from "../testing/fixture.ts";
import { Hub } from "./hub.ts";
import { layout } from "../memory/layout.ts";
import { Port } from "../port/port.ts";
import { Reader, statsOf } from "../pipe/ends.ts";
import { select, selectAsync } from "./select.ts";
import { closeEndpoint, failEndpoint } from "../wait/state.ts";
import { type Mechanism, pollingMechanism } from "../wait/mechanism.ts";
import { peek, release } from "./lend.ts";
import { lastRead, readMessage, writeMessage } from "./raw.ts";
import { writeMany } from "./many.ts";
import { peerIndexOf } from "./peer.ts";

// deno-lint-ignore no-explicit-any
function hubWith(count: number, mechanism?: Mechanism): [Hub<any>, Port<any>[]] {
  // deno-lint-ignore no-explicit-any
  const hub = Hub.create<any>(count, { capacity: 1024, spin: 0, mechanism });
  return [
    hub,
    // deno-lint-ignore no-explicit-any
    hub.ports.map(({ link: { peer } }) => Port.attach<any>(hub.memory, { endpoint: peer })),
  ];
}

Deno.test("select finds what can be read, and nothing where nothing can", () => {
  const [hub, clients] = hubWith(3);
  assertEquals(select(hub.ports, { timeout: 0 }), undefined);
  assertEquals(select(hub.ports, { timeout: 3 }), undefined);
  clients[2]!.write(1);
  assertStrictEquals(select(hub.ports), hub.ports[2]);
  assertStrictEquals(select(hub.ports), hub.ports[2]); // a message stays until it is read
  assertEquals(select([hub.ports[0]!, hub.ports[1]!], { timeout: 0 }), undefined);
  assertEquals(hub.ports[2]!.read(), 1);
  assertEquals(select(hub.ports, { timeout: 0 }), undefined);
  clients[0]!.end();
  assertStrictEquals(select(hub.ports), hub.ports[0]);
  assertEquals([hub.ports[0]!.read(), hub.ports[0]!.ended], [undefined, true]);
  assertStrictEquals(select(hub.ports), hub.ports[0]); // an end stays for good
  clients[1]!.close();
  assertStrictEquals(select(hub.ports.slice(1)), hub.ports[1]);
  assertCode(() => hub.ports[1]!.tryRead(), "peer.closed");
});

Deno.test("select is fair: the one chosen longest ago comes first", () => {
  const [hub, clients] = hubWith(3);
  for (let n = 0; n < 12; n++) for (const client of clients) client.write(n);
  const order: number[] = [];
  for (let n = 0; n < 9; n++) {
    const port = select(hub.ports, { timeout: 0 })!;
    order.push(peerIndexOf(port));
    port.read();
  }
  assertEquals(order, [1, 2, 3, 1, 2, 3, 1, 2, 3]);
  // Also when two callers select in turns, from different sets of ports.
  const first: number[] = [];
  const second: number[] = [];
  for (let n = 0; n < 2; n++) {
    first.push(peerIndexOf(select(hub.ports, { timeout: 0 })!));
    second.push(peerIndexOf(select(hub.ports.slice(0, 2), { timeout: 0 })!));
  }
  assertEquals([first, second], [[1, 3], [2, 1]]);
});

Deno.test("[wait.bell_first] select arms every ring after its bell, and disarms each", () => {
  const seen: number[][] = [];
  const [hub] = hubWith(3, watched(() => seen.push(wants())));
  const wants = () =>
    hub.segment.channels.filter(({ reader }) => reader === 0).map(({ controlOffset }) =>
      hub.segment.words(controlOffset, 512)[layout.RING_READER_WANTS_WORD]!
    );
  assertEquals(select(hub.ports, { timeout: 4 }), undefined);
  assertEquals(seen[0], [17, 17, 17]);
  assertEquals(wants(), [0, 0, 0]);
  assertEquals(select(hub.ports.slice(1), { timeout: 4 }), undefined);
  assertEquals(seen.at(-1), [0, 17, 17]);
});

Deno.test("[wait.mechanism] select polls while one of the clients cannot ring the hub", () =>
  withClock((clock) => {
    const seen: { ms: number; at: number }[] = [];
    let come = 0;
    const began = performance.now();
    const mechanism = watched((ms) => {
      seen.push({ ms, at: performance.now() - began });
      clock.ms += ms;
      if (come++ > 0) return;
      // The other clients came before; this one comes while `select` sleeps.
      Port.attach(hub.memory, { endpoint: 3, mechanism: pollingMechanism() });
    });
    const hub = Hub.create(3, { capacity: 256, spin: 0, mechanism });
    Port.attach(hub.memory, { endpoint: 1 });
    Port.attach(hub.memory, { endpoint: 2 });
    assertEquals(select(hub.ports, { timeout: 250 }), undefined);
    const later = seen.filter(({ at }) => at > 150); // the slice in which that client came is over
    assertEquals([seen[0]!.ms > 5, later.length > 0], [true, true]);
    assertEquals(later.filter(({ ms }) => ms > 5), []);
    seen.length = 0;
    assertEquals(select(hub.ports.slice(0, 2), { timeout: 20 }), undefined);
    assertEquals(seen.some(({ ms }) => ms > 5), true);
  }));

for (const late of [0, 1, 2]) {
  Deno.test(`[wait.recheck] a message between the look and the arming of ring ${late}`, () => {
    let sleeps = 0;
    const [hub, clients] = hubWith(3, watched(() => sleeps++));
    const { store } = Atomics;
    let stores = 0;
    try {
      Atomics.store = ((view: Int32Array, index: number, value: number) => {
        if (value === 17 && stores++ === late) {
          Atomics.store = store;
          clients[late]!.write("late"); // just before the `wants` of its ring is stored
        }
        return store(view, index, value);
      }) as typeof store;
      assertStrictEquals(select(hub.ports, { timeout: 5000 }), hub.ports[late]);
    } finally {
      Atomics.store = store;
    }
    assertEquals(sleeps, 0);
  });
}

Deno.test("a message that comes while select sleeps ends the sleep", () => {
  let asleep = 0;
  // Written by the same thread, at the very moment at which it would fall asleep.
  const [hub, clients] = hubWith(2, watched(() => asleep++ === 0 && clients[1]!.write("now")));
  assertStrictEquals(select(hub.ports, { timeout: 5000 }), hub.ports[1]);
  assertEquals([asleep, statsOf(clients[1]!).wakes], [1, 1]);
});

Deno.test("select reports a client's state, its own state, and what was lost", () => {
  for (const change of ["close", "fail"] as const) {
    const [hub, clients] = hubWith(2, watched(() => act()));
    const act = () =>
      change === "close" ? clients[0]!.close() : failEndpoint(hub.segment, 1, "peer.lost");
    assertStrictEquals(select(hub.ports, { timeout: 5000 }), hub.ports[0]);
    assertCode(() => hub.ports[0]!.tryRead(), change === "close" ? "peer.closed" : "peer.failed");
  }
  // Found by the look after the sleep, and not at the end of the slice.
  let sleeps = 0;
  const [second, others] = hubWith(2, watched(() => sleeps++ === 0 && others[1]!.close()));
  assertStrictEquals(select(second.ports, { timeout: 5000 }), second.ports[1]);
  assertEquals(sleeps, 1);
  const [hub] = hubWith(2, watched(() => closeEndpoint(hub.segment, 0)));
  assertStrictEquals(select(hub.ports, { timeout: 5000 }), hub.ports[0]);
  assertCode(() => hub.ports[0]!.tryRead(), "pipe.closed");
  const faulty = hubWith(2)[0];
  const scribe = new Scribe(faulty.segment, 3);
  scribe.frame({ kind: 3 }).frame({ codec: 2, payload: [55] }).publish();
  assertStrictEquals(select(faulty.ports, { timeout: 0 }), faulty.ports[1]);
  assertStrictEquals(select(faulty.ports, { timeout: 0 }), faulty.ports[1]);
  assertCode(() => faulty.ports[1]!.tryRead(), "message.kind");
  assertEquals(faulty.ports[1]!.tryRead(), 7);
});

Deno.test("a message of several frames counts when it is complete, and keeps its order", () => {
  const [hub, clients] = hubWith(2);
  const writing = clients[0]!.writeAsync(pattern(3000));
  assertEquals(select(hub.ports, { timeout: 0 }), undefined);
  const found = (async () => {
    for (;;) {
      const port = await selectAsync(hub.ports, { timeout: 5000 });
      await writing;
      clients[0]!.write("behind");
      return port;
    }
  })();
  return found.then((port) => {
    assertStrictEquals(port, hub.ports[0]);
    assertEquals([port!.read(), port!.read()], [pattern(3000), "behind"]);
  });
});

Deno.test("what select looks at is read as if it had not", () => {
  const [hub, clients] = hubWith(2);
  const reader = hub.ports[0]!;
  writeMessage(clients[0]!, { payload: pattern(3), codec: 200, tag: 9 });
  writeMany(clients[0]!, [1, 2]);
  writeMessage(clients[0]!, { payload: pattern(5), tag: 4 });
  const look = () => assertStrictEquals(select(hub.ports, { timeout: 0 }), hub.ports[0]);
  look();
  assertEquals(lastRead(reader).tag, 0);
  assertEquals(readMessage(reader), { kind: 1, codec: 200, tag: 9, payload: pattern(3) });
  look();
  assertEquals([lastRead(reader).tag, lastRead(reader).codec], [9, 200]);
  assertEquals(reader.read(), 1);
  look();
  assertEquals(reader.read(), 2);
  look();
  assertEquals(peek(reader)?.payload.slice(), pattern(5));
  assertThrows(() => select(hub.ports, { timeout: 0 }), TypeError, "lent");
  release(reader);
  assertEquals(select(hub.ports, { timeout: 0 }), undefined);
});

Deno.test("over several endpoints, select does not block, and selectAsync waits", async () => {
  const pairs = [pipe(), pipe(), pipe()];
  const readers = pairs.map(({ reader }) => reader);
  assertThrows(() => select(readers), TypeError, "selectAsync");
  assertEquals(select(readers, { timeout: 0 }), undefined);
  assertEquals(await selectAsync(readers, { timeout: 3 }), undefined);
  for (const n of [2, 0, 1]) {
    const waiting = selectAsync(readers, { timeout: 5000 });
    setTimeout(() => pairs[n]!.writer.write(n), 2);
    assertStrictEquals(await waiting, readers[n]);
    assertEquals(readers[n]!.read(), n);
  }
  pairs[1]!.writer.write("here already");
  assertStrictEquals(select(readers, { timeout: 0 }), readers[1]);
  // Ports and readers together, and ports of a hub among them.
  const [hub, clients] = hubWith(2);
  const mixed = [readers[0]!, Port.create(), ...hub.ports];
  const waiting = selectAsync(mixed, { timeout: 5000 });
  setTimeout(() => clients[1]!.write("hub"), 2);
  assertStrictEquals(await waiting, hub.ports[1]);
});

Deno.test("selectAsync leaves nothing armed, whichever way it ends", async () => {
  const pairs = [pipe(), pipe()];
  const readers = pairs.map(({ reader }) => reader);
  const wants = () =>
    pairs.map(({ segment }) =>
      segment.words(segment.channels[0]!.controlOffset, 512)[layout.RING_READER_WANTS_WORD]
    );
  const abort = new AbortController();
  const waiting = selectAsync(readers, { signal: abort.signal });
  await Promise.resolve();
  setTimeout(() => abort.abort(new Error("enough")), 2);
  await assertRejects(() => waiting, Error, "enough");
  assertEquals(wants(), [0, 0]);
  await assertRejects(() => selectAsync(readers, { signal: abort.signal }), Error, "enough");
  assertThrows(() => select(readers, { signal: abort.signal, timeout: 0 }), Error, "enough");
  const found = selectAsync(readers);
  setTimeout(() => pairs[0]!.writer.write(1), 2);
  await found;
  assertEquals(wants(), [0, 0]);
});

Deno.test("selectAsync ends when a port is closed, or its inbox is filled by a write", async () => {
  const [hub, clients] = hubWith(2);
  const closed = selectAsync(hub.ports, { timeout: 5000 });
  await Promise.resolve();
  hub.ports[1]!.close();
  assertStrictEquals(await closed, hub.ports[1]);
  const port = hub.ports[0]!;
  const waiting = selectAsync([port], { timeout: 5000 });
  const writing = codeOf(port.writeAsync(pattern(2000), { timeout: 20 }));
  clients[0]!.write("into the inbox");
  assertStrictEquals(await waiting, port);
  assertEquals([port.tryRead(), await writing], ["into the inbox", "wait.timeout"]);
});

Deno.test("select refuses what it cannot wait for", async () => {
  assertThrows(() => select([]), TypeError);
  await assertRejects(() => selectAsync([]), TypeError);
  const { reader } = pipe();
  for (const timeout of [-1, NaN, "1" as unknown as number]) {
    assertThrows(() => select([reader], { timeout }), RangeError);
    await assertRejects(() => selectAsync([reader], { timeout }), RangeError);
  }
  const forbidden = watched(() => {}, false);
  const segment = pipeSegment();
  const page = Reader.attach(segment, { mechanism: forbidden });
  assertCode(() => select([page]), "wait.forbidden");
  assertEquals(select([page], { timeout: 0 }), undefined);
  assertEquals(await selectAsync([page], { timeout: 3 }), undefined);
});
