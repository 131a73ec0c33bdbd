import { assertEquals, assertRejects, assertStrictEquals, assertThrows } from "@std/assert";
import { assertCode, codeOf, pattern, Scribe } from "../testing/fixture.ts";
import { Hub, type HubCreateOptions, hubGeometry } from "./hub.ts";
import { Port } from "../port/port.ts";
import { Segment } from "../memory/segment.ts";
import { failEndpoint } from "../wait/state.ts";
import { pollingMechanism } from "../wait/mechanism.ts";
import { peerIndexOf, waitForPeer, waitForPeerAsync } from "./peer.ts";
import { claim, finish } from "./lend.ts";

// deno-lint-ignore no-explicit-any
type Any = any;

/** A hub and all its clients in one thread. */
function hubWith(count: number, options: HubCreateOptions<Any, Any> = {}): [Hub<Any>, Port<Any>[]] {
  const hub = Hub.create<Any>(count, { capacity: 1024, ...options });
  const { segment } = hub;
  const attach = ({ link: { peer } }: Port) =>
    Port.attach<Any>(segment.memory, { ...options as object, endpoint: peer });
  return [hub, hub.ports.map(attach)];
}

Deno.test("a hub has an endpoint and two rings for each client; with one it is a port", () => {
  const geometry = hubGeometry(2, { capacity: [256, 512], start: 64 });
  assertEquals(geometry, {
    endpoints: 3,
    channels: [
      { writer: 0, reader: 1, capacity: 256, start: 64 },
      { writer: 1, reader: 0, capacity: 512, start: 64 },
      { writer: 0, reader: 2, capacity: 256, start: 64 },
      { writer: 2, reader: 0, capacity: 512, start: 64 },
    ],
  });
  for (const count of [0, 256, 1.5, NaN]) assertThrows(() => Hub.create(count), RangeError);
  assertEquals(Hub.create(255, { capacity: 256 }).ports.length, 255);
  const hub = Hub.create<string>(1);
  const port = Port.attach<string>(hub.memory);
  port.write("from b");
  assertEquals(hub.ports[0]!.read(), "from b");
});

Deno.test("every client has its own two ways, and all of them share the hub's endpoint", () => {
  const [hub, clients] = hubWith(3);
  for (const [n, client] of clients.entries()) {
    client.write(`from ${n}`);
    hub.ports[n]!.write(`to ${n}`);
  }
  for (const [n, client] of clients.entries()) {
    assertEquals([client.read(), hub.ports[n]!.read()], [`to ${n}`, `from ${n}`]);
    assertEquals([peerIndexOf(hub.ports[n]!), peerIndexOf(client)], [n + 1, 0]);
  }
  assertCode(() => Port.attach(hub.memory, { endpoint: 2 }), "segment.endpoint");
  assertCode(() => Port.attach(hub.memory, { endpoint: 4 }), "segment.endpoint");
  assertCode(() => Hub.attach(hub.memory), "segment.endpoint");
  assertThrows(() => Port.attach(hub.memory, { endpoint: 1, side: "b" }), TypeError);
});

Deno.test("a hub attaches to what another has made, or creates on blank memory", async () => {
  const geometry = hubGeometry(2);
  const made = Segment.allocate(geometry).memory;
  assertEquals(Hub.attach(made).ports.length, 2);
  assertCode(() => Hub.attach(made), "segment.endpoint");
  assertEquals((await Hub.attachAsync(Segment.allocate(geometry).memory)).ports.length, 2);
  const blank = new SharedArrayBuffer(Segment.allocate(geometry).size);
  const formatted = Segment.attachAsync(blank, { timeout: 5000 });
  const hub = Hub.create<number>(2, { memory: blank });
  await formatted;
  Port.attach(blank, { endpoint: 2 }).write(5);
  assertEquals(hub.ports[1]!.read(), 5);
  assertCode(() => Hub.create(3, { memory: made, timeout: 0 }), "segment.size");
  assertCode(() => Hub.create(1, { memory: made }), "segment.geometry");
});

Deno.test("a hub needs its rings, and no side", () => {
  const channels = hubGeometry(2).channels.slice(0, 3);
  const segment = Segment.allocate({ endpoints: 3, channels });
  assertCode(() => Hub.attach(segment.memory), "segment.channel");
  const lonely = Segment.allocate({ endpoints: 1, channels: [] });
  assertCode(() => Hub.attach(lonely.memory), "segment.channel");
  assertEquals(Atomics.load(segment.words(128, 128), 1), 0); // the endpoint is still vacant
  for (const side of ["a", "b"]) {
    assertThrows(() => Hub.create(1, { side } as unknown as HubCreateOptions), TypeError);
  }
  assertThrows(() => Hub.create(1, { inboxCount: -1 }), RangeError);
});

Deno.test("closing one port frees its client, which first reads what was published", async () => {
  const [hub, clients] = hubWith(3);
  const waiting = codeOf(clients[1]!.readAsync());
  hub.ports[1]!.close();
  assertEquals(await waiting, "pipe.closed");
  hub.ports[0]!.write("last");
  clients[0]!.write("dropped");
  hub.ports[0]!.close();
  hub.ports[0]!.close(); // a second close does nothing
  assertEquals(clients[0]!.read(), "last");
  assertCode(() => clients[0]!.read(), "pipe.closed");
  assertCode(() => clients[0]!.write(1), "pipe.closed");
  assertCode(() => hub.ports[0]!.read(), "pipe.closed");
  assertCode(() => hub.ports[0]!.tryWrite(1), "pipe.closed");
  clients[2]!.write("still here");
  assertStrictEquals(hub.select({ timeout: 0 }), hub.ports[2]);
  assertEquals(hub.ports[2]!.read(), "still here");
  hub.ports[2]!.write("and back");
  assertEquals(clients[2]!.read(), "and back");
});

Deno.test("a client sees the end of a port that was ended and closed", () => {
  const [hub, clients] = hubWith(2);
  hub.ports[0]!.write(1);
  hub.ports[0]!.end();
  hub.ports[0]!.close();
  assertEquals([clients[0]!.read(), clients[0]!.read(), clients[0]!.ended], [1, undefined, true]);
  assertCode(() => clients[0]!.write(1), "pipe.closed");
});

Deno.test("what is published just before an end is closed from elsewhere is read", () => {
  const [hub, clients] = hubWith(2);
  const tail = hub.segment.channels[0]!.controlOffset / 4;
  const { load } = Atomics;
  try {
    Atomics.load = ((view: Int32Array, index: number) => {
      const value = load(view, index);
      if (index === tail) {
        Atomics.load = load;
        hub.ports[0]!.write("late"); // after the look at the tail, before the look at the state
        hub.ports[0]!.close();
      }
      return value;
    }) as typeof load;
    assertEquals(clients[0]!.tryRead(), "late");
  } finally {
    Atomics.load = load;
  }
  assertCode(() => clients[0]!.tryRead(), "pipe.closed");
});

Deno.test("a port that is closed before its client has come keeps the client away", () => {
  const hub = Hub.create(2);
  hub.ports[0]!.close();
  assertCode(() => Port.attach(hub.memory, { endpoint: 1 }), "segment.endpoint");
  const other = Port.attach(hub.memory, { endpoint: 2 });
  other.write(1);
  assertEquals(hub.ports[1]!.read(), 1);
});

Deno.test("closing the hub ends all ports and all that waits for them", async () => {
  const [hub, clients] = hubWith(2);
  hub.ports[1]!.write("last");
  const pending = [
    ...clients.map((client) => codeOf(client.readAsync().then(() => client.readAsync()))),
    ...hub.ports.map((port) => codeOf(port.readAsync())),
  ];
  const selecting = hub.selectAsync();
  hub.close();
  hub.close();
  const codes = await Promise.all(pending);
  assertEquals(codes, ["peer.closed", "peer.closed", "pipe.closed", "pipe.closed"]);
  assertEquals(await selecting, undefined);
  for (const port of hub.ports) assertCode(() => port.write(1), "pipe.closed");
  assertEquals([hub.select(), await hub.selectAsync()], [undefined, undefined]);
});

Deno.test("a client that closes, fails or breaks its ring leaves the others as they are", () => {
  const [hub, clients] = hubWith(4);
  clients[0]!.write("before");
  clients[0]!.close();
  failEndpoint(hub.segment, 2, "peer.terminated");
  const scribe = new Scribe(hub.segment, 5); // from client 2
  scribe.frame({ kind: 9 }).publish();
  clients[3]!.write("well");
  const seen: unknown[] = [];
  for (let port; (port = hub.select({ timeout: 0 })) !== undefined;) {
    const n = peerIndexOf(port) - 1;
    try {
      seen.push([n, port.tryRead()]);
    } catch (error) {
      seen.push([n, (error as { code: string }).code]);
      port.close();
    }
  }
  assertEquals(seen, [
    [0, "before"],
    [1, "peer.failed"],
    [2, "frame.kind"],
    [3, "well"],
    [0, "peer.closed"],
  ]);
  hub.ports[3]!.write("on");
  assertEquals(clients[3]!.read(), "on");
  assertCode(() => clients[2]!.read(), "pipe.failed");
});

Deno.test("before one port waits, what the others hold is published and given back", () => {
  const [hub, clients] = hubWith(2, { codec: "bytes", spin: 0 });
  const place = claim(hub.ports[0]!, 4);
  place.payload.fill(1);
  finish(hub.ports[0]!);
  clients[0]!.write(pattern(4));
  clients[0]!.write(pattern(4));
  hub.ports[0]!.read();
  assertEquals(clients[0]!.tryRead(), undefined);
  assertEquals(hub.ports[1]!.read({ timeout: 1 }), undefined);
  assertEquals(clients[0]!.tryRead(), new Uint8Array(4).fill(1));
  const head = () =>
    Atomics.load(hub.segment.words(hub.segment.channels[1]!.controlOffset, 512), 32);
  assertEquals(head(), 32);
});

Deno.test("before select waits or returns, what all ports hold is published", async () => {
  const [hub, clients] = hubWith(2, { codec: "bytes", spin: 0 });
  const place = () => {
    claim(hub.ports[1]!, 4);
    finish(hub.ports[1]!);
    assertEquals(clients[1]!.tryRead(), undefined);
  };
  place();
  assertEquals(hub.select({ timeout: 0 }), undefined);
  assertEquals(clients[1]!.tryRead()?.length, 4);
  place();
  assertEquals(await hub.selectAsync({ timeout: 1 }), undefined);
  assertEquals(clients[1]!.tryRead()?.length, 4);
});

Deno.test("a hub's ports wait for their own client to come", async () => {
  const hub = Hub.create(2);
  assertEquals(waitForPeer(hub.ports[1]!, { timeout: 1 }), false);
  const waiting = waitForPeerAsync(hub.ports[1]!, { timeout: 5000 });
  Port.attach(hub.memory, { endpoint: 2 });
  assertEquals(await waiting, true);
  assertEquals(await waitForPeerAsync(hub.ports[0]!, { timeout: 1 }), false);
  const reason = new Error("enough");
  const signal = AbortSignal.abort(reason);
  await assertRejects(() => waitForPeerAsync(hub.ports[0]!, { signal }), Error, "enough");
  assertThrows(() => waitForPeer(hub.ports[0]!, { signal }), Error, "enough");
});

Deno.test("a hub of endpoints that cannot ring each other polls", async () => {
  const [hub, clients] = hubWith(2, { mechanism: pollingMechanism() });
  const found = hub.selectAsync({ timeout: 5000 });
  clients[1]!.write(1);
  assertStrictEquals(await found, hub.ports[1]);
  assertEquals(hub.ports[1]!.read(), 1);
  assertEquals(hub.select({ timeout: 6 }), undefined);
});

Deno.test("the ports of a hub are ports: handed over, posted to, listened to", async () => {
  const hub = Hub.create<string>(2);
  const clients = hub.ports.map((port) => Port.from<string>(port.handoff()));
  const heard: string[] = [];
  for (const [n, port] of hub.ports.entries()) {
    port.onmessage = ({ data }) => port.postMessage(`${data} ${n}`);
  }
  for (const client of clients) client.postMessage("there and back");
  for (const client of clients) heard.push(await client.readAsync() ?? "");
  assertEquals(heard, ["there and back 0", "there and back 1"]);
  const closed = clients.map((client) => client.closed);
  const own = hub.ports.map((port) => port.closed);
  hub.ports[0]!.close();
  assertEquals((await closed[0])?.code, "pipe.closed");
  // A port that is listened to keeps the process alive until it is closed.
  clients[1]!.onmessage = ({ data }) => heard.push(data);
  hub.ports[1]!.postMessage("the last");
  hub.close();
  assertEquals((await closed[1])?.code, "peer.closed");
  assertEquals(heard.slice(2), ["the last"]);
  assertEquals(await Promise.all(own), [undefined, undefined]);
});

Deno.test("selectAsync goes on when a port is closed, and ends with the last", async () => {
  const [hub, clients] = hubWith(3);
  const [first, second, third] = hub.ports;
  const selecting = hub.selectAsync({ timeout: 5000 });
  first!.close();
  await new Promise((resolve) => setTimeout(resolve, 1));
  clients[1]!.write(1);
  assertStrictEquals(await selecting, second);
  assertEquals(second!.read(), 1);
  const last = hub.selectAsync();
  second!.close();
  third!.close();
  assertEquals(await last, undefined);
});

Deno.test("before one port blocks, what was posted on the others is written", () => {
  const [hub, clients] = hubWith(2);
  const [first, second] = hub.ports;
  const calls = [
    () => second!.read({ timeout: 1 }),
    () => hub.select({ timeout: 1 }),
    () => {
      while (second!.tryWrite(0));
      assertCode(() => second!.write(0, { timeout: 1 }), "wait.timeout");
    },
  ];
  for (const [index, call] of calls.entries()) {
    first!.postMessage(index);
    call();
    assertEquals(clients[0]!.tryRead(), index);
  }
  hub.close();
});
