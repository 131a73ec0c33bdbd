/**
 * Peers that are a codec: what they make of a value on one thread, and as the codec of a port.
 *
 * @module
 */
import { type Codec, type Port, portMemory } from "../../impl-ts/src/mod.ts";
import { Meter } from "./meter.ts";
import { sampleOf } from "./payload_value.ts";
import { valuesOf } from "./payload.ts";
import type { BlockingEnd, Order, Peer, Report } from "./peer.ts";
import { check, reportOf } from "./play_echo.ts";
import { openPort, PortJson, portOptions } from "./peers/millrace.ts";

/** Makes something of a value, and the value again. */
export interface ValueCodec<Encoded = unknown> {
  encode(value: unknown): Encoded;
  decode(encoded: Encoded): unknown;
}

/** A peer that plays on one thread alone. */
export function alonePeer<Encoded>(codec: ValueCodec<Encoded>, isPlain = false): Peer {
  return {
    decline({ name, ends, payload }) {
      if (name !== "values") return "of values only";
      if (ends !== "worker") return "on one thread";
      return isPlain && !sampleOf(payload).isPlain ? "cannot carry it" : undefined;
    },
    prepare: () => ({ a: { value: undefined }, b: { value: undefined } }),
    open() {
      throw new Error("Cannot open: both ends are on one thread");
    },
    play: (order) => Promise.resolve(playAlone(codec, order)),
    alone: true,
  };
}

/** A peer that plays there too, and is the codec of a port between two threads. */
export function codecPeer(codec: Codec): Peer {
  return {
    decline({ name, ends }) {
      if (name !== "values") return "of values only";
      return ends === "worker" || ends === "workers" ? undefined : "measured between workers";
    },
    prepare(scenario) {
      const memory = portMemory(portOptions(scenario));
      return { a: { value: memory }, b: { value: memory } };
    },
    open: (order): BlockingEnd => new PortJson(openWith(order, codec), order.scenario),
    play(order) {
      if (order.scenario.ends !== "worker") return undefined;
      return Promise.resolve(playAlone(codec as ValueCodec<Uint8Array>, order));
    },
  };
}

function openWith(order: Order, codec: Codec): Port<unknown> {
  return openPort(order, undefined, codec);
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
