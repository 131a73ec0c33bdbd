/**
 * Properties of the TypeScript implementation, as the kit drives them.
 *
 * @module
 */

import { type Codec, type Geometry, type Mechanism, Segment } from "../../../impl-ts/src/mod.ts";
import { TimeoutError } from "../../../impl-ts/src/mod.ts";
import { cbor } from "../../../impl-ts/src/cbor.ts";
import { propertyChannel, PropertyReader } from "../../../impl-ts/src/property.ts";
import { PropertyWriter } from "../../../impl-ts/src/property.ts";
import type { Gotten, Opening, Outgoing } from "../../kit/protocol.ts";
import { fromHex } from "../../reference/bytes.ts";
import { packHex, type Session } from "../server.ts";

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
export function propertyEnd(segment: Segment, opening: Opening, mechanism?: Mechanism): Session {
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
      close: () => writer.close(),
    };
  }
  const reader = PropertyReader.attach(segment, { ...options, codecs: [cbor] });
  return {
    get: () => opening.values ? valueOf(reader) : bytesOf(reader),
    changed(timeout) {
      if (!reader.wait({ timeout })) throw new TimeoutError("Cannot wait: nothing has changed");
    },
    close: () => reader.close(),
  };
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
