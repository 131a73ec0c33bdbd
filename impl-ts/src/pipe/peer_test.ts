import { assertEquals, assertRejects, assertThrows } from "@std/assert";
import { assertCode, codeOf, watched } from "../testing/fixture.ts";
import { Port } from "../port/port.ts";
import { closeEndpoint, failEndpoint } from "../wait/state.ts";

const WAIT = { timeout: 5000 };

Deno.test("waitForPeer ends when the peer attaches, and says no at the timeout", async () => {
  let sleeps = 0;
  const mechanism = watched(() => {
    if (++sleeps === 3) Port.attach(port.memory);
  });
  const port = Port.create({ spin: 0, mechanism });
  assertEquals(port.waitForPeer({ timeout: 0 }), false);
  assertEquals(await port.waitForPeerAsync({ timeout: 0 }), false);
  assertEquals(await port.waitForPeerAsync({ timeout: 2 }), false);
  assertEquals(sleeps, 0);
  assertEquals([port.waitForPeer(WAIT), sleeps], [true, 3]);
  assertEquals([port.waitForPeer(WAIT), sleeps], [true, 3]);
  assertEquals(await port.waitForPeerAsync(WAIT), true);
});

Deno.test("waitForPeerAsync ends when the peer attaches, or the signal aborts", async () => {
  const port = Port.create();
  const waiting = port.waitForPeerAsync(WAIT);
  Port.attach(port.memory);
  assertEquals(await waiting, true);
  const alone = Port.create();
  const abort = new AbortController();
  const aborted = alone.waitForPeerAsync({ signal: abort.signal });
  setTimeout(() => abort.abort(new Error("enough")), 2);
  await assertRejects(() => aborted, Error, "enough");
  assertThrows(() => alone.waitForPeer({ signal: abort.signal }), Error, "enough");
  assertThrows(() => alone.waitForPeer({ timeout: -1 }), RangeError);
});

Deno.test("a peer that has come and gone counts; the next call tells what became of it", () => {
  const left = Port.create<number>();
  const peer = Port.attach<number>(left.memory);
  peer.write(1);
  peer.close();
  assertEquals([left.waitForPeer(WAIT), left.read()], [true, 1]);
  assertCode(() => left.read(), "peer.closed");
  const port = Port.create({ spin: 0, mechanism: watched(() => failEndpoint(port.segment, 1)) });
  assertEquals(port.waitForPeer(WAIT), true);
  assertCode(() => port.read(), "peer.failed");
});

Deno.test("waitForPeer ends with the own end, and publishes before it waits", async () => {
  const port = Port.create({ codec: "bytes", spin: 0, mechanism: watched(() => act()) });
  let act = () => {};
  port.claim(4);
  port.writer.finish();
  assertEquals(port.waitForPeer({ timeout: 1 }), false);
  act = () => closeEndpoint(port.segment, 0);
  assertCode(() => port.waitForPeer(WAIT), "pipe.closed");
  assertEquals((Port.attach(port.memory).read() as Uint8Array).length, 4);
  const other = Port.create();
  const waiting = codeOf(other.waitForPeerAsync(WAIT));
  other.close();
  assertEquals(await waiting, "pipe.closed");
  assertCode(() => other.waitForPeer(), "pipe.closed");
});

Deno.test("waitForPeer does not block where it must not", async () => {
  const port = Port.create({ mechanism: watched(() => {}, false) });
  assertCode(() => port.waitForPeer(WAIT), "wait.forbidden");
  assertEquals(port.waitForPeer({ timeout: 0 }), false);
  assertEquals(await port.waitForPeerAsync({ timeout: 2 }), false);
});
