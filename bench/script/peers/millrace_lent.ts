/** Our port without copies: `claim` and `publish`, `peek` and `release`. @module */
import { type Port, portMemory } from "../../../impl-ts/src/mod.ts";
import { claim, peek, publish, release, tryPeek } from "../../../impl-ts/src/more/lend.ts";
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
    const place = claim(this.port, this.#size, WAIT);
    stamp(place.area, place.offset, place.size, number);
    publish(this.port);
  }

  receive(): number {
    const lent = peek(this.port, WAIT);
    if (lent?.size !== this.#size) throw new Error(`A frame of ${lent?.size} bytes came`);
    const number = readStamp(lent.area, lent.offset, lent.size);
    release(this.port);
    return number;
  }

  tryReceive(): number {
    return tryPeek(this.port) === undefined ? -1 : this.receive();
  }
}
