/**
 * The floor of those who sleep: one word there and one back, `Atomics.wait` and `notify`.
 *
 * @module
 */
import { type BlockingEnd, type Order, PATIENCE_MS, type Peer } from "../peer.ts";
import words, { LINE } from "./floor_atomics_spin.ts";

const peer: Peer = {
  decline({ name, ends, wait, size }) {
    if (name !== "echo" && name !== "idle") return "no message, only a word there and back";
    if (wait !== "park") return "sleeps";
    if (ends !== "workers") return "both ends block";
    return size > 128 ? "no payload" : undefined;
  },
  prepare: words.prepare,
  open: (order: Order) => new SleepingWord(order),
};

export default peer;

/** A word that changes with each message, and has its number. */
export class SleepingWord implements BlockingEnd {
  readonly kind = "blocking";
  readonly #words: Int32Array;
  readonly #outgoing: number;
  readonly #incoming: number;
  #sent = 0;
  #seen = 0;
  #sleeps = 0;

  constructor({ gear, role }: Order) {
    this.#words = new Int32Array(gear as SharedArrayBuffer);
    this.#outgoing = role === "a" ? 0 : LINE;
    this.#incoming = LINE - this.#outgoing;
  }

  send(number: number): void {
    this.#sent = (this.#sent + 256) & 0x7fffff00;
    Atomics.store(this.#words, this.#outgoing, this.#sent | (number & 255));
    Atomics.notify(this.#words, this.#outgoing);
  }

  receive(): number {
    let word = Atomics.load(this.#words, this.#incoming);
    while (word === this.#seen) {
      const woken = Atomics.wait(this.#words, this.#incoming, word, PATIENCE_MS);
      if (woken === "timed-out") throw new Error("No answer came");
      if (woken === "ok") this.#sleeps++;
      word = Atomics.load(this.#words, this.#incoming);
    }
    this.#seen = word;
    return word & 255;
  }

  idle(ms: number): void {
    this.#sleeps++;
    Atomics.wait(this.#words, this.#incoming, this.#seen, ms);
  }

  sleeps(): number {
    return this.#sleeps;
  }

  close(): void {}
}
