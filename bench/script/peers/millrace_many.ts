/** Our port with `writeMany` and `readMany`: several values are one publish. @module */
import type { Port } from "../../../impl-ts/src/mod.ts";
import { readMany, writeMany } from "../../../impl-ts/src/more/many.ts";
import { type BlockingEnd, type Order, PATIENCE_MS, type Peer } from "../peer.ts";
import { type Values, valuesOf } from "../payload.ts";
import millrace, { openPort, PortEnd } from "./millrace.ts";

const WAIT = { timeout: PATIENCE_MS };
/** Values in one call. */
const MANY = 64;

const peer: Peer = {
  decline({ name, ends, format, wait }) {
    if (name !== "stream") return "gathers what is sent one way";
    if (ends !== "workers" || wait !== "spin") return "measured between workers only";
    return format === "json" ? undefined : "measured with JSON only";
  },
  prepare: millrace.prepare,
  open: (order: Order) => new ManyEnd(openPort(order), order),
};

export default peer;

class ManyEnd extends PortEnd<unknown> implements BlockingEnd {
  /** Those of each place: a value is made anew only for the same place. */
  readonly #values: readonly Values[];
  readonly #outgoing: unknown[];
  #incoming: unknown[] = [];
  #gathered = 0;
  #taken = 0;

  constructor(port: Port, { scenario }: Order) {
    super(port);
    this.#values = Array.from({ length: MANY }, () => valuesOf(scenario));
    this.#outgoing = this.#values.map((values) => values.with(0));
  }

  send(value: number): void {
    const place = this.#gathered++;
    this.#outgoing[place] = this.#values[place]!.with(value);
    if (this.#gathered === MANY) this.flush();
  }

  flush(): void {
    const { length } = this.#outgoing;
    const values = this.#gathered === length
      ? this.#outgoing
      : this.#outgoing.slice(0, this.#gathered);
    this.#gathered = 0;
    if (values.length > 0) writeMany(this.port, values, WAIT);
  }

  receive(): number {
    if (this.#taken === this.#incoming.length) {
      this.#incoming = readMany(this.port, MANY, WAIT) ?? [];
      this.#taken = 0;
      if (this.#incoming.length === 0) throw new Error("No message came");
    }
    return this.#values[0]!.numberOf(this.#incoming[this.#taken++]);
  }
}
