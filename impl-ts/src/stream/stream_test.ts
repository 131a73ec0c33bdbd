import { assert, assertEquals, assertRejects, assertThrows } from "@std/assert";
import { pattern, random } from "../testing/fixture.ts";
import { ForbiddenError, PeerClosedError, PeerFailedError, TimeoutError } from "../error.ts";
import { layout } from "../memory/layout.ts";
import { remote, serve } from "../call/call.ts";
import type { StreamPort } from "../port/over_stream.ts";
import { tryPeek } from "../more/lend.ts";
import { tryReadMany } from "../more/many.ts";
import { tryReadMessage } from "../more/raw.ts";
import { selectAsync } from "../more/select.ts";
import { type ByteStreams, openStream } from "./stream.ts";
import type { ByteConnection, ByteFiles, ByteTransport, OpenStreamOptions } from "./stream.ts";
import { controlFrame } from "./outlet.ts";
import { writePreface } from "./preface.ts";

/** Two ends of a transport in memory, which hands bytes on in pieces of `cut()`. */
function duplex(cut: () => number = () => Infinity): [ByteStreams, ByteStreams] {
  const way = () =>
    new TransformStream<Uint8Array, Uint8Array>({
      transform(bytes, controller) {
        for (let at = 0; at < bytes.length;) {
          const piece = bytes.slice(at, at + cut());
          at += piece.length;
          controller.enqueue(piece);
        }
      },
    });
  const [there, back] = [way(), way()];
  return [
    { readable: back.readable, writable: there.writable },
    { readable: there.readable, writable: back.writable },
  ];
}

async function tcp(): Promise<[Deno.Conn, Deno.Conn]> {
  using listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const { port } = listener.addr as Deno.NetAddr;
  return await Promise.all([Deno.connect({ port }), listener.accept()]);
}

async function unix(): Promise<[Deno.Conn, Deno.Conn]> {
  const path = await Deno.makeTempDir({ prefix: "millrace-stream-" });
  try {
    using listener = Deno.listen({ transport: "unix", path: `${path}/socket` });
    return await Promise.all([
      Deno.connect({ transport: "unix", path: `${path}/socket` }),
      listener.accept(),
    ]);
  } finally {
    await Deno.remove(path, { recursive: true });
  }
}

/** Two named pipes, and both ends of each of them. */
async function fifos(): Promise<[ByteFiles, ByteFiles]> {
  const folder = await Deno.makeTempDir({ prefix: "millrace-stream-" });
  try {
    const [there, back] = [`${folder}/there`, `${folder}/back`];
    await new Deno.Command("mkfifo", { args: [there, back] }).output();
    const writes = { write: true };
    // Opening one end waits until the other end is opened.
    const [a, b, c, d] = await Promise.all([
      Deno.open(back),
      Deno.open(there, writes),
      Deno.open(there),
      Deno.open(back, writes),
    ]);
    return [{ reader: a, writer: b }, { reader: c, writer: d }];
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}

async function webSocket(): Promise<[WebSocket, WebSocket]> {
  const accepted = Promise.withResolvers<WebSocket>();
  const server = Deno.serve({ hostname: "127.0.0.1", port: 0, onListen() {} }, (request) => {
    const { socket, response } = Deno.upgradeWebSocket(request);
    accepted.resolve(socket);
    socket.addEventListener("close", () => void server.shutdown());
    return response;
  });
  const client = new WebSocket(`ws://127.0.0.1:${server.addr.port}`);
  return [client, await accepted.promise];
}

// deno-lint-ignore no-explicit-any -- Each test knows the types of its messages.
type AnyPort = StreamPort<any>;

async function open(
  [here, there]: readonly [ByteTransport, ByteTransport],
  // deno-lint-ignore no-explicit-any -- As above.
  options: OpenStreamOptions<any, any> = {},
): Promise<[AnyPort, AnyPort]> {
  return await Promise.all([openStream(here, options), openStream(there, options)]);
}

const transports: Record<string, () => Promise<[ByteTransport, ByteTransport]>> = {
  "two Web Streams": () => Promise.resolve(duplex()),
  "a TCP connection": tcp,
  "a Unix socket": unix,
  "two FIFOs": fifos,
  "a WebSocket": webSocket,
};

for (const [name, connect] of Object.entries(transports)) {
  Deno.test(`openStream: events, verbs and streams, over ${name}`, async () => {
    const [a, b] = await open(await connect(), { timeout: 5000 });
    b.onmessage = ({ data }) =>
      void b.postMessage(data instanceof Uint8Array ? data : { echo: data });
    a.postMessage("one");
    await a.writeAsync([2]);
    assertEquals([await a.readAsync(), await a.readAsync()], [{ echo: "one" }, { echo: [2] }]);
    const large = pattern(700_000);
    await a.writeAsync(large);
    assertEquals(await a.readAsync({ timeout: 5000 }), large);
    a.end();
    a.close();
    assertEquals(await b.closed, undefined);
    b.close();
  });

  Deno.test(`openStream: what was written before a close arrives, over ${name}`, async () => {
    const [a, b] = await open(await connect(), { timeout: 5000 });
    // The other side writes too, and those bytes are never read. If the transport was given up now,
    // it would answer with a reset, and lose the bytes on their way.
    for (let n = 0; n < 50; n++) b.postMessage(pattern(1000)).catch(() => {});
    for (let n = 0; n < 200; n++) await a.writeAsync({ n });
    a.close();
    await new Promise((resolve) => setTimeout(resolve, 30));
    for (let n = 0; n < 200; n++) assertEquals(await b.readAsync({ timeout: 2000 }), { n });
    await assertRejects(() => b.readAsync({ timeout: 2000 }), PeerClosedError);
    b.close();
  });
}

Deno.test("openStream: two floods that nobody reads meanwhile finish", async () => {
  const [a, b] = await open(await tcp(), { largest: 4096, window: 1 << 20, capacity: 4096 });
  const flood = async (port: AnyPort) => {
    for (let n = 0; n < 900; n++) await port.writeAsync(pattern(1000));
  };
  await Promise.all([flood(a), flood(b)]);
  for (const port of [a, b]) {
    for (let n = 0; n < 900; n++) assertEquals((await port.readAsync() as Uint8Array).length, 1000);
    port.close();
  }
});

Deno.test("openStream: random messages both ways, in random pieces", async () => {
  for (let seed = 1; seed <= 10; seed++) {
    const next = random(seed);
    const [a, b] = await open(duplex(() => 1 + next() % 40), { largest: 128, window: 256 });
    const values = Array.from({ length: 60 }, (_, n) => ({ n, text: "x".repeat(next() % 600) }));
    const send = async (port: AnyPort) => {
      for (const value of values) await port.writeAsync(value);
      port.end();
    };
    const collect = async (port: AnyPort) => {
      const got = [];
      for await (const value of port) got.push(value);
      return got;
    };
    const [, , got, back] = await Promise.all([send(a), send(b), collect(a), collect(b)]);
    assertEquals([got, back], [values, values], `seed ${seed}`);
    a.close();
    b.close();
  }
});

Deno.test("openStream: a peer that is gone, or no peer of ours, is found", async () => {
  const [here, there] = await tcp();
  const opening = openStream(here);
  await there.write(new TextEncoder().encode("SSH-2.0-OpenSSH_9.2\r\n"));
  const error = await assertRejects(() => opening, PeerFailedError);
  assertEquals(error.reason, "stream.magic");
  const begin = new Uint8Array(32);
  assertEquals(await there.read(begin), 32); // the preface comes first, and then the reason
  there.close();

  const [a, b] = await tcp();
  const [port] = await Promise.all([openStream<string>(a), openStream<string>(b)]);
  const reading = port.readAsync();
  b.close();
  assertEquals((await assertRejects(() => reading, PeerFailedError)).reason, "peer.lost");
  port.close();
});

Deno.test("openStream: after a close it takes in what still comes [stream.linger]", async () => {
  const [here, there] = await tcp();
  await there.write(writePreface({ largest: 32_768, window: 1 << 23 }));
  const port = await openStream<Uint8Array>(here);
  const [count, size] = [100, 20_480];
  for (let n = 0; n < count; n++) await port.writeAsync(new Uint8Array(size));
  port.close();
  await new Promise((resolve) => setTimeout(resolve, 20));
  // If the socket was closed by now, it would answer with a reset, and drop unsent bytes.
  await there.write(controlFrame(layout.STREAM_KIND_CREDIT, layout.STREAM_START));
  await new Promise((resolve) => setTimeout(resolve, 20));
  const bytes = new Uint8Array(65536);
  let total = 0;
  let last: number[] = [];
  for (let read; (read = await there.read(bytes)) !== null; total += read) {
    last = [...last, ...bytes.subarray(0, read)].slice(-16);
  }
  assertEquals(last, [...controlFrame(layout.STREAM_KIND_CLOSE, 0)]);
  assertEquals(total, 32 + count * (16 + size) + 16);
  there.close();
});

Deno.test("openStream: a connection sends at once what it gets", async () => {
  const [here, there] = await tcp();
  let isAsked = false;
  const connection: ByteConnection = {
    read: (into) => here.read(into),
    write: (bytes) => (assert(isAsked), here.write(bytes)),
    closeWrite: () => here.closeWrite(),
    close: () => here.close(),
    setNoDelay: () => void (isAsked = true),
  };
  const [a, b] = await open([connection, there]);
  a.close();
  b.close();
});

Deno.test("openStream: a peer that says nothing, and a signal", async () => {
  const [here, there] = await tcp();
  await assertRejects(() => openStream(here, { timeout: 20 }), TimeoutError);
  there.close();
  const [one, other] = duplex();
  const signal = AbortSignal.timeout(20);
  const reason = await openStream(one, { signal }).catch((error) => error);
  assertEquals(reason.name, "TimeoutError");
  await other.writable.close();
});

Deno.test("openStream: what blocks or lends does not type-check, and is refused", async () => {
  const [a, b] = await open(duplex());
  const served = serve(b, { add: (x: number, y: number) => x + y });
  const far = remote<{ add(x: number, y: number): number }>(a);
  const absent = [
    // @ts-expect-error A thread cannot block for bytes that it has to receive itself.
    () => a.read(),
    // @ts-expect-error As above.
    () => far.sync.add(1, 2),
    // @ts-expect-error As above, with a deadline.
    () => far.with({ timeout: 1000 }).sync.add(1, 2),
  ];
  for (const call of absent) assertThrows(call, ForbiddenError);
  // @ts-expect-error The memory is private.
  assertThrows(() => a.handoff(), TypeError);
  // @ts-expect-error Arriving bytes are a copy: there is nothing to lend.
  assertEquals(tryPeek(a), undefined);
  assertEquals([tryReadMany(a, 2), tryReadMessage(a)], [undefined, undefined]);
  assertEquals(a.tryRead(), undefined);
  assertEquals(await far.add(1, 2), 3);
  b.postMessage("what can wait for several");
  assertEquals(await selectAsync([b, a], { timeout: 5000 }), a);
  served.stop();
  a.close();
  b.close();
});
