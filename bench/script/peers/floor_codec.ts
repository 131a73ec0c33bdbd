/**
 * The floor of those who send text: what its codec does, one step behind the other on one thread.
 * Stringify, encode into shared memory, copy out of it, decode, parse; of text, the three between.
 *
 * @module
 */
import { Meter } from "../meter.ts";
import { valuesOf } from "../payload.ts";
import type { Order, Peer } from "../peer.ts";
import { check, reportOf } from "../play_echo.ts";

const peer: Peer = {
  decline: ({ name }) => name === "codec" ? undefined : "sends nothing",
  prepare: () => ({ a: { value: undefined }, b: { value: undefined } }),
  open() {
    throw new Error("Cannot open: nothing is sent");
  },
  play({ scenario }: Order) {
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
    return Promise.resolve(reportOf(meter, undefined));
  },
  alone: true,
};

export default peer;
