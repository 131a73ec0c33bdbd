/**
 * Peers that are a codec: what they make of a value on one thread, and as the codec of a port. And
 * the floors of what a codec and a copy have to do, one step after the other on one thread.
 *
 * @module
 */
import { Packr } from "msgpackr";
import { cbor } from "../../../impl-ts/src/codec/cbor.ts";
import { type Codec, portMemory } from "../../../impl-ts/src/mod.ts";
import { Meter } from "../meter.ts";
import { readStamp, sampleOf, stamp, valuesOf } from "../payload.ts";
import { type BlockingEnd, both, lonePeer, type Order, type Peer, type Report } from "../peer.ts";
import { check, reportOf } from "../plays/echo.ts";
import { openPort, portOptions, portValues } from "./millrace.ts";

/** As much memory as a ring has, so that the same caches serve both. */
const RING_SIZE = 256 * 1024;
/** The number of the codec of `msgpackr`, and what makes it carry all values. */
const CODE = 200;
// Typed arrays and others by its extensions; without, an array of numbers comes back.
const OPTIONS: object = { structuredClone: true, moreTypes: true };

/** Makes something of a value, and the value again. */
interface ValueCodec<Encoded = unknown> {
  encode(value: unknown): Encoded;
  decode(encoded: Encoded): unknown;
}

/** A peer that plays on one thread alone. */
function alonePeer<Encoded>(codec: ValueCodec<Encoded>, isPlain = false): Peer {
  return lonePeer(({ name, ends, payload }) => {
    if (name !== "values") return "of values only";
    if (ends !== "worker") return "on one thread";
    return isPlain && !sampleOf(payload).isPlain ? "cannot carry it" : undefined;
  }, (order) => Promise.resolve(playAlone(codec, order)));
}

/** A peer that plays there too, and is the codec of a port between two threads. */
function codecPeer(codec: Codec): Peer {
  return {
    decline({ name, ends }) {
      if (name !== "values") return "of values only";
      return ends === "worker" || ends === "workers" ? undefined : "measured between workers";
    },
    prepare(scenario) {
      return both(portMemory(portOptions(scenario)));
    },
    open: (order): BlockingEnd => portValues(openPort(order, undefined, codec), order.scenario),
    play(order) {
      if (order.scenario.ends !== "worker") return undefined;
      return Promise.resolve(playAlone(codec as ValueCodec<Uint8Array>, order));
    },
  };
}

function playAlone<Encoded>(codec: ValueCodec<Encoded>, { scenario }: Order): Report {
  const values = valuesOf(scenario);
  const meter = new Meter(scenario);
  let count = 0;
  do {
    const value = codec.decode(codec.encode(values.with(count)));
    check(values.numberOf(value), count++);
  } while (meter.turn());
  return reportOf(meter, undefined);
}

/**
 * The floor of peers that send text: stringify, encode into shared memory, copy out of it, decode,
 * parse; of text, the three between.
 */
function playSteps({ scenario }: Order): Report {
  const { format, size } = scenario;
  const values = valuesOf(scenario);
  const encoder = new TextEncoder();
  const decoder = new TextDecoder();
  const shared = new Uint8Array(new SharedArrayBuffer(size));
  const own = new Uint8Array(size);
  const isJson = format === "json";
  const meter = new Meter(scenario);
  let count = 0;
  do {
    const value = values.with(count);
    const sent = isJson ? JSON.stringify(value) : value as string;
    encoder.encodeInto(sent, shared);
    own.set(shared);
    const text = decoder.decode(own);
    check(values.numberOf(isJson ? JSON.parse(text) : text), count++);
  } while (meter.turn());
  return reportOf(meter, undefined);
}

/** The floor of peers that copy: one thread copies the payload into shared memory and out. */
function playCopies({ scenario }: Order): Report {
  const { size } = scenario;
  const ring = new Uint8Array(new SharedArrayBuffer(Math.max(RING_SIZE, size)));
  const [outgoing, incoming] = [new Uint8Array(size), new Uint8Array(size)];
  const meter = new Meter(scenario);
  let count = 0;
  let offset = 0;
  do {
    stamp(outgoing, 0, size, count++);
    ring.set(outgoing, offset);
    incoming.set(ring.subarray(offset, offset + size));
    readStamp(incoming, 0, size);
    offset += size;
    if (offset + size > ring.length) offset = 0;
  } while (meter.turn());
  const { count: copied = 0, elapsed_ns = 1 } = reportOf(meter, undefined);
  const notes = ["in and out on one thread"];
  return { count: copied, elapsed_ns, bytes: copied * size, notes };
}

const encoder = new TextEncoder();
const decoder = new TextDecoder();
/** Made late, since pages load this module without the library. */
let packr: Packr | undefined;

/** The peers of this file. */
export const peers = {
  "json": alonePeer({
    encode: (value) => encoder.encode(JSON.stringify(value)),
    decode: (bytes: Uint8Array) => JSON.parse(decoder.decode(bytes)),
  }, true),
  // Writes and reads at once.
  "structured-clone": alonePeer({
    encode: (value) => structuredClone(value),
    decode: (value) => value,
  }),
  "msgpackr": codecPeer({
    code: CODE,
    encode: (value) => (packr ??= new Packr(OPTIONS)).pack(value),
    decode: (bytes) => (packr ??= new Packr(OPTIONS)).unpack(bytes),
  }),
  "millrace-cbor": codecPeer(cbor),
  "floor-codec": lonePeer(
    ({ name }) => name === "codec" ? undefined : "sends nothing",
    (order) => Promise.resolve(playSteps(order)),
  ),
  "floor-memcpy": lonePeer(({ name, format, ends, burst }) => {
    if (name !== "stream" && name !== "large") return "only copies";
    if (burst !== undefined) return "has nobody who confirms";
    if (ends !== "workers") return "one thread";
    return format === "bytes" ? undefined : "bytes only";
  }, (order) => Promise.resolve(playCopies(order))),
};
