/**
 * The floor: one word there and one back, each on a line of its own, both threads looking.
 *
 * @module
 */
import { type BlockingEnd, type Order, PATIENCE_MS, type Peer } from "../peer.ts";

/** Words of a line, and of the one that is fetched with it. */
export const LINE = 32;

const peer: Peer = {
  decline({ name, ends, wait, pin, size }) {
    if (name !== "echo" && name !== "calls") return "no message, only a word there and back";
    if (wait !== "spin" || pin !== "free") return "spins";
    if (ends !== "workers") return "both ends block";
    return size > 128 ? "no payload" : undefined;
  },
  prepare() {
    const memory = new SharedArrayBuffer(4 * 3 * LINE);
    return { a: { value: memory }, b: { value: memory } };
  },
  open: (order: Order) => new SpinningWord(order),
};

export default peer;

/** A word that changes with each message, and has its number. */
export class SpinningWord implements BlockingEnd {
  readonly kind = "blocking";
  readonly #words: Int32Array;
  readonly #outgoing: number;
  readonly #incoming: number;
  #sent = 0;
  #seen = 0;

  constructor({ gear, role }: Order) {
    this.#words = new Int32Array(gear as SharedArrayBuffer);
    this.#outgoing = role === "a" ? 0 : LINE;
    this.#incoming = LINE - this.#outgoing;
  }

  /** The word counts in its upper bits, so that the same number twice is a change. */
  send(number: number): void {
    this.#sent = (this.#sent + 256) & 0x7fffff00;
    Atomics.store(this.#words, this.#outgoing, this.#sent | (number & 255));
  }

  receive(): number {
    let word = Atomics.load(this.#words, this.#incoming);
    for (let looks = 1; word === this.#seen; looks++) {
      if (looks % 0x100_0000 === 0) this.#refuse(looks);
      word = Atomics.load(this.#words, this.#incoming);
    }
    this.#seen = word;
    return word & 255;
  }

  close(): void {}

  /** A look takes a nanosecond or more. */
  #refuse(looks: number): void {
    if (looks > PATIENCE_MS * 1e6) throw new Error("No answer came");
  }
}
