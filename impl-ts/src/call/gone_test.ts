/** What a port that serves calls, and whose messages nobody reads, learns of its peer's end. */

import { assertEquals } from "@std/assert";
import { remote, serve } from "./call.ts";
import { codeOf, printedApart } from "../testing/fixture.ts";
import type { Port } from "../port/port.ts";
import { held, ports, until } from "../port/fixture.ts";
import { openStream } from "../stream/stream.ts";
import { failEndpoint } from "../wait/state.ts";

type Pair = [here: Port, peer: Port];

/** Both ends of a port over two byte streams. */
async function overStreams(): Promise<Pair> {
  const [there, back] = [1, 2].map(() => new TransformStream<Uint8Array, Uint8Array>());
  return await Promise.all([
    openStream({ readable: back!.readable, writable: there!.writable }),
    openStream({ readable: there!.readable, writable: back!.writable }),
  ]) as unknown as Pair;
}

/** Both ends of a port over a TCP connection. */
async function overTcp(): Promise<Pair> {
  using listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const connecting = Deno.connect({ port: (listener.addr as Deno.NetAddr).port });
  const [there, here] = await Promise.all([listener.accept(), connecting]);
  return await Promise.all([openStream(here), openStream(there)]) as unknown as Pair;
}

const places: Record<string, () => Pair | Promise<Pair>> = {
  "ring": () => ports(),
  // What comes after the first message stays in the ring, calls among it.
  "full inbox": () => ports({ inboxCount: 1 }),
  "stream": overStreams,
  "TCP": overTcp,
};

const ends: Record<string, (peer: Port) => void> = {
  "peer.closed": (peer) => peer.close(),
  "closed": (peer) => peer.end(),
  "peer.failed": (peer) => void failEndpoint(peer.segment, peer.segment.endpointCount - 1),
};

Deno.test("a port that only serves is told of its peer's end beside unread messages", async () => {
  for (const [place, make] of Object.entries(places)) {
    for (const [code, end] of Object.entries(ends)) {
      const isStream = place === "stream" || place === "TCP";
      if (isStream && code === "peer.failed") continue; // a link has its own states
      if (place === "full inbox" && code === "closed") continue; // the end is after what is unread
      const [here, peer] = await make();
      let told: unknown = "nothing";
      here.onclose = ({ error }) => told = error?.code ?? "closed";
      serve(here, { ping: () => "pong" });
      await held(peer.writeAsync("unread"));
      if (place !== "full inbox") {
        assertEquals(await held(remote<{ ping(): string }>(peer).ping()), "pong", place);
      }
      await held(peer.writeAsync("unread too"));
      end(peer);
      await until(() => told !== "nothing");
      assertEquals([told, (await held(here.closed))?.code ?? "closed"], [code, code], place);
      // Nothing was lost for who reads now.
      const read = [await held(here.readAsync()), await held(here.readAsync())];
      assertEquals(read, ["unread", "unread too"], place);
      assertEquals(await codeOf(here.readAsync()), code === "closed" ? "no error" : code, place);
      here.close();
      peer.close();
    }
  }
});

Deno.test("after the end of a port that serves, a listener gets its messages", async () => {
  for (const make of Object.values(places)) {
    const [here, peer] = await make();
    let closeCount = 0;
    here.onclose = () => closeCount++;
    serve(here, {});
    for (const text of ["one", "two", "three"]) await held(peer.writeAsync(text));
    peer.close();
    await until(() => closeCount === 1);
    const seen: unknown[] = [];
    here.onmessage = ({ data }) => seen.push(data);
    await until(() => seen.length === 3);
    assertEquals([seen, closeCount], [["one", "two", "three"], 1]);
    here.close();
    here.onmessage = null;
  }
});

Deno.test("a port that calls is told of its peer's end beside unread messages", async () => {
  const [here, peer] = ports();
  serve(peer, { ping: () => "pong" });
  const far = remote<{ ping(): string }>(here);
  assertEquals(await held(far.ping()), "pong");
  peer.write("unread");
  const call = far.ping();
  assertEquals(await held(call), "pong");
  peer.close();
  assertEquals((await held(here.closed))?.code, "peer.closed");
  assertEquals(here.tryRead(), "unread");
  here.close();
});

Deno.test("a port that only serves is given back after its peer's end", async () => {
  assertEquals(await printedApart("call/release_fixture.ts", { flags: ["--expose-gc"] }), "0\n");
});
