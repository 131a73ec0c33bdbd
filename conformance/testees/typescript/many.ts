/**
 * Fanouts of the TypeScript implementation, as the kit drives them.
 *
 * @module
 */

import { cbor } from "../../../impl-ts/src/codec/cbor.ts";
import { fanoutChannel, FanoutReader, FanoutWriter } from "../../../impl-ts/src/fanout/fanout.ts";
import { type Codec, type Geometry, type Mechanism } from "../../../impl-ts/src/mod.ts";
import { type Message, MillraceError, Segment } from "../../../impl-ts/src/mod.ts";
import { propertyChannel, PropertyError } from "../../../impl-ts/src/property/property.ts";
import { PropertyReader, PropertyWriter } from "../../../impl-ts/src/property/property.ts";
import type { Gotten, Opening, Outgoing, Task, Wait } from "../../kit/protocol.ts";
import { fromHex } from "../../reference/bytes.ts";
import type { MessageCase } from "../../reference/case.ts";
import { packHex, type Session } from "../server.ts";
import { type FailureOf, type Incoming, poll, run, Stop, type Ways } from "./tasks.ts";

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

// Properties of the TypeScript implementation, as the kit drives them.

const BYTES = 0;
const TEXT = 1;
const JSON_TEXT = 2;
const BATCH = 3;
const VALUES = 4;
const CBOR = 5;
const SLOTS = 4;
const HEADER = 16;
const UNIT = 512;
const NOBODY = 2 ** 32 - 1;

/** A geometry of the kit's, in which each property has become a channel of this port. */
export function properties({ endpoints, channels }: Geometry): Geometry {
  return {
    endpoints,
    channels: channels.map((channel) => {
      const { kind, name, ...rest } = channel as typeof channel & { kind?: number; name?: string };
      if (kind === undefined) return channel;
      const { writer, reader, capacity, label, start = 0 } = rest;
      // This port makes the areas itself, and no others.
      if (capacity === 0 || capacity % UNIT !== 0 || reader !== NOBODY || start !== 0) {
        throw new RangeError("no property has such areas or ends");
      }
      return propertyChannel({ writer, name, label, size: capacity / SLOTS - HEADER });
    }),
  };
}

/** Opens one end of a property. */
export function propertyEnd(
  segment: Segment,
  opening: Opening,
  failureOf: FailureOf,
  mechanism?: Mechanism,
): Session {
  const { role, endpoint, spin_us: spin } = opening;
  const property = opening.channel ?? opening.property;
  const options = { property, endpoint, spin, mechanism };
  if (role === "property_writer") {
    // The kit has encoded what it wants to be set.
    let message: Outgoing | undefined;
    const codec: Codec<Outgoing> = {
      get code() {
        return message?.codec ?? CBOR;
      },
      encode: ({ hex }) => fromHex(hex),
      decode: () => {
        throw new Error("a writer reads nothing");
      },
    };
    const writer = PropertyWriter.attach<Outgoing>(segment, { ...options, codec });
    return {
      write(given) {
        if ([BATCH, VALUES].includes(given.codec)) {
          throw new RangeError("this port sets one value, of a codec of its own");
        }
        message = given;
        writer.set(given);
        return true;
      },
      clear: () => writer.set(null),
      run: (task) => run(writerWays(writer), task, failureOf),
      close: () => writer.close(),
    };
  }
  const reader = PropertyReader.attach(segment, { ...options, codecs: [cbor] });
  return {
    get: () => opening.values ? valueOf(reader) : bytesOf(reader),
    changed(timeout) {
      if (!reader.wait({ timeout })) {
        throw new MillraceError("wait.timeout", "Cannot wait: nothing has changed");
      }
    },
    // Its count is the version at which it ends.
    run: ({ count, ...task }, timeout) =>
      run(readerWays(reader, task, count, timeout), task, failureOf),
    close: () => reader.close(),
  };
}

/** A message without a payload is none. */
function writerWays(writer: PropertyWriter<Outgoing>): Ways {
  return {
    write: (_tag, payload) => writer.set(payload.length > 0 ? payload : null),
    read: () => undefined,
    end: () => {},
    close: () => writer.close(),
    stats: () => ({}),
  };
}

/** Gives each value that is another one than the last, until it has given the last version. */
function readerWays(
  reader: PropertyReader,
  { wait }: Omit<Task, "count">,
  lastVersion: number | undefined,
  timeout: number,
): Ways {
  const bytes = new Uint8Array(reader.capacity);
  let last: Incoming | undefined;
  const look = (): Incoming | undefined => {
    const size = getInto(reader, bytes);
    if (reader.seen === 0 || size === undefined) return undefined;
    const payload = size === null ? undefined : bytes.subarray(0, size);
    if (last?.tag === reader.seen && isSame(last.payload, payload)) return undefined;
    return last = { tag: reader.seen, payload: payload?.slice() };
  };
  const common = {
    write: () => {},
    end: () => {},
    close: () => reader.close(),
    stats: () => ({}),
  };
  const hasEnded = () => lastVersion !== undefined && last?.tag === lastVersion;
  const late = () => new Stop("wait.timeout");
  if (wait === "event") {
    return {
      ...common,
      async read() {
        while (!hasEnded()) {
          const found = look();
          if (found !== undefined) return found;
          if (!await reader.waitAsync({ timeout })) throw late();
        }
        return undefined;
      },
    };
  }
  return {
    ...common,
    read() {
      const deadline = performance.now() + timeout;
      while (!hasEnded()) {
        const found = look();
        if (found !== undefined) return found;
        const isInTime = wait === "block" ? reader.wait({ timeout }) : performance.now() < deadline;
        if (!isInTime) throw late();
      }
      return undefined;
    },
  };
}

/** The size of the value; null where there is none, and nothing where it has to be got again. */
function getInto(reader: PropertyReader, bytes: Uint8Array): number | null | undefined {
  try {
    return reader.getInto(bytes);
  } catch (error) {
    if (error instanceof PropertyError && error.code === "property.busy") return undefined;
    throw error;
  }
}

function isSame(some: Uint8Array | undefined, other: Uint8Array | undefined): boolean {
  if (some === undefined || other === undefined) return some === other;
  return some.length === other.length && some.every((byte, index) => byte === other[index]);
}

function bytesOf(reader: PropertyReader): Gotten {
  const bytes = new Uint8Array(reader.capacity);
  const size = reader.getInto(bytes);
  const { seen: version, codec } = reader;
  if (size === null) return { version };
  return { version, item: { kind: 1, codec, tag: 0, hex: packHex(bytes.subarray(0, size)) } };
}

function valueOf(reader: PropertyReader): Gotten {
  const value = reader.get();
  const { seen: version, codec } = reader;
  if (value === null && codec !== JSON_TEXT) return { version };
  const item = { kind: 1, codec, tag: 0 };
  if (codec === TEXT) return { version, item: { ...item, text: value as string } };
  if (codec === JSON_TEXT) return { version, item: { ...item, json: value } };
  const bytes = codec === BYTES ? value as Uint8Array : cbor.encode(value);
  return { version, item: { ...item, hex: packHex(bytes) } };
}
