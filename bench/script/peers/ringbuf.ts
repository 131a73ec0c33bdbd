/**
 * `ringbuf.js`: a ring of elements without frames or sleep, so that each message has one size.
 *
 * @module
 */
import * as library from "ringbuf.js";
import { type BlockingEnd, type Order, PATIENCE_MS, type Peer } from "../peer.ts";
import { readStamp, stamp } from "../payload.ts";

/** What is used of it; its own declarations do not compile. */
interface Ring {
  push(elements: Uint8Array): number;
  pop(elements: Uint8Array): number;
  available_read(): number;
  available_write(): number;
}

const { RingBuffer } = library as unknown as {
  RingBuffer: {
    new (memory: SharedArrayBuffer, type: typeof Uint8Array): Ring;
    getStorageForCapacity(capacity: number, type: typeof Uint8Array): SharedArrayBuffer;
  };
};

const CAPACITY_MIN = 256 * 1024;

const peer: Peer = {
  decline({ name, format, ends, wait, pin, size }) {
    if (format !== "bytes") return "takes elements of arrays only";
    if (name === "idle") return "does not wait";
    if (wait !== "spin" || pin !== "free") return "does not sleep";
    if (ends !== "workers") return "has no events";
    return size > 1 << 24 ? "a ring larger than the message is too large" : undefined;
  },
  prepare({ size }) {
    // As large as our ring for the same message.
    const capacity = Math.max(CAPACITY_MIN, 2 ** Math.ceil(Math.log2(4 * size)));
    const make = () => RingBuffer.getStorageForCapacity(capacity, Uint8Array);
    const [there, back] = [make(), make()];
    return { a: { value: [there, back] }, b: { value: [back, there] } };
  },
  open: ringEnd,
};

/** The peer of this file. */
export const peers = { "ringbuf": peer };

function ringEnd({ gear, scenario: { size } }: Order): BlockingEnd {
  const [there, back] = gear as [SharedArrayBuffer, SharedArrayBuffer];
  const [writer, reader] = [new RingBuffer(there, Uint8Array), new RingBuffer(back, Uint8Array)];
  const [outgoing, incoming] = [new Uint8Array(size), new Uint8Array(size)];
  const receive = (): number => {
    for (let looks = 1; reader.available_read() < size; looks++) refuse(looks);
    reader.pop(incoming);
    return readStamp(incoming, 0, size);
  };
  return {
    kind: "blocking",
    send(number) {
      stamp(outgoing, 0, size, number);
      for (let looks = 1; writer.available_write() < size; looks++) refuse(looks);
      writer.push(outgoing);
    },
    receive,
    tryReceive: () => reader.available_read() < size ? -1 : receive(),
    close() {},
  };
}

/** A look takes some nanoseconds. */
function refuse(looks: number): void {
  if (looks > PATIENCE_MS * 1e5) throw new Error("The other end does not go on");
}
