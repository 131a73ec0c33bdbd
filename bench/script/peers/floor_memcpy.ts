/**
 * The floor of those who copy: one thread copies the payload into shared memory and out.
 *
 * @module
 */
import { Meter } from "../meter.ts";
import type { Order, Peer } from "../peer.ts";
import { reportOf } from "../play_echo.ts";
import { readStamp, stamp } from "../payload.ts";

/** As much memory as a ring has, so that the same caches serve both. */
const RING_SIZE = 256 * 1024;

const peer: Peer = {
  decline({ name, format, ends, burst }) {
    if (name !== "stream" && name !== "large") return "only copies";
    if (burst !== undefined) return "has nobody who confirms";
    if (ends !== "workers") return "one thread";
    return format === "bytes" ? undefined : "bytes only";
  },
  prepare: () => ({ a: { value: undefined }, b: { value: undefined } }),
  open() {
    throw new Error("Cannot open: nothing is sent");
  },
  play({ scenario }: Order) {
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
    return Promise.resolve({ count: copied, elapsed_ns, bytes: copied * size, notes });
  },
  alone: true,
};

export default peer;
