/** What a port of calls keeps for a peer that asks for much and reads nothing. */

import { tryReadMessage, tryWriteMessage, writeMessage } from "../more/raw.ts";
import { remote, serve } from "./call.ts";
import {
  CALL,
  CANCEL,
  list,
  MORE,
  outcome,
  type Raw,
  RETURN,
  THROW,
  turns,
  withRaw,
} from "./fixture.ts";
import { codeOf } from "../testing/fixture.ts";
import { layout } from "../memory/layout.ts";
import type { Port } from "../mod.ts";
import { Line, SMALL } from "../stream/fixture.ts";
import { assert, assertEquals } from "@std/assert";

/** A method of many items, and how many it was asked for. */
function counting() {
  const seen = { asked: 0, isLeft: false };
  function* steps() {
    try {
      for (;; seen.asked++) yield seen.asked;
    } finally {
      seen.isLeft = true;
    }
  }
  return {
    seen,
    api: {
      now: steps,
      async *later() {
        for (const n of steps()) {
          await Promise.resolve();
          yield n;
        }
      },
    },
  };
}

/** Has the peer write as much credit for a call as finds room, and the port read it, often. */
async function grant(port: Port<unknown>, raw: Raw, rounds: number): Promise<void> {
  const message = { kind: CALL, tag: (1 + MORE) >>> 0, codec: layout.CODEC_VALUES };
  const payload = new Uint8Array(0);
  for (let round = 0; round < rounds; round++) {
    while (tryWriteMessage(raw.port, { ...message, payload }));
    assertEquals(port.tryRead(), undefined);
    if (round % 8 === 0) await turns();
  }
}

for (const name of ["now", "later"] as const) {
  Deno.test(`[call.next_item] ${name}: no more is asked for than fits`, async () => {
    const [port, raw] = withRaw({ capacity: 1024 });
    using _port = port;
    const { seen, api } = counting();
    serve(port, api);
    raw.send(CALL, 1, name);
    await grant(port, raw, 50);
    await turns();
    // 48 bytes each; one that is accepted, and one that was asked for to see whether it is the end.
    assert(seen.asked <= 1024 / 48 + 2, `${seen.asked} items`);
    // They come as soon as the peer reads, in order.
    const items: unknown[] = [];
    for (let turn = 0; turn < 500 && items.length < 100; turn++) {
      items.push(...raw.take().map(([kind, tag, value]) => [kind, tag, value]));
      await turns();
    }
    const wanted = Array.from(items, (_, n) => [RETURN, 1 + MORE, n]);
    assertEquals([items.length >= 100, items], [true, wanted]);
    raw.send(CALL, 1 + CANCEL);
    let last: unknown[] = [];
    for (let turn = 0; turn < 500 && last[0] !== THROW; turn++) {
      last = raw.take().at(-1) ?? last;
      await turns();
    }
    assertEquals(last.slice(0, 3), [THROW, 1, "call.cancelled"]);
    assertEquals(seen.isLeft, true);
  });
}

Deno.test("[call.next_item] over a stream, no more is asked for than its queue holds", async () => {
  const line = new Line(SMALL, { ...SMALL, calls: true, maxMessageSize: 1 << 20 });
  const [port, peer] = [line.a.port!, line.b.port!];
  const { seen, api } = counting();
  serve(port, api);
  writeMessage(peer, { kind: CALL, tag: 1, codec: layout.CODEC_VALUES, payload: list(["now"]) });
  const more = { kind: CALL, tag: (1 + MORE) >>> 0, codec: layout.CODEC_VALUES };
  for (let round = 0; round < 100; round++) {
    while (tryWriteMessage(peer, { ...more, payload: new Uint8Array(0) }));
    await line.settle();
  }
  // What the peer's window and the queue hold, of 256 bytes each, and the same two.
  assert(seen.asked <= 512 / 48 + 2, `${seen.asked} items`);
  let count = 0;
  for (let turn = 0; turn < 500 && count < 100; turn++) {
    while (tryReadMessage(peer) !== undefined) count++;
    await line.settle();
  }
  assert(count >= 100, `${count} items`);
  peer.close();
  port.close();
});

Deno.test("[call.granted] credit counts when it is in the ring, and not before", async () => {
  const [port, raw] = withRaw({ capacity: 256 });
  using _port = port;
  const rows = remote<{ rows(): Generator<number> }>(port).iterate.rows();
  const first = rows.next();
  assertEquals(raw.take(), [[CALL, 1, "rows"]]);
  while (port.tryWrite(0));
  let sent = 0;
  const send = (most: number) => {
    for (; sent < most; sent++) raw.send(RETURN, 1 + MORE, sent);
  };
  send(4);
  assertEquals((await first).value, 0);
  const next = async () => (await rows.next()).value;
  for (let n = 1; n < 16; n++) {
    if (n === sent) send(Math.min(16, sent + 4));
    assertEquals(await next(), n);
  }
  // The credit for these has no room: who sends them all the same was not allowed to.
  send(17);
  assertEquals(await codeOf(rows.next()), "call.items");
});

Deno.test("credit that comes while a message is written in part is kept as a number", async () => {
  const [port, raw] = withRaw({ capacity: 1 << 16 });
  using _port = port;
  const { api, seen } = counting();
  serve(port, api);
  raw.send(CALL, 1, "now");
  assertEquals(port.tryRead(), undefined);
  const large = port.writeAsync(new Uint8Array(1 << 18));
  large.catch(() => {});
  await turns();
  const before = heap();
  await grant(port, raw, 100);
  // 400,000 of them, each of which was kept as a function of more than 100 bytes.
  const grown = heap() - before;
  assert(grown < 16 << 20, `${grown} bytes`);
  assert(seen.asked < 20, `${seen.asked} items`);
});

/** Bytes that are in use, or were a moment ago; the least of a few looks. */
function heap(): number {
  let least = Infinity;
  for (let look = 0; look < 10; look++) {
    for (let junk = 0; junk < 200; junk++) new Array(4000).fill(junk); // so that it is collected
    least = Math.min(least, Deno.memoryUsage().heapUsed);
  }
  return least;
}

Deno.test("messages of no row are no reason to keep more than the inbox holds", async () => {
  const [port, raw] = withRaw({ capacity: 4096, inboxCount: 8 });
  using _port = port;
  serve(port, {});
  while (port.tryWrite(0));
  const payload = new Uint8Array(0);
  const stray = (kind: number, tag: number) =>
    tryWriteMessage(raw.port, { kind, tag: tag >>> 0, codec: layout.CODEC_VALUES, payload });
  for (let round = 0; round < 50; round++) {
    while (stray(CALL, CANCEL) && stray(CALL, 1 + CANCEL + MORE) && stray(RETURN, 7));
    assertEquals(outcome(() => port.write("x".repeat(80), { timeout: 1 })), "wait.timeout");
  }
  await turns();
  let reports = 0;
  while (typeof outcome(() => port.tryRead()) === "string") reports++;
  assert(reports <= 8 + 4096 / 16, `${reports} reports`);
});
