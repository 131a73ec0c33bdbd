/**
 * The small port as a testee.
 *
 * @module
 */

import { fromHex } from "../../reference/bytes.ts";
import type { Failed, Opening, Outgoing, Taken } from "../../kit/protocol.ts";
import { type Adapter, packHex, type Session } from "../server.ts";
import { openFanout, openProperty } from "./small_property.ts";
import { Kit, runTask } from "./small_calls.ts";
import { Memory, PortError, Refused } from "./small_memory.ts";
import { Reader } from "./small_reader.ts";
import type { Value } from "./small_frame.ts";
import { Endpoint, Port, vacate } from "./small_port.ts";
import { type Channel, Segment } from "./small_segment.ts";
import { Writer } from "./small_writer.ts";

/** Bytes that a port takes in, at most. */
const INBOX = 65_536;

/** The port, with whatever fault it was given. */
export const small: Adapter = {
  hello: {
    protocol: 1,
    name: "Small port",
    version: "1",
    language: "TypeScript",
    levels: ["static", "scripted", "live"],
    nouns: [
      "segment",
      "wait",
      "frame",
      "ring",
      "codec",
      "pipe",
      "port",
      "call",
      "property",
      "fanout",
    ],
    roles: [
      "segment",
      "reader",
      "writer",
      "port",
      "property_reader",
      "property_writer",
      "fanout_reader",
      "fanout_writer",
    ],
    carriers: ["bytes", "shared"],
    waits: ["block"],
    lacks: [],
    offers: ["inbox"],
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
  if (role.startsWith("property")) return openProperty(segment, opening);
  if (role.startsWith("fanout")) return openFanout(segment, opening, told);
  if (endpoint !== undefined) segment.requireVacant(endpoint);
  const ringOf = (own: "writer" | "reader") => {
    const fits = (each: Channel) => endpoint === undefined || each[own] === endpoint;
    return segment.findRing(role === "port" ? undefined : channel, fits);
  };
  const inward = role === "writer" ? undefined : ringOf("reader");
  const outward = role === "reader" ? undefined : ringOf("writer");
  // [port.find_none]
  if (inward && outward && inward.writer !== outward.reader) throw new PortError("segment.channel");
  const [own, peer] = inward ? [inward.reader, inward.writer] : [outward!.writer, outward!.reader];
  const end = Endpoint.attach(segment, own, peer);
  const serves = opening.serves ?? false;
  const reader = inward && new Reader(end, inward, limit, calls, serves);
  const writer = outward && new Writer(end, outward);
  if (reader && writer) return bothWays(reader, writer, opening);
  return {
    ...(reader && reading(reader, opening.values ?? false)),
    ...(writer && writing(writer)),
    vacate: () => vacate(end, reader, writer),
    close: () => end.close(),
  };
}

/** A port, which may offer calls. */
function bothWays(reader: Reader, writer: Writer, opening: Opening): Session {
  const { inbox = INBOX, first_id: firstId = 1, methods: hasMethods = true } = opening;
  const { serves = false, values: decodes = false } = opening;
  let kit: Kit | undefined;
  const methods = (port: Port) => (kit = new Kit(port), hasMethods ? kit.methods : new Map());
  const port = new Port(reader, writer, { inbox, firstId, methods, serves, decodes });
  return {
    ...writing(writer),
    read: (timeoutMs) => told(port.read(timeoutMs)),
    peek: () => told(port.peek()),
    release: () => port.release(),
    write: ({ kind, codec, tag, hex }, timeoutMs) =>
      port.write({ kind, codec, tag, payload: fromHex(hex) }, timeoutMs),
    end: () => port.end(),
    vacate: () => port.vacate(),
    close: () => port.close(),
    ...(serves && { calls: kit! }),
  };
}

function reading(reader: Reader, decodes: boolean) {
  return {
    read: (timeoutMs: number) =>
      told(decodes ? reader.readValue(timeoutMs) : reader.read(timeoutMs)),
    peek: () => told(reader.peek()),
    release: () => reader.release(),
    run: (task, timeoutMs) => runTask({ reader }, task, timeoutMs),
  } satisfies Partial<Session>;
}

function told(message: Value | "ended" | undefined): Taken {
  if (message === undefined) return { end: "nothing" };
  if (message === "ended") return { end: "ended" };
  const { payload, ...rest } = message;
  return { item: payload === undefined ? rest : { ...rest, hex: packHex(payload) } };
}

function writing(writer: Writer) {
  return {
    write({ kind, codec, tag, hex }: Outgoing, timeoutMs: number | undefined): boolean {
      const message = { kind, codec, tag, payload: fromHex(hex) };
      if (timeoutMs === undefined) return writer.tryWrite(message);
      writer.write(message, timeoutMs);
      return true;
    },
    claim: (_: Outgoing, size: number) => writer.claim(size),
    finish({ kind, codec, tag, hex }: Outgoing): void {
      writer.finish({ kind, codec, tag, payload: fromHex(hex) });
    },
    abandon: () => writer.abandon(),
    publish: () => writer.publish(),
    end: () => writer.end(),
    run: (task, timeoutMs) => runTask({ writer }, task, timeoutMs),
  } satisfies Partial<Session>;
}

function failureOf(error: unknown): Failed | "refused" | undefined {
  if (error instanceof Refused) return "refused";
  if (!(error instanceof PortError)) return undefined;
  const { code, reason, count } = error;
  return {
    code,
    ...(reason !== undefined && { reason }),
    ...(count !== undefined && { count }),
  };
}
