/** Our port with `writeMany` and `readMany`: several values are one publish. @module */
import type { Port } from "../../../impl-ts/src/mod.ts";
import { type BlockingEnd, type Order, PATIENCE_MS, type Peer } from "../peer.ts";
import { makeMove, type Move, number, type Values, valuesOf } from "../payload.ts";
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

class ManyEnd extends PortEnd<Move> implements BlockingEnd {
  readonly #values: Values;
  readonly #outgoing: Move[];
  #incoming: Move[] = [];
  #gathered = 0;
  #taken = 0;

  constructor(port: Port<Move>, { scenario }: Order) {
    super(port);
    this.#values = valuesOf(scenario);
    this.#outgoing = Array.from({ length: MANY }, () => makeMove(scenario.size));
  }

  send(value: number): void {
    number(this.#outgoing[this.#gathered++]!, value);
    if (this.#gathered === MANY) this.flush();
  }

  flush(): void {
    const { length } = this.#outgoing;
    const values = this.#gathered === length
      ? this.#outgoing
      : this.#outgoing.slice(0, this.#gathered);
    this.#gathered = 0;
    if (values.length > 0) this.port.writeMany(values, WAIT);
  }

  receive(): number {
    if (this.#taken === this.#incoming.length) {
      this.#incoming = this.port.readMany(MANY, WAIT) ?? [];
      this.#taken = 0;
      if (this.#incoming.length === 0) throw new Error("No message came");
    }
    return this.#values.numberOf(this.#incoming[this.#taken++]);
  }
}
