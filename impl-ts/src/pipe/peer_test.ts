import { assertEquals, assertRejects, assertThrows } from "@std/assert";
import { assertCode, codeOf, watched } from "../testing/fixture.ts";
import { Port } from "../port/port.ts";
import { closeEndpoint, failEndpoint } from "../wait/state.ts";
import { waitForPeer, waitForPeerAsync } from "../more/peer.ts";
import { claim, finish } from "../more/lend.ts";

const WAIT = { timeout: 5000 };

Deno.test("waitForPeer ends when the peer attaches, and says no at the timeout", async () => {
  let sleeps = 0;
  const mechanism = watched(() => {
    if (++sleeps === 3) Port.attach(port.memory);
  });
  const port = Port.create({ spin: 0, mechanism });
  assertEquals(waitForPeer(port, { timeout: 0 }), false);
  assertEquals(await waitForPeerAsync(port, { timeout: 0 }), false);
  assertEquals(await waitForPeerAsync(port, { timeout: 2 }), false);
  assertEquals(sleeps, 0);
  assertEquals([waitForPeer(port, WAIT), sleeps], [true, 3]);
  assertEquals([waitForPeer(port, WAIT), sleeps], [true, 3]);
  assertEquals(await waitForPeerAsync(port, WAIT), true);
});

Deno.test("waitForPeerAsync ends when the peer attaches, or the signal aborts", async () => {
  const port = Port.create();
  const waiting = waitForPeerAsync(port, WAIT);
  Port.attach(port.memory);
  assertEquals(await waiting, true);
  const alone = Port.create();
  const abort = new AbortController();
  const aborted = waitForPeerAsync(alone, { signal: abort.signal });
  setTimeout(() => abort.abort(new Error("enough")), 2);
  await assertRejects(() => aborted, Error, "enough");
  assertThrows(() => waitForPeer(alone, { signal: abort.signal }), Error, "enough");
  assertThrows(() => waitForPeer(alone, { timeout: -1 }), RangeError);
});

Deno.test("a peer that has come and gone counts; the next call tells what became of it", () => {
  const left = Port.create<number>();
  const peer = Port.attach<number>(left.memory);
  peer.write(1);
  peer.close();
  assertEquals([waitForPeer(left, WAIT), left.read()], [true, 1]);
  assertCode(() => left.read(), "peer.closed");
  const port = Port.create({ spin: 0, mechanism: watched(() => failEndpoint(port.segment, 1)) });
  assertEquals(waitForPeer(port, WAIT), true);
  assertCode(() => port.read(), "peer.failed");
});

Deno.test("waitForPeer ends with the own end, and publishes before it waits", async () => {
  const port = Port.create({ codec: "bytes", spin: 0, mechanism: watched(() => act()) });
  let act = () => {};
  claim(port, 4);
  finish(port);
  assertEquals(waitForPeer(port, { timeout: 1 }), false);
  act = () => closeEndpoint(port.segment, 0);
  assertCode(() => waitForPeer(port, WAIT), "pipe.closed");
  assertEquals((Port.attach(port.memory).read() as Uint8Array).length, 4);
  const other = Port.create();
  const waiting = codeOf(waitForPeerAsync(other, WAIT));
  other.close();
  assertEquals(await waiting, "pipe.closed");
  assertCode(() => waitForPeer(other), "pipe.closed");
});

Deno.test("waitForPeer does not block where it must not", async () => {
  const port = Port.create({ mechanism: watched(() => {}, false) });
  assertCode(() => waitForPeer(port, WAIT), "wait.forbidden");
  assertEquals(waitForPeer(port, { timeout: 0 }), false);
  assertEquals(await waitForPeerAsync(port, { timeout: 2 }), false);
});
