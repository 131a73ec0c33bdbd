/**
 * The small side of a stream as a testee.
 *
 * @module
 */

import type { Opening, Transport } from "../../kit/protocol.ts";
import type { Adapter, Session } from "../server.ts";
import { small } from "./adapter.ts";
import { SmallStream } from "./small_stream.ts";
import { SmallStreamPort } from "./small_stream_port.ts";

/** The stream, with whatever fault it was given; it waits for no preface when it is opened. */
export const smallStream: Adapter = {
  ...small,
  hello: {
    ...small.hello,
    name: "Small stream",
    nouns: ["stream"],
    roles: ["port"],
    carriers: ["stream"],
    waits: ["event"],
    lacks: ["values"],
    streams: { transports: ["unix", "tcp", "fifo"], waits: ["event"] },
  },
  open: () => undefined,
  openStream,
};

async function openStream(transport: Transport, opening: Opening): Promise<Session> {
  const { largest, window, limit } = opening;
  const stream = new SmallStream(await connect(transport), { largest: largest!, window: window! });
  const port = new SmallStreamPort(stream, limit ?? 4096);
  return {
    read: (timeoutMs) => port.read(timeoutMs),
    write: (message, timeoutMs) => port.write(message, timeoutMs),
    end: () => port.end(),
    close: () => port.close(),
  };
}

async function connect(transport: Transport) {
  if (transport.transport === "unix") {
    return await Deno.connect({ transport: "unix", path: transport.path });
  }
  if (transport.transport === "tcp") {
    return await Deno.connect({ hostname: "127.0.0.1", port: transport.tcp_port });
  }
  const reads = await Deno.open(transport.path);
  const writes = await Deno.open(transport.path_out, { write: true });
  let isEnded = false;
  return {
    read: (into: Uint8Array) => reads.read(into),
    write: (bytes: Uint8Array) => writes.write(bytes),
    closeWrite: () => Promise.resolve(isEnded || (isEnded = true, writes.close())).then(() => {}),
    close() {
      if (!isEnded) writes.close();
      isEnded = true;
      reads.close();
    },
  };
}
