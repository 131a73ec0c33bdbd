/**
 * Fanouts of the TypeScript implementation, as the kit drives them.
 *
 * @module
 */

import type { Geometry, Mechanism, Message, Segment } from "../../../impl-ts/src/mod.ts";
import { fanoutChannel, FanoutReader, FanoutWriter } from "../../../impl-ts/src/fanout/fanout.ts";
import type { Opening, Outgoing, Task, Wait } from "../../kit/protocol.ts";
import { fromHex } from "../../reference/bytes.ts";
import type { MessageCase } from "../../reference/case.ts";
import { packHex, type Session } from "../server.ts";
import { type FailureOf, poll, run, Stop, type Ways } from "./tasks.ts";

/** Bit 0 of a `start`. */
const LOSE = 1;

/** A geometry of the kit's, in which each fanout has become a channel of this port. */
export function fanouts({ endpoints, channels }: Geometry): Geometry {
  return {
    endpoints,
    channels: channels.map((channel) => {
      const { readers, start = 0, ...rest } = channel as typeof channel & { readers?: number };
      if (readers === undefined) return channel;
      const mode = start % 2 === LOSE ? "lose" : "hold";
      return fanoutChannel({ ...rest, readers, mode, start: start - start % 2 });
    }),
  };
}

/** Opens one end of a fanout. */
export function fanoutEnd(
  segment: Segment,
  opening: Opening,
  failureOf: FailureOf,
  mechanism?: Mechanism,
): Session {
  const { role, channel, endpoint, limit, oldest, spin_us: spin } = opening;
  const options = { channel, endpoint, spin, mechanism };
  if (role === "fanout_reader") {
    const more = { maxMessageSize: limit, oldest };
    return readerSession(FanoutReader.attach(segment, { ...options, ...more }), failureOf);
  }
  const writer = FanoutWriter.attach<Uint8Array>(segment, { ...options, codec: "bytes" });
  return writerSession(writer, failureOf);
}

function readerSession(reader: FanoutReader, failureOf: FailureOf): Session {
  return {
    read(timeout, wait?: Wait) {
      const message = wait === "poll" ? reader.tryReadMessage() : reader.readMessage({ timeout });
      if (message !== undefined) return { item: itemOf(message) };
      return { end: reader.ended ? "ended" : "nothing" };
    },
    leave: () => reader.leave(),
    join: () => reader.join(),
    run: (task, timeout) => run(waysOf({ reader }, task, timeout), task, failureOf),
    close: () => reader.close(),
  };
}

function writerSession(writer: FanoutWriter<Uint8Array>, failureOf: FailureOf): Session {
  return {
    write({ kind, codec, tag, hex }: Outgoing, timeout, wait?: Wait) {
      const message = { kind, codec, tag, payload: fromHex(hex) };
      if (timeout === undefined || wait === "poll") return writer.tryWriteMessage(message);
      writer.writeMessage(message, { timeout });
      return true;
    },
    end: () => writer.end(),
    run: (task, timeout) => run(waysOf({ writer }, task, timeout), task, failureOf),
    close: () => writer.close(),
  };
}

/** How a task writes or reads. */
function waysOf(
  { reader, writer }: { reader?: FanoutReader; writer?: FanoutWriter<Uint8Array> },
  { wait }: Task,
  timeout: number,
): Ways {
  const late = <T>(message: T | undefined) => {
    if (message === undefined && !reader!.ended) throw new Stop("wait.timeout");
    return message;
  };
  const calls: Ways = {
    write: (tag, payload) => writer!.writeMessage({ codec: 0, tag, payload }, { timeout }),
    read: () => late(reader!.readMessage({ timeout })),
    end: () => writer?.end(),
    close: () => (reader ?? writer)!.close(),
    stats: () => (reader ?? writer)!.stats,
  };
  if (wait === "block") return calls;
  if (wait === "event") {
    return {
      ...calls,
      write: (_tag, payload) => writer!.writeAsync(payload, { timeout }),
      read: async () => {
        const payload = late(await reader!.readAsync({ timeout })) as Uint8Array | undefined;
        return payload && { tag: reader!.tag, payload };
      },
    };
  }
  const take = () => reader!.tryReadMessage() ?? (reader!.ended ? null : undefined);
  return {
    ...calls,
    write: (tag, payload) => {
      const message = { codec: 0, tag, payload };
      return poll(timeout, () => writer!.tryWriteMessage(message) || undefined).then(() => {});
    },
    read: async () => await poll(timeout, take) ?? undefined,
  };
}

function itemOf({ kind, codec, tag, payload }: Message): MessageCase {
  return { kind, codec, tag, hex: packHex(payload) };
}
