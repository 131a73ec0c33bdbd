/**
 * [port.posted] Posted messages that do not fit their ring are written while the endpoint waits for
 * something else: data, room in another ring, a peer.
 */

import { assertEquals } from "@std/assert";
import { assertCode, codeOf, watched, withoutSlices } from "../testing/fixture.ts";
import { Hub } from "../more/hub.ts";
import { layout } from "../memory/layout.ts";
import { Port } from "./port.ts";
import { until } from "./fixture.ts";
import type { Segment } from "../memory/segment.ts";
import { type Mechanism, pollingMechanism } from "../wait/mechanism.ts";
import { nextTask } from "../wait/loop.ts";
import { abandon, claim, peek, release } from "../more/lend.ts";
import { readInto, readMessage } from "../more/raw.ts";
import { waitForPeer } from "../more/peer.ts";
import { readMany } from "../more/many.ts";

const COUNT = 12;
/** Two of the texts fit the ring. */
const CAPACITY = 8192;
const TEXT = "x".repeat(3000);
/** Only a wait that misses something lasts so long. */
const WAIT = { timeout: 2000 };

// deno-lint-ignore no-explicit-any
type Any = any;

/**
 * A mechanism that does not sleep, but lets others act. They have to ring: otherwise only its slice
 * would end the sleep. Sleeps without a ring are counted as silent.
 */
function acting(act: (isRung: () => boolean) => void) {
  const seen = { sleeps: 0, silent: 0 };
  const mechanism: Mechanism = {
    ...watched(() => {}),
    sleep(words, index, expected) {
      const isRung = () => Atomics.load(words, index) !== expected;
      act(isRung);
      seen.sleeps++;
      if (!isRung()) seen.silent++;
    },
  };
  return { mechanism, seen };
}

/** A reader that takes what was posted until that rings, and then calls `then`. */
function draining(reader: () => Port<Any>, then: () => void) {
  const got: unknown[] = [];
  const act = (isRung: () => boolean) => {
    while (!isRung()) {
      const value = reader().tryRead();
      if (value === undefined) return;
      got.push(value);
      if (got.length === COUNT) return then();
    }
  };
  return { ...acting(act), got };
}

/** All `wants` words in a segment that are armed. */
function wants(segment: Segment): number[] {
  return segment.channels.flatMap(({ controlOffset, controlSize }) => {
    const words = segment.words(controlOffset, controlSize);
    return [words[layout.RING_READER_WANTS_WORD]!, words[layout.RING_WRITER_WANTS_WORD]!];
  }).filter((word) => word !== 0);
}

function post(port: Port<Any>, count = COUNT): Promise<string>[] {
  return Array.from({ length: count }, () => codeOf(port.postMessage(TEXT)));
}

/** What a thread can wait for, and what ends each wait. */
const WAITS: Record<
  string,
  [wait: (hub: Hub<Any>) => unknown, end: (clients: Port<Any>[]) => void]
> = {
  read: [(hub) => hub.ports[0]!.read(WAIT), ([client]) => client!.write("end")],
  readMany: [(hub) => readMany(hub.ports[0]!, 1, WAIT)?.[0], ([client]) => client!.write("end")],
  readMessage: [
    (hub) => readMessage(hub.ports[0]!, WAIT) && "end",
    ([client]) => client!.write("end"),
  ],
  readInto: [
    (hub) => readInto(hub.ports[0]!, new Uint8Array(9), WAIT) && "end",
    ([client]) => client!.write("end"),
  ],
  peek: [
    (hub) => {
      const lent = peek(hub.ports[0]!, WAIT);
      release(hub.ports[0]!);
      return lent && "end";
    },
    ([client]) => client!.write("end"),
  ],
  select: [(hub) => hub.select(WAIT)?.tryRead(), ([client]) => client!.write("end")],
  write: [
    (hub) => {
      while (hub.ports[0]!.tryWrite(0));
      hub.ports[0]!.write("end", WAIT);
      return "end";
    },
    ([client]) => {
      while (client!.tryRead() !== undefined);
    },
  ],
  claim: [
    (hub) => {
      while (hub.ports[0]!.tryWrite(0));
      claim(hub.ports[0]!, 100, WAIT);
      abandon(hub.ports[0]!);
      return "end";
    },
    ([client]) => {
      while (client!.tryRead() !== undefined);
    },
  ],
  waitForPeer: [
    (hub) => waitForPeer(hub.ports[2]!, WAIT) && "end",
    ([client]) => void Port.attach(client!.memory, { endpoint: 3 }),
  ],
};

for (const [name, [wait, end]] of Object.entries(WAITS)) {
  Deno.test(`[port.posted] a hub's ${name} of one client goes on writing to another`, async () => {
    const { mechanism, seen, got } = draining(() => clients[1]!, () => end(clients));
    const hub = Hub.create<Any>(3, { capacity: CAPACITY, spin: 0, mechanism });
    const clients = [1, 2].map((endpoint) => Port.attach<Any>(hub.memory, { endpoint }));
    const posts = post(hub.ports[1]!);
    assertEquals(wait(hub), "end");
    assertEquals([got.length, seen.silent], [COUNT, 0]);
    assertEquals(wants(hub.segment), []);
    assertEquals(await Promise.all(posts), posts.map(() => "no error"));
    hub.close();
  });
}

Deno.test("[port.posted] a port's own reads go on writing what it has posted", async () => {
  for (const name of ["read", "readInto", "peek"] as const) {
    const { mechanism, seen, got } = draining(() => there, () => there.write("end"));
    const here = Port.create<Any>({ capacity: CAPACITY, spin: 0, mechanism });
    const there = Port.attach<Any>(here.memory);
    const posts = post(here);
    const found = name === "read"
      ? here.read(WAIT)
      : name === "peek"
      ? peek(here, WAIT)
      : readInto(here, new Uint8Array(9), WAIT);
    assertEquals([found !== undefined, got.length, seen.silent], [true, COUNT, 0], name);
    assertEquals(wants(here.segment), []);
    assertEquals(await Promise.all(posts), posts.map(() => "no error"));
    here.close();
  }
});

Deno.test("[port.posted] a call that writes the rest ends the wait of the background", async () => {
  const { mechanism, seen, got } = draining(() => clients[1]!, () => clients[0]!.write("end"));
  const hub = Hub.create<Any>(2, { capacity: CAPACITY, spin: 0, mechanism });
  const clients = [1, 2].map((endpoint) => Port.attach<Any>(hub.memory, { endpoint }));
  const posts = post(hub.ports[1]!);
  await new Promise<void>((resolve) => nextTask(resolve));
  assertEquals(wants(hub.segment).length, 2); // one for room, one for what arrives
  assertEquals(hub.ports[0]!.read(WAIT), "end");
  assertEquals([got.length, seen.silent], [COUNT, 0]);
  assertEquals(await Promise.all(posts), posts.map(() => "no error"));
  assertEquals(wants(hub.segment), []);
  hub.close();
});

Deno.test("[port.posted] a call that finds room ends the wait of the background, unrung", () =>
  withoutSlices(async () => {
    const here = Port.create<Any>({ capacity: CAPACITY });
    const there = Port.attach<Any>(here.memory, { mechanism: pollingMechanism() });
    const posts = post(here, 3);
    await new Promise<void>((resolve) => nextTask(resolve));
    assertEquals(wants(here.segment).length, 2); // for room, and for what arrives
    assertEquals([there.tryRead(), there.tryRead()], [TEXT, TEXT]);
    assertEquals(here.tryWrite(0), true); // after what was posted
    assertEquals(await Promise.all(posts), posts.map(() => "no error"));
    assertEquals(wants(here.segment), []);
    here.close();
  }));

Deno.test("[port.posted] posts for several clients are written in one wait", async () => {
  const got = [0, 0, 0];
  const { mechanism, seen } = acting((isRung) => {
    for (let moved = true; moved && !isRung();) {
      moved = false;
      for (const [n, client] of clients.entries()) {
        if (n === 0 || client.tryRead() === undefined) continue;
        got[n]!++;
        moved = true;
      }
    }
    if (got[1]! + got[2]! === 2 * COUNT) clients[0]!.write("end");
  });
  const hub = Hub.create<Any>(3, { capacity: CAPACITY, spin: 0, mechanism });
  const clients = [1, 2, 3].map((endpoint) => Port.attach<Any>(hub.memory, { endpoint }));
  const posts = [...post(hub.ports[1]!), ...post(hub.ports[2]!)];
  assertEquals(hub.select(WAIT)?.tryRead(), "end");
  assertEquals([got, seen.silent], [[0, COUNT, COUNT], 0]);
  assertEquals(await Promise.all(posts), posts.map(() => "no error"));
  hub.close();
});

Deno.test("[port.inbox] a client that floods before it reads gets its posts", async () => {
  const sent: unknown[] = [];
  const got: unknown[] = [];
  const { mechanism, seen } = acting((isRung) => {
    while (!isRung()) {
      if (sent.length < COUNT && clients[1]!.tryWrite(TEXT)) sent.push(TEXT);
      else if (sent.length === COUNT) {
        const value = clients[1]!.tryRead();
        if (value === undefined) return;
        got.push(value);
        if (got.length === COUNT) return clients[0]!.write("end");
      } else return;
    }
  });
  const hub = Hub.create<Any>(2, { capacity: CAPACITY, spin: 0, mechanism });
  const clients = [1, 2].map((endpoint) => Port.attach<Any>(hub.memory, { endpoint }));
  const posts = post(hub.ports[1]!);
  assertEquals(hub.ports[0]!.read(WAIT), "end");
  assertEquals([sent.length, got.length, seen.silent], [COUNT, COUNT, 0]);
  const heard: unknown[] = [];
  while (heard.length < COUNT) heard.push(hub.ports[1]!.read(WAIT));
  assertEquals(heard, sent);
  assertEquals(await Promise.all(posts), posts.map(() => "no error"));
  hub.close();
});

Deno.test("[port.posted] a client that goes costs its posts, and not the wait", async () => {
  const { mechanism, seen } = acting(() => {
    if (seen.sleeps === 0) clients[1]!.close();
    else clients[0]!.write("end");
  });
  const hub = Hub.create<Any>(2, { capacity: CAPACITY, spin: 0, mechanism });
  const clients = [1, 2].map((endpoint) => Port.attach<Any>(hub.memory, { endpoint }));
  const posts = post(hub.ports[1]!, 3);
  assertEquals(hub.ports[0]!.read(WAIT), "end");
  assertEquals(seen, { sleeps: 2, silent: 0 });
  assertEquals(await Promise.all(posts), ["no error", "no error", "peer.closed"]);
  hub.close();
});

Deno.test("[wait.recheck] room that comes just before a wait arms for it is found", async () => {
  const { mechanism, seen } = acting(() => clients[0]!.write("end"));
  const hub = Hub.create<Any>(2, { capacity: CAPACITY, spin: 0, mechanism });
  const clients = [1, 2].map((endpoint) => Port.attach<Any>(hub.memory, { endpoint }));
  const posts = post(hub.ports[1]!, 3);
  const roomWords = hub.segment.channels.map(({ controlOffset }) =>
    controlOffset / 4 + layout.RING_WRITER_WANTS_WORD
  );
  const { store } = Atomics;
  const got: unknown[] = [];
  try {
    Atomics.store = ((view: Int32Array, index: number, value: number) => {
      if (roomWords.includes(index) && value !== 0 && got.length === 0) {
        for (let n = 0; n < 2; n++) got.push(clients[1]!.tryRead());
      }
      return store(view, index, value);
    }) as typeof store;
    assertEquals(hub.ports[0]!.read(WAIT), "end");
  } finally {
    Atomics.store = store;
  }
  // Everything was written before it first slept, and it waited for no more room.
  assertEquals([seen, got], [{ sleeps: 1, silent: 0 }, [TEXT, TEXT]]);
  assertEquals(clients[1]!.tryRead(), TEXT);
  assertEquals(await Promise.all(posts), posts.map(() => "no error"));
  hub.close();
});

Deno.test("[wait.mechanism] a wait polls while a client that is owed posts cannot ring", () => {
  const sleeps: number[] = [];
  const mechanism = watched((ms) => sleeps.push(ms));
  const hub = Hub.create<Any>(2, { capacity: CAPACITY, spin: 0, mechanism });
  Port.attach(hub.memory, { endpoint: 1 });
  Port.attach(hub.memory, { endpoint: 2, mechanism: pollingMechanism() });
  assertEquals(hub.ports[0]!.read({ timeout: 20 }), undefined);
  assertEquals(sleeps.some((ms) => ms > 5), true);
  sleeps.length = 0;
  post(hub.ports[1]!, 3);
  assertEquals(hub.ports[0]!.read({ timeout: 20 }), undefined);
  assertEquals([sleeps.length > 0, sleeps.filter((ms) => ms > 5)], [true, []]);
  hub.close();
});

Deno.test("[wait.slice] a wait is short while a client that is owed posts is vacant", () => {
  const sleeps: number[] = [];
  const mechanism = watched((ms) => {
    sleeps.push(ms);
    client.write("end");
  });
  const hub = Hub.create<Any>(2, { capacity: CAPACITY, spin: 0, mechanism });
  const client = Port.attach<Any>(hub.memory, { endpoint: 1 });
  post(hub.ports[1]!, 3);
  assertEquals(hub.ports[0]!.read(WAIT), "end");
  assertEquals([sleeps.length, Math.ceil(sleeps[0]!)], [1, 100]);
  hub.close();
});

Deno.test("[port.posted] a wait that times out leaves nothing armed", async () => {
  const hub = Hub.create<Any>(2, { capacity: CAPACITY, spin: 0 });
  const clients = [1, 2].map((endpoint) => Port.attach<Any>(hub.memory, { endpoint }));
  const posts = post(hub.ports[1]!, 3);
  assertEquals(hub.ports[0]!.read({ timeout: 5 }), undefined);
  assertEquals(hub.select({ timeout: 5 }), undefined);
  while (hub.ports[0]!.tryWrite(0));
  assertCode(() => hub.ports[0]!.write(0, { timeout: 5 }), "wait.timeout");
  assertEquals(wants(hub.segment), []);
  for (let n = 0; n < 3; n++) assertEquals(await clients[1]!.readAsync(WAIT), TEXT);
  assertEquals(await Promise.all(posts), posts.map(() => "no error"));
  hub.close();
});

Deno.test("a post that is taken back makes way for what fits after it", async () => {
  const here = Port.create<Any>({ capacity: CAPACITY });
  const there = Port.attach<Any>(here.memory);
  await withoutSlices(async () => {
    post(here, 2);
    const abort = new AbortController();
    const large = codeOf(here.postMessage(TEXT, { signal: abort.signal }));
    let isSent = false;
    here.postMessage("small").then(() => isSent = true);
    // The background waits for room for the large one.
    await new Promise<void>((resolve) => nextTask(resolve));
    abort.abort("taken back");
    assertEquals(await large, "taken back");
    await until(() => isSent); // nobody has read anything
  });
  assertEquals([there.tryRead(), there.tryRead(), there.tryRead()], [TEXT, TEXT, "small"]);
  here.close();
});
