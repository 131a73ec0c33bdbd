/**
 * The small port as a testee.
 *
 * @module
 */

import { fromHex } from "../../reference/bytes.ts";
import type { Failed, Opening, Outgoing, Taken } from "../../kit/protocol.ts";
import { type Adapter, packHex, type Session } from "../server.ts";
import { runTask } from "./small_task.ts";
import { Memory, PortError, Refused } from "./small_memory.ts";
import { Reader } from "./small_reader.ts";
import { Endpoint, Segment } from "./small_segment.ts";
import { Writer } from "./small_writer.ts";

/** The port, with whatever fault it was given. */
export const small: Adapter = {
  hello: {
    protocol: 1,
    name: "Small port",
    version: "1",
    language: "TypeScript",
    levels: ["static", "scripted", "live"],
    nouns: ["segment", "wait", "frame", "ring", "pipe"],
    roles: ["segment", "reader", "writer"],
    carriers: ["bytes", "shared"],
    waits: ["block"],
    lacks: ["values", "elements", "lending", "unknown_codec"],
  },
  open,
  failureOf,
};

function open(bytes: Uint8Array, opening: Opening): Session | undefined {
  const { kind, role, channel, endpoint, limit = 4096, calls = false } = opening;
  const memory = new Memory(bytes);
  if (kind === "create") Segment.create(memory, opening.geometry!, opening.sole_owner ?? false);
  const segment = Segment.attach(memory);
  if (role === "segment") return undefined;
  if (endpoint !== undefined) segment.requireVacant(endpoint);
  const own = role === "writer" ? "writer" : "reader";
  const ring = segment.findRing(
    channel,
    (each) => endpoint === undefined || each[own] === endpoint,
  );
  const peer = own === "writer" ? ring.reader : ring.writer;
  const end = Endpoint.attach(segment, ring[own], peer);
  return own === "writer" ? writing(new Writer(end, ring)) : reading(end, ring, limit, calls);
}

function reading(
  end: Endpoint,
  ...rest: [ConstructorParameters<typeof Reader>[1], number, boolean]
) {
  const reader = new Reader(end, ...rest);
  return {
    read(timeoutMs: number): Taken {
      const message = reader.read(timeoutMs);
      if (message === undefined) return { end: "nothing" };
      if (message === "ended") return { end: "ended" };
      const { kind, codec, tag, payload } = message;
      return { item: { kind, codec, tag, hex: packHex(payload) } };
    },
    run: (task, timeoutMs) => runTask({ reader }, task, timeoutMs),
    close: () => end.close(),
  } satisfies Session;
}

function writing(writer: Writer): Session {
  return {
    write({ kind, codec, tag, hex }: Outgoing, timeoutMs: number | undefined): boolean {
      const message = { kind, codec, tag, payload: fromHex(hex) };
      if (timeoutMs === undefined) return writer.tryWrite(message);
      writer.write(message, timeoutMs);
      return true;
    },
    publish: () => writer.publish(),
    end: () => writer.end(),
    run: (task, timeoutMs) => runTask({ writer }, task, timeoutMs),
    close: () => writer.endpoint.close(),
  };
}

function failureOf(error: unknown): Failed | "refused" | undefined {
  if (error instanceof Refused) return "refused";
  if (!(error instanceof PortError)) return undefined;
  const { code, reason } = error;
  return reason === undefined ? { code } : { code, reason };
}
