import { assert, assertEquals } from "@std/assert";
import { unsliced } from "../testing/fixture.ts";
import { Hub } from "./hub.ts";
import { echoAll, echoAllAsync, echoOne, messages, WAIT } from "./hub_fixture.ts";
import type { HubTask } from "./hub_worker_fixture.ts";
import { Port } from "../port/port.ts";
import { waitForPeerAsync } from "./peer.ts";
import { Segment } from "../memory/segment.ts";

const COUNT = 150;

/** Starts a thread, which posts one result and ends. Resolves with that, or with an error. */
function start(task: HubTask): Promise<unknown> {
  const url = new URL("./hub_worker_fixture.ts", import.meta.url);
  const worker = new Worker(url, { type: "module" });
  return new Promise<unknown>((resolve, reject) => {
    worker.onmessage = ({ data }) => resolve(data);
    worker.onerror = ({ message }) => reject(new Error(message));
    worker.postMessage(task);
  }).finally(() => worker.terminate());
}

for (const spin of [50, 0]) {
  for (const capacity of [256, 4096]) {
    for (const echo of [echoAll, echoAllAsync]) {
      const name = `${echo.name}, rings of ${capacity}, spin ${spin}`;
      Deno.test(`a hub serves clients in two workers and loses none: ${name}`, async () => {
        using hub = Hub.create(2, { capacity, spin });
        const memory = hub.memory as SharedArrayBuffer;
        const said = hub.ports.map(({ link: { peer } }) =>
          start({ memory, endpoint: peer, count: COUNT })
        );
        for (const port of hub.ports) assertEquals(await waitForPeerAsync(port, WAIT), true);
        assertEquals(await echo(hub), 2 * COUNT);
        assertEquals(await Promise.all(said), ["0 wrong", "0 wrong"]);
      });
    }
  }
}

Deno.test("select loses no wake: it is served where no slice ends a sleep", async () => {
  let sleeps = 0;
  const mechanism = unsliced(() => sleeps++);
  using hub = Hub.create(3, { capacity: 1024, spin: 0, mechanism });
  const memory = hub.memory as SharedArrayBuffer;
  // The rings of the quiet one never wake the hub on behalf of the others.
  const [quiet, ...busy] = hub.ports;
  using _client = Port.from(quiet!.handoff());
  const said = busy.map(({ link: { peer } }) =>
    start({ memory, endpoint: peer, count: 10 * COUNT })
  );
  for (const port of busy) assertEquals(await waitForPeerAsync(port, WAIT), true);
  let count = 0;
  for (let left = busy.length; left > 0;) {
    const port = hub.select(WAIT);
    assert(port !== undefined);
    const echoed = echoOne(port);
    count += echoed;
    if (echoed === 0) left--;
  }
  assertEquals(count, 20 * COUNT);
  assertEquals(await Promise.all(said), ["0 wrong", "0 wrong"]);
  assert(sleeps > 0);
});

Deno.test("a hub in a worker serves two clients of one event loop", async () => {
  const made = Hub.create(2, { capacity: 1024 });
  const { size } = made.segment;
  made.close();
  const memory = new SharedArrayBuffer(size);
  const clients = [1, 2].map(async (endpoint) => {
    await Segment.attachAsync(memory, WAIT);
    return Port.attach(memory, { endpoint });
  });
  const said = start({ memory, endpoint: 0, count: 0 });
  await Promise.all(clients.map(async (attaching, n) => {
    using client = await attaching;
    for (const message of messages(n, COUNT)) {
      await client.writeAsync(message, WAIT);
      assertEquals(await client.readAsync(WAIT), message);
    }
    client.end();
    assertEquals([await client.readAsync(WAIT), client.ended], [undefined, true]);
  }));
  assertEquals(await said, 2 * COUNT);
});
