/**
 * Fanouts of the TypeScript implementation, as the kit drives them.
 *
 * @module
 */

import type { Geometry, Mechanism, Message, Segment } from "../../../impl-ts/src/mod.ts";
import { fanoutChannel, FanoutReader, FanoutWriter } from "../../../impl-ts/src/fanout.ts";
import type { Opening, Outgoing, Wait } from "../../kit/protocol.ts";
import { fromHex } from "../../reference/bytes.ts";
import type { MessageCase } from "../../reference/case.ts";
import { packHex, type Session } from "../server.ts";

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
export function fanoutEnd(segment: Segment, opening: Opening, mechanism?: Mechanism): Session {
  const { role, channel, endpoint, limit, oldest, spin_us: spin } = opening;
  const options = { channel, endpoint, spin, mechanism };
  if (role === "fanout_reader") {
    const more = { maxMessageSize: limit, oldest };
    return readerSession(FanoutReader.attach(segment, { ...options, ...more }));
  }
  return writerSession(FanoutWriter.attach(segment, { ...options, codec: "bytes" }));
}

function readerSession(reader: FanoutReader): Session {
  return {
    read(timeout, wait?: Wait) {
      const message = wait === "poll" ? reader.tryReadMessage() : reader.readMessage({ timeout });
      if (message !== undefined) return { item: itemOf(message) };
      return { end: reader.ended ? "ended" : "nothing" };
    },
    leave: () => reader.leave(),
    join: () => reader.join(),
    close: () => reader.close(),
  };
}

function writerSession(writer: FanoutWriter): Session {
  return {
    write({ kind, codec, tag, hex }: Outgoing, timeout, wait?: Wait) {
      const message = { kind, codec, tag, payload: fromHex(hex) };
      if (timeout === undefined || wait === "poll") return writer.tryWriteMessage(message);
      writer.writeMessage(message, { timeout });
      return true;
    },
    end: () => writer.end(),
    close: () => writer.close(),
  };
}

function itemOf({ kind, codec, tag, payload }: Message): MessageCase {
  return { kind, codec, tag, hex: packHex(payload) };
}
