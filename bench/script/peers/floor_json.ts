/**
 * The floor of those who send JSON as text: each end makes the text of what it sends, and parses
 * the text of what it gets, which it has already. Only a word, or a count, goes from thread to
 * thread. Whoever sends text cannot be faster, however it does so.
 *
 * @module
 */
import type { BlockingEnd, Order, Peer } from "../peer.ts";
import { type Values, valuesOf } from "../payload.ts";
import words, { LINE, SpinningWord } from "./floor_atomics_spin.ts";
import { SleepingWord } from "./floor_atomics_wait.ts";
import { look } from "./floor_frame.ts";

const WINDOW = 4_096;

const peer: Peer = {
  decline({ name, format, ends, wait, pin, burst }) {
    if (format !== "json") return "JSON only";
    if (ends !== "workers") return "both ends block";
    if (name === "echo") return wait === "spin" && pin !== "free" ? "spins" : undefined;
    if (name !== "stream" && name !== "load") return "has no use for it";
    return wait !== "spin" || pin !== "free" || burst !== undefined ? "spins one way" : undefined;
  },
  prepare: words.prepare,
  open: (order: Order) => new JsonEnd(order, carrierOf(order)),
};

export default peer;

/** What brings the number of a message, and nothing else of it. */
type Carrier = Pick<BlockingEnd, "send" | "receive" | "sleeps">;

function carrierOf(order: Order): Carrier {
  const { name, wait } = order.scenario;
  if (name !== "echo") return new Count(order);
  return wait === "spin" ? new SpinningWord(order) : new SleepingWord(order);
}

class JsonEnd implements BlockingEnd {
  readonly kind = "blocking";
  readonly #carrier: Carrier;
  readonly #values: Values;
  /** By number. */
  readonly #texts: readonly string[];
  readonly #size: number;

  constructor({ scenario }: Order, carrier: Carrier) {
    this.#carrier = carrier;
    const values = this.#values = valuesOf(scenario);
    this.#size = scenario.size;
    this.#texts = Array.from({ length: 256 }, (_, value) => JSON.stringify(values.with(value)));
  }

  send(value: number): void {
    const { length } = JSON.stringify(this.#values.with(value));
    if (length !== this.#size) throw new Error(`The text has ${length} characters`);
    this.#carrier.send(value);
  }

  receive(): number {
    return this.#values.numberOf(JSON.parse(this.#texts[this.#carrier.receive()] as string));
  }

  sleeps(): number {
    return this.#carrier.sleeps?.() ?? 0;
  }

  close(): void {}
}

/** Messages one way, whose number is their place: a count of those sent, and of those taken. */
class Count implements Carrier {
  readonly #words: Int32Array;
  #sent = 0;
  #taken = 0;
  /** The count of the other end, as last seen. */
  #seen = 0;

  constructor({ gear }: Order) {
    this.#words = new Int32Array(gear as SharedArrayBuffer);
  }

  send(): void {
    for (let looks = 0; this.#sent - this.#seen >= WINDOW; looks++) {
      this.#seen = look(this.#words, LINE, looks);
    }
    Atomics.store(this.#words, 0, ++this.#sent);
  }

  receive(): number {
    for (let looks = 0; this.#seen === this.#taken; looks++) {
      this.#seen = look(this.#words, 0, looks);
    }
    const value = this.#taken++ & 255;
    Atomics.store(this.#words, LINE, this.#taken);
    return value;
  }
}
