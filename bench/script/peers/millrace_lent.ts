/** Our port without copies: `claim` and `publish`, `peek` and `release`. @module */
import { type Port, portMemory } from "../../../impl-ts/src/mod.ts";
import { type BlockingEnd, type Order, PATIENCE_MS, type Peer } from "../peer.ts";
import { readStamp, stamp } from "../payload.ts";
import { openPort, PortEnd, portOptions } from "./millrace.ts";

const WAIT = { timeout: PATIENCE_MS };
const CAPACITY_MIN = 256 * 1024;
/** A place has at most half of the ring: a little more than twice the message, and a power of 2. */
const SIZE_MAX = 16 * 1024 * 1024;

const peer: Peer = {
  decline({ name, format, ends, size }) {
    if (name === "idle") return "waits as millrace does";
    if (format !== "bytes") return "lends bytes only";
    if (ends !== "workers") return "measured between workers only";
    return size > SIZE_MAX ? "a ring of four times the message is too large" : undefined;
  },
  prepare(scenario) {
    const memory = portMemory(portOptions(scenario, capacityFor(scenario.size)));
    return { a: { value: memory }, b: { value: memory } };
  },
  open: (order: Order) => new LendingEnd(openPort(order, capacityFor(order.scenario.size)), order),
};

export default peer;

function capacityFor(size: number): number {
  return Math.max(CAPACITY_MIN, 2 ** Math.ceil(Math.log2(4 * size)));
}

class LendingEnd extends PortEnd<unknown> implements BlockingEnd {
  readonly #size: number;

  constructor(port: Port, { scenario }: Order) {
    super(port);
    this.#size = scenario.size;
  }

  send(number: number): void {
    const place = this.port.claim(this.#size, WAIT);
    stamp(place.area, place.offset, place.size, number);
    this.port.publish();
  }

  receive(): number {
    const lent = this.port.peek(WAIT);
    if (lent?.size !== this.#size) throw new Error(`A frame of ${lent?.size} bytes came`);
    const number = readStamp(lent.area, lent.offset, lent.size);
    this.port.release();
    return number;
  }

  tryReceive(): number {
    return this.port.tryPeek() === undefined ? -1 : this.receive();
  }
}
