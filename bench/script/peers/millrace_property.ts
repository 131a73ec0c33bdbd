/**
 * Two of our properties, one for each direction, as a drop box: who asks sets one, and looks again
 * and again at the other.
 *
 * @module
 */
import { SharedProperties } from "../../../impl-ts/src/property/property.ts";
import type { PropertyReader } from "../../../impl-ts/src/property/property.ts";
import type { Scenario } from "../../contract.ts";
import { readStamp, stamp, type Values, valuesOf } from "../payload.ts";
import { type BlockingEnd, both, type End, type Order, PATIENCE_MS, type Peer } from "../peer.ts";

type Box = { there: unknown; back: unknown };

const WAIT = { timeout: PATIENCE_MS };
/** Looks before it sleeps: the other thread is to answer at once. */
const LOOKS = 1_000_000;

const peer: Peer = {
  decline: ({ name }) => name === "dropbox" ? undefined : "holds the latest value, and no others",
  prepare({ size }) {
    const properties = { there: { writer: 0, size }, back: { writer: 1, size } };
    const { memory } = SharedProperties.create<Box>({ properties, endpoint: 2 });
    return both(memory);
  },
  open: (order): End => new BoxEnd(order),
};

/** The peer of this file. */
export const peers = { "millrace-property": peer };

class BoxEnd implements BlockingEnd {
  readonly kind = "blocking";
  readonly #box: SharedProperties<Box>;
  readonly #reader: PropertyReader;
  readonly #own: keyof Box;
  readonly #size: number;
  /** The values, where they are not bytes. */
  readonly #values: Values | undefined;
  readonly #bytes: Uint8Array;
  readonly #came: Uint8Array;

  constructor({ gear, role, scenario }: Order) {
    const endpoint = role === "a" ? 0 : 1;
    this.#box = SharedProperties.attach<Box>(gear as SharedArrayBuffer, { endpoint });
    this.#own = role === "a" ? "there" : "back";
    this.#reader = this.#box.reader(role === "a" ? "back" : "there");
    this.#size = scenario.size;
    this.#values = isBytes(scenario) ? undefined : valuesOf(scenario);
    this.#bytes = new Uint8Array(scenario.size);
    this.#came = new Uint8Array(this.#reader.capacity);
  }

  send(number: number): void {
    if (this.#values === undefined) stamp(this.#bytes, 0, this.#size, number);
    this.#box.set(this.#own, this.#values?.with(number) ?? this.#bytes);
  }

  receive(): number {
    for (let looks = 0; looks < LOOKS; looks++) {
      const number = this.tryReceive();
      if (number >= 0) return number;
    }
    if (!this.#reader.wait(WAIT)) throw new Error("No value came");
    return this.tryReceive();
  }

  tryReceive(): number {
    const reader = this.#reader;
    if (reader.version === reader.seen) return -1;
    if (this.#values !== undefined) return this.#values.numberOf(reader.get());
    if (reader.getInto(this.#came) !== this.#size) throw new Error("Another value came");
    return readStamp(this.#came, 0, this.#size);
  }

  close(): void {
    this.#box.close();
  }
}

function isBytes({ format }: Scenario): boolean {
  return format === "bytes";
}
