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
  open: (order: Order) => new RingEnd(order),
};

/** The peer of this file. */
export const peers = { "ringbuf": peer };

class RingEnd implements BlockingEnd {
  readonly kind = "blocking";
  readonly #size: number;
  readonly #writer: Ring;
  readonly #reader: Ring;
  readonly #outgoing: Uint8Array;
  readonly #incoming: Uint8Array;

  constructor({ gear, scenario }: Order) {
    const [there, back] = gear as [SharedArrayBuffer, SharedArrayBuffer];
    this.#size = scenario.size;
    this.#writer = new RingBuffer(there, Uint8Array);
    this.#reader = new RingBuffer(back, Uint8Array);
    this.#outgoing = new Uint8Array(this.#size);
    this.#incoming = new Uint8Array(this.#size);
  }

  send(number: number): void {
    stamp(this.#outgoing, 0, this.#size, number);
    let looks = 0;
    while (this.#writer.available_write() < this.#size) refuse(++looks);
    this.#writer.push(this.#outgoing);
  }

  receive(): number {
    let looks = 0;
    while (this.#reader.available_read() < this.#size) refuse(++looks);
    this.#reader.pop(this.#incoming);
    return readStamp(this.#incoming, 0, this.#size);
  }

  tryReceive(): number {
    return this.#reader.available_read() < this.#size ? -1 : this.receive();
  }

  close(): void {}
}

/** A look takes some nanoseconds. */
function refuse(looks: number): void {
  if (looks > PATIENCE_MS * 1e5) throw new Error("The other end does not go on");
}
