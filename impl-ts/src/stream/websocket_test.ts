/** What a port over a WebSocket keeps for a peer that takes nothing. */

import { assert, assertEquals } from "@std/assert";
import { held, until } from "../port/fixture.ts";
import type { Port } from "../port/port.ts";
import { openStream } from "./stream.ts";
import { writePreface } from "./preface.ts";

/** Far less than the window, and enough for what is under way. */
const MOST_KEPT = 2 ** 20;
/** The largest window that a peer can state. */
const preface = writePreface({ largest: 48 * 1024, window: 2 ** 30 });

/** As much of a WebSocket as a transport uses. What is sent stays until it is drained. */
class FakeSocket extends EventTarget {
  readyState: number = WebSocket.OPEN;
  binaryType = "blob";
  bufferedAmount = 0;
  readonly sent: Uint8Array[] = [];

  send(bytes: Uint8Array): void {
    this.bufferedAmount += bytes.length;
    this.sent.push(bytes.slice());
  }

  close(): void {
    if (this.readyState > WebSocket.OPEN) return;
    this.readyState = WebSocket.CLOSED;
    this.dispatchEvent(new Event("close"));
  }

  /** A message of the peer arrives. */
  arrive(bytes: Uint8Array<ArrayBuffer>): void {
    this.dispatchEvent(new MessageEvent("message", { data: bytes.slice().buffer }));
  }
}

async function openFake(): Promise<[FakeSocket, Port<string>]> {
  const socket = new FakeSocket();
  const opening = openStream<string>(socket as unknown as WebSocket);
  socket.arrive(preface);
  return [socket, await held(opening) as Port<string>];
}

const TEXT = "x".repeat(1000);

/** Writes what is accepted, and lets the event loop turn, so many times. Returns the count. */
async function flood(port: Port<string>, turns: number): Promise<number> {
  let count = 0;
  for (let turn = 0; turn < turns; turn++) {
    while (port.tryWrite(TEXT)) count++;
    await new Promise((resolve) => setTimeout(resolve));
  }
  return count;
}

Deno.test("a WebSocket that sends nothing is given a bounded number of bytes", async () => {
  const [socket, port] = await openFake();
  const count = await flood(port, 200);
  assert(count > 10 && count * TEXT.length < MOST_KEPT, `${count} messages`);
  assert(socket.bufferedAmount < MOST_KEPT, `${socket.bufferedAmount} bytes`);
  assertEquals(await flood(port, 20), 0);
  // What it has sent makes room for what waits.
  const posted = port.postMessage(TEXT);
  const before = socket.sent.length;
  socket.bufferedAmount = 0;
  await held(posted);
  assert(socket.sent.length > before);
  assert(await flood(port, 20) > 0);
  port.close();
  socket.close();
});

Deno.test("what a WebSocket has drained is noticed when something arrives", async () => {
  const [socket, port] = await openFake();
  await flood(port, 20);
  const before = socket.sent.length;
  socket.bufferedAmount = 0;
  // Whatever the peer sends: a frame of a kind that is skipped.
  const frame = new Uint8Array(16);
  frame[4] = 128;
  socket.arrive(frame);
  for (let turn = 0; turn < 10; turn++) await Promise.resolve();
  assert(socket.sent.length > before);
  port.close();
  socket.close();
});

Deno.test("a close of a WebSocket that sends nothing ends in time", async () => {
  for (const who of ["port", "socket"]) {
    const [socket, port] = await openFake();
    await flood(port, 20);
    const code = port.closed.then((error) => error?.code ?? "closed");
    if (who === "port") port.close();
    else socket.close();
    assertEquals(await held(code), who === "port" ? "closed" : "peer.failed");
    await until(() => socket.readyState === WebSocket.CLOSED); // after the linger
    port.close();
  }
});

Deno.test("a WebSocket server that reads nothing more costs a bound of bytes", async () => {
  await using server = stalledServer();
  const socket = new WebSocket(`ws://127.0.0.1:${server.port}`);
  const port = await held(openStream<string>(socket)) as Port<string>;
  const count = await flood(port, 500);
  // The system keeps some megabytes of its own for a connection.
  assert(count * TEXT.length < 16 * MOST_KEPT, `${count} messages`);
  assert(socket.bufferedAmount < MOST_KEPT, `${socket.bufferedAmount} bytes`);
  assertEquals(await flood(port, 20), 0);
  port.close();
  await until(() => socket.readyState >= WebSocket.CLOSING);
});

/** A server that upgrades one connection, sends the preface, and then never reads. */
function stalledServer(): AsyncDisposable & { port: number } {
  const listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const serving = (async () => {
    const connection = await listener.accept();
    const request = new Uint8Array(4096);
    let size = 0;
    while (!new TextDecoder().decode(request.subarray(0, size)).endsWith("\r\n\r\n")) {
      size += await connection.read(request.subarray(size)) ?? 0;
    }
    const head = new TextDecoder().decode(request.subarray(0, size));
    const key = /^sec-websocket-key: *(\S+)/im.exec(head)![1];
    const digest = await crypto.subtle.digest(
      "SHA-1",
      new TextEncoder().encode(`${key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`),
    );
    const accept = btoa(String.fromCharCode(...new Uint8Array(digest)));
    const lines = ["HTTP/1.1 101 Switching Protocols", "Upgrade: websocket", "Connection: Upgrade"];
    const answer = [...lines, `Sec-WebSocket-Accept: ${accept}`, "", ""].join("\r\n");
    await connection.write(new TextEncoder().encode(answer));
    await connection.write(Uint8Array.of(0x82, preface.length, ...preface));
    return connection;
  })();
  return {
    port: listener.addr.port,
    async [Symbol.asyncDispose]() {
      (await serving).close();
      listener.close();
    },
  };
}
