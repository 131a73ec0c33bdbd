/**
 * Streams over sockets and FIFOs. No thread of JavaScript can wait for those, so all of it is
 * asynchronous.
 *
 * @module
 */

import { cbor } from "../../../impl-ts/src/codec/cbor.ts";
import { type ByteTransport, openStream } from "../../../impl-ts/src/stream/stream.ts";
import type { Port } from "../../../impl-ts/src/mod.ts";
import type { Hello, Opening, Transport } from "../../kit/protocol.ts";
import type { Session } from "../server.ts";
import { codecOf, PipeSession } from "./adapter.ts";

/** What the testee says of its streams. */
export const streams: NonNullable<Hello["streams"]> = {
  transports: ["unix", "tcp", "fifo"],
  waits: ["event", "poll"],
};

/** Opens a side, and waits for the peer's preface. */
export async function open(transport: Transport, opening: Opening): Promise<Session> {
  const { largest, window, limit, calls, inbox, timeout_ms: timeout } = opening;
  const opened = await openStream<unknown, Uint8Array>(await connect(transport), {
    largest,
    window,
    maxMessageSize: limit,
    calls,
    codec: codecOf(opening),
    codecs: [cbor],
    inboxSize: inbox,
    timeout,
  });
  // What a stream does not have is not in its type, and not asked for: the rest is that of a port.
  const port = opened as unknown as Port<unknown, Uint8Array>;
  const session = new PipeSession(opening, port as never, "event");
  return {
    read: (ms, wait = "event") => session.read(ms, wait),
    write: (message, ms, wait = ms === undefined ? "poll" : "event") =>
      session.write(message, ms, wait),
    end: () => session.end(),
    run: (task, ms) => session.run(task, ms),
    calls: session.calls,
    close: () => session.close(),
  };
}

async function connect(transport: Transport): Promise<ByteTransport> {
  switch (transport.transport) {
    case "unix":
      return await Deno.connect({ transport: "unix", path: transport.path });
    case "tcp":
      return await Deno.connect({ hostname: "127.0.0.1", port: transport.tcp_port });
    case "fifo": {
      const { path, path_out } = transport;
      const files = [Deno.open(path), Deno.open(path_out, { write: true })] as const;
      const [reader, writer] = await Promise.all(files);
      return { reader, writer };
    }
  }
}
