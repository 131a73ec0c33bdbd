/** What a hub with many clients costs while nothing comes, and for a message of one of them. */

import { assert, assertEquals } from "@std/assert";
import { assertCode, sliceTimers, withClock, withoutSlices } from "../testing/fixture.ts";
import { Hub } from "./hub.ts";
import { layout } from "../memory/layout.ts";
import { Port } from "../port/port.ts";
import { until } from "../port/fixture.ts";
import { agentMechanism, pollingMechanism } from "../wait/mechanism.ts";
import { writeMany } from "./many.ts";
import { statsOf } from "../pipe/ends.ts";

// deno-lint-ignore no-explicit-any
type Any = any;

const ENDPOINT_BELL_WORD = layout.ENDPOINT_BELL_WORD;
const RING_READER_WANTS_WORD = layout.RING_READER_WANTS_WORD;
const RING_WRITER_WANTS_WORD = layout.RING_WRITER_WANTS_WORD;
const WAIT_POLL_MS = layout.WAIT_POLL_MS;
const WAIT_SLICE_MS = layout.WAIT_SLICE_MS;

const COUNT = 64;
/** The most operations for a message of one client: far fewer than one for each other client. */
const FEW = 20;
/** Shorter than the slices of `withoutSlices`. */
const SOON = { timeout: 5000 };

function hubWith(count: number, isAttached = true): [Hub<Any>, Port<Any>[]] {
  const hub = Hub.create<Any>(count, { capacity: 256, spin: 0 });
  const { memory, ports } = hub;
  const clients = isAttached
    ? ports.map(({ link: { peer } }) => Port.attach<Any>(memory, { endpoint: peer }))
    : [];
  return [hub, clients];
}

/** Counts all atomic operations of this thread that change something or sleep, while `run` runs. */
async function changes(run: () => Promise<unknown>): Promise<number> {
  const names = ["store", "add", "exchange", "compareExchange", "notify", "waitAsync"] as const;
  const originals = names.map((name) => [name, Atomics[name]] as const);
  let count = 0;
  try {
    for (const [name, original] of originals) {
      const counted = (...given: unknown[]) => {
        count++;
        return (original as (...given: unknown[]) => unknown)(...given);
      };
      Object.assign(Atomics, { [name]: counted });
    }
    await run();
  } finally {
    for (const [name, original] of originals) Object.assign(Atomics, { [name]: original });
  }
  return count;
}

/** Runs so that no slice ends, as one may at any moment on a busy machine. */
function quietly(run: () => Promise<void>): Promise<void> {
  return withClock(() => withoutSlices(run));
}

const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

Deno.test("a hub that is listened to has one timer, and one sleep for all slices", async () => {
  const [hub] = hubWith(COUNT, false); // while no client has attached, slices are short
  await sliceTimers(async ({ ms }) => {
    for (const port of hub.ports) port.onmessage = () => {};
    await until(() => hub.stats.parks > 0);
    await pause(5 * WAIT_SLICE_MS);
    assertEquals([ms, hub.stats.parks], [[WAIT_SLICE_MS], 1]);
  });
  hub.close();
});

Deno.test("a message of one client leaves the other ports of a hub alone", () =>
  quietly(async () => {
    const [hub, clients] = hubWith(COUNT);
    const heard: unknown[] = [];
    for (const port of hub.ports) port.onmessage = ({ data }) => heard.push(data);
    await until(() => hub.stats.parks > 0);
    await pause(5);
    for (const n of [0, 31, 63]) {
      const before = hub.stats.parks;
      const count = await changes(async () => {
        clients[n]!.write(n);
        await until(() => heard.at(-1) === n);
      });
      await pause(2);
      const parks = hub.stats.parks - before;
      assert(count <= FEW && parks <= 4, `${count} changes, ${parks} parks`);
    }
    hub.close();
  }));

/** Counts the atomic operations that touch the records of some endpoints, or their rings. */
async function touches(
  { segment }: Hub<Any>,
  isCounted: (endpoint: number) => boolean,
  run: () => Promise<unknown>,
): Promise<number> {
  const names = ["load", "store", "add", "or", "exchange", "compareExchange"] as const;
  const originals = names.map((name) => [name, Atomics[name]] as const);
  const ownerOf = (offset: number) => {
    if (offset >= 128 && offset < 128 * (1 + segment.endpointCount)) return (offset >> 7) - 1;
    const channel = segment.channels.find(({ controlOffset, controlSize }) =>
      offset >= controlOffset && offset < controlOffset + controlSize
    );
    return channel === undefined ? 0 : Math.max(channel.writer, channel.reader);
  };
  let count = 0;
  try {
    for (const [name, original] of originals) {
      const counted = (words: Int32Array, at: number, ...rest: number[]) => {
        if (isCounted(ownerOf(words.byteOffset + at * 4))) count++;
        return (original as (...given: unknown[]) => number)(words, at, ...rest);
      };
      Object.assign(Atomics, { [name]: counted });
    }
    await run();
  } finally {
    for (const [name, original] of originals) Object.assign(Atomics, { [name]: original });
  }
  return count;
}

Deno.test("[wait.rung_take] a hub looks at the rings alone whose writers rang", () =>
  quietly(async () => {
    const [hub, clients] = hubWith(COUNT);
    const heard: unknown[] = [];
    for (const port of hub.ports) port.onmessage = ({ data }) => heard.push(data);
    await until(() => hub.stats.parks > 0);
    await pause(5);
    clients[1]!.write("now all are looked at once"); // and then for a slice not again
    await until(() => heard.length === 1);
    await pause(5);
    for (const n of [0, 31, 32, 63]) {
      const isOther = (endpoint: number) => endpoint !== 0 && endpoint !== n + 1;
      const count = await touches(hub, isOther, async () => {
        clients[n]!.write(n);
        await until(() => heard.at(-1) === n);
        await pause(1);
      });
      assertEquals(count, 0, `of others, for client ${n}`);
    }
    hub.close();
  }));

Deno.test("[wait.rung_take] who rang and died before its bit is found in a slice", async () => {
  const hub = Hub.create<Any>(8, { capacity: 256, spin: 0 }); // the last client does not attach
  const clients = hub.ports.slice(0, 7).map((port) => Port.from<Any>(port.handoff()));
  const heard: unknown[] = [];
  for (const port of hub.ports) port.onmessage = ({ data }) => heard.push(data);
  await until(() => hub.stats.parks > 0);
  clients[1]!.write("no bit is left");
  await until(() => heard.length === 1);
  heard.length = 0;
  const { or, add } = Atomics;
  try {
    Object.assign(Atomics, { or: () => 0, add: () => 0 });
    clients[3]!.write("unheard of");
  } finally {
    Object.assign(Atomics, { or, add });
  }
  clients[5]!.write("heard");
  await until(() => heard.length === 2);
  assertEquals(heard.sort(), ["heard", "unheard of"]);
  hub.close();
});

Deno.test("[wait.rung_take] a change of a state is found by the bit of who changed", async () => {
  const [hub, clients] = hubWith(COUNT);
  const heard: unknown[] = [];
  for (const [index, port] of hub.ports.entries()) {
    port.onmessage = ({ data }) => heard.push(data);
    port.addEventListener("close", () => heard.push(index));
  }
  await until(() => hub.stats.parks > 0);
  await pause(5);
  clients[1]!.write("now all are looked at once");
  await until(() => heard.length === 1);
  heard.length = 0;
  await pause(5);
  const counts: number[] = [];
  // Now and then the hub looks at all, by the clock; on a busy machine, during the first of these.
  for (const index of [40, 30, 20]) {
    const isOther = (endpoint: number) => endpoint !== 0 && endpoint !== index + 1;
    const count = await touches(hub, isOther, async () => {
      clients[index]!.close();
      await until(() => heard.includes(index));
    });
    counts.push(count);
  }
  assertEquals(heard, [40, 30, 20]);
  assert(counts.includes(0), `${counts}`);
  hub.close();
  await until(() => heard.length === COUNT);
});

Deno.test("a message of one client wakes no read of another port of a hub", () =>
  quietly(async () => {
    const [hub, clients] = hubWith(COUNT);
    const reads = hub.ports.map((port) => port.readAsync());
    await pause(5);
    const count = await changes(async () => {
      clients[40]!.write("one");
      assertEquals(await reads[40], "one");
      await pause(2);
    });
    assert(count <= FEW, `${count} changes`);
    for (const client of clients) client.write("all");
    assertEquals((await Promise.all(reads)).filter((value) => value === "all").length, COUNT - 1);
    hub.close();
  }));

Deno.test("room in one ring wakes the posts for that client alone", () =>
  quietly(async () => {
    const [hub, clients] = hubWith(COUNT);
    const posts = hub.ports.map((port) => {
      while (port.tryWrite(0));
      return port.postMessage("x".repeat(100));
    });
    await pause(5);
    const count = await changes(async () => {
      while (clients[40]!.tryRead() === 0);
      await posts[40];
      await pause(2);
    });
    // Each message that was read may have rung.
    assert(count <= 2 * FEW, `${count} changes`);
    for (const client of clients) while (client.tryRead() !== undefined);
    await Promise.all(posts);
    hub.close();
  }));

/**
 * Acts as a waker that was held up: it takes a newer request, and rings for what was read already.
 */
function takeLate({ segment }: Hub<Any>, channel: number, word: number): Int32Array {
  const { controlOffset, controlSize } = segment.channels[channel]!;
  const words = segment.words(controlOffset, controlSize);
  const record = segment.words(128, 128);
  assert(Atomics.exchange(words, word, 0) !== 0);
  Atomics.add(record, ENDPOINT_BELL_WORD, 1);
  agentMechanism().notify(record, ENDPOINT_BELL_WORD);
  return words;
}

/** One of the `wants` words of each ring. */
function wants({ segment }: Hub<Any>, word: number): number[] {
  return segment.channels.map(({ controlOffset, controlSize }) =>
    segment.words(controlOffset, controlSize)[word]!
  );
}

Deno.test("[wait.stay_armed] a wish for data that was taken late is stored again", async () => {
  const [hub, clients] = hubWith(3);
  const heard: unknown[] = [];
  for (const port of hub.ports) port.onmessage = ({ data }) => heard.push(data);
  await until(() => hub.stats.parks > 0);
  await pause(5);
  const words = takeLate(hub, 3, RING_READER_WANTS_WORD); // from client 1
  await until(() => Atomics.load(words, RING_READER_WANTS_WORD) !== 0);
  clients[1]!.write("heard");
  assertEquals(statsOf(clients[1]!).wakes, 1);
  await until(() => heard.length === 1);
  hub.close();
  assertEquals(wants(hub, RING_READER_WANTS_WORD), [0, 0, 0, 0, 0, 0]); // [wait.disarm]
});

Deno.test("[wait.stay_armed] a wish for room that was taken late is stored again", async () => {
  const [hub, clients] = hubWith(3);
  const posts = hub.ports.map((port) => {
    while (port.tryWrite(0));
    return port.postMessage("room");
  });
  await pause(5);
  const words = takeLate(hub, 2, RING_WRITER_WANTS_WORD); // to client 1
  await until(() => Atomics.load(words, RING_WRITER_WANTS_WORD) !== 0);
  const before = statsOf(clients[1]!).wakes;
  while (clients[1]!.tryRead() === 0);
  assertEquals(statsOf(clients[1]!).wakes, before + 1);
  await posts[1];
  for (const client of clients) while (client.tryRead() === 0);
  await Promise.all(posts);
  assertEquals(wants(hub, RING_WRITER_WANTS_WORD), [0, 0, 0, 0, 0, 0]); // [wait.disarm]
  hub.close();
});

Deno.test("[wait.bell_first] what comes after a look at its ring rings again", async () => {
  await withoutSlices(async () => {
    const [hub, clients] = hubWith(3);
    const heard: unknown[] = [];
    for (const port of hub.ports) port.onmessage = ({ data }) => heard.push(data);
    await until(() => hub.stats.parks > 0);
    await pause(5);
    const last = hub.segment.channels[5]!; // from client 2, at which the hub looks last
    const { load } = Atomics;
    Atomics.load = ((view: Int32Array, index: number) => {
      const value = load(view, index);
      if (view.byteOffset + 4 * index === last.controlOffset + layout.RING_TAIL_OFFSET) {
        Atomics.load = load;
        clients[0]!.write("behind");
      }
      return value;
    }) as typeof load;
    try {
      takeLate(hub, 3, RING_READER_WANTS_WORD);
      await until(() => heard.length === 1);
    } finally {
      Atomics.load = load;
    }
    hub.close();
  });
});

Deno.test("[wait.mechanism] a hub polls while a client it waits for cannot ring", async () => {
  const hub = Hub.create<Any>(2, { capacity: 256, spin: 0 });
  const heard: unknown[] = [];
  const [first, second] = hub.ports;
  const ringing = Port.attach<Any>(hub.memory, { endpoint: 1 });
  const silent = Port.attach<Any>(hub.memory, { endpoint: 2, mechanism: pollingMechanism() });
  first!.onmessage = ({ data }) => heard.push(data);
  await until(() => hub.stats.parks > 0);
  // While the others sleep already, and once more after a message of another client.
  for (const n of [1, 2]) {
    await sliceTimers(async ({ ms }) => {
      const reading = second!.readAsync(SOON);
      await until(() => ms.some((each) => each <= WAIT_POLL_MS));
      silent.write(n);
      assertEquals(await reading, n);
    });
    ringing.write(n);
    await until(() => heard.length === n);
  }
  await pause(10);
  const { parks } = hub.stats; // nobody waits for the silent client any more
  const from = performance.now();
  await pause(50);
  assert(hub.stats.parks - parks <= 2 + (performance.now() - from) / WAIT_SLICE_MS);
  hub.close();
});

Deno.test("[port.inbox_wake] a write that fills the inbox ends the read that waits", async () => {
  await withoutSlices(async () => {
    const [hub, [client]] = hubWith(1);
    const [port] = hub.ports;
    const reading = port!.readAsync(SOON);
    await pause(5);
    while (port!.tryWrite(0));
    client!.write("kept");
    assertCode(() => port!.write(0, { timeout: 0 }), "wait.timeout");
    assertEquals(await reading, "kept");
    hub.close();
  });
});

Deno.test("[port.inbox_wake] so it does where the bell has rung before", async () => {
  await withoutSlices(async () => {
    const [hub, [client]] = hubWith(1);
    const [port] = hub.ports;
    const reading = port!.readAsync(SOON);
    await pause(5);
    while (port!.tryWrite(0));
    // As if the client had taken the request, and rung for something else: it does not ring again.
    const { controlOffset, controlSize } = hub.segment.channels[1]!;
    const words = hub.segment.words(controlOffset, controlSize);
    assert(Atomics.exchange(words, RING_READER_WANTS_WORD, 0) !== 0);
    client!.write("kept");
    assertEquals(statsOf(client!).wakes, 0);
    assertCode(() => port!.write(0, { timeout: 0 }), "wait.timeout");
    // In this job: everything else that could end the read comes in later jobs.
    let value: unknown;
    reading.then((read) => value = read);
    for (let turn = 0; turn < 100; turn++) await undefined;
    assertEquals(value, "kept");
    hub.close();
  });
});

Deno.test("what one call has seen in the ring and left ends the read that waits", async () => {
  await withoutSlices(async () => {
    const [hub, [client]] = hubWith(1);
    const reading = hub.ports[0]!.readAsync(SOON);
    await pause(5);
    writeMany(client!, ["a".repeat(60), "b".repeat(60)]);
    assertEquals(hub.ports[0]!.tryRead(), "a".repeat(60));
    assertEquals(await reading, "b".repeat(60));
    hub.close();
  });
});
