/**
 * The floor of those who frame bytes: the least that a ring of frames does, with sleepers that are
 * looked for, but never there. No pipe, no state, no error, one size of message, no wait that ends.
 * What is left are a header, a copy in and out, and five accesses that are atomic for each message.
 *
 * @module
 */
import { type BlockingEnd, type Order, PATIENCE_MS, type Peer } from "../peer.ts";
import { readStamp, stamp } from "../payload.ts";

const HEADER_SIZE = 16;
const FRAMES = 2_048;
/** What is longer is copied faster by `set` than by words, and then this would be no floor. */
const SIZE_MAX = 256;
/** The control words of a ring, each on a pair of lines of its own. */
const TAIL = 0;
const HEAD = 32;
const READER_WANTS = 64;
const WRITER_WANTS = 96;
const CONTROL_SIZE = 512;

const peer: Peer = {
  decline({ name, format, ends, wait, pin, size, burst }) {
    if (format !== "bytes") return "bytes only";
    if (name !== "echo" && name !== "stream" || burst !== undefined) return "has no use for it";
    if (wait !== "spin" || pin !== "free") return "spins";
    if (ends !== "workers") return "both ends block";
    return size % 16 === 0 && size <= SIZE_MAX ? undefined : "short frames, in steps of 16 bytes";
  },
  prepare({ size }) {
    const make = () => new SharedArrayBuffer(CONTROL_SIZE + FRAMES * (HEADER_SIZE + size));
    const [there, back] = [make(), make()];
    return { a: { value: [there, back] }, b: { value: [back, there] } };
  },
  open: (order: Order) => new FrameEnd(order),
};

export default peer;

class FrameEnd implements BlockingEnd {
  readonly kind = "blocking";
  readonly #size: number;
  readonly #extent: number;
  readonly #outgoing: Int32Array;
  readonly #incoming: Int32Array;
  readonly #source: Uint8Array;
  readonly #sourceWords: Int32Array;
  readonly #target: Uint8Array;
  readonly #targetWords: Int32Array;
  /** Of the ring that is written: frames published, and given back as far as seen. */
  #tail = 0;
  #freed = 0;
  /** Of the ring that is read: frames taken, given back, and published as far as seen. */
  #head = 0;
  #stored = 0;
  #seen = 0;
  #rings = 0;

  constructor({ gear, scenario: { size } }: Order) {
    const [outgoing, incoming] = gear as [SharedArrayBuffer, SharedArrayBuffer];
    this.#size = size;
    this.#extent = HEADER_SIZE + size;
    this.#outgoing = new Int32Array(outgoing);
    this.#incoming = new Int32Array(incoming);
    this.#source = new Uint8Array(size);
    this.#sourceWords = new Int32Array(this.#source.buffer);
    this.#target = new Uint8Array(size);
    this.#targetWords = new Int32Array(this.#target.buffer);
  }

  send(number: number): void {
    stamp(this.#source, 0, this.#size, number);
    const words = this.#outgoing;
    for (let looks = 0; this.#tail - this.#freed >= FRAMES; looks++) {
      this.#freed = look(words, HEAD, looks);
    }
    const at = (CONTROL_SIZE + (this.#tail % FRAMES) * this.#extent) >> 2;
    words[at] = this.#size;
    words[at + 1] = 0;
    words[at + 2] = 0;
    words[at + 3] = 0;
    copy(words, at + 4, this.#sourceWords, 0, this.#size >> 2);
    Atomics.store(words, TAIL, ++this.#tail);
    if (Atomics.load(words, READER_WANTS) !== 0) this.#rings++;
  }

  receive(): number {
    const words = this.#incoming;
    for (let looks = 0; this.#seen === this.#head; looks++) this.#seen = look(words, TAIL, looks);
    const at = (CONTROL_SIZE + (this.#head % FRAMES) * this.#extent) >> 2;
    if (words[at] !== this.#size) throw new Error("A frame has another size than was sent");
    copy(this.#targetWords, 0, words, at + 4, this.#size >> 2);
    this.#head++;
    if (this.#head === this.#seen || this.#head - this.#stored >= FRAMES / 4) {
      this.#stored = this.#head;
      Atomics.store(words, HEAD, this.#head);
      if (Atomics.load(words, WRITER_WANTS) !== 0) this.#rings++;
    }
    return readStamp(this.#target, 0, this.#size);
  }

  close(): void {}
}

/** By words. */
function copy(to: Int32Array, at: number, from: Int32Array, start: number, count: number): void {
  for (let i = 0; i < count; i++) to[at + i] = from[start + i] as number;
}

/** One look at a word of the other end. It takes a nanosecond or more. */
export function look(words: Int32Array, word: number, looks: number): number {
  if (looks > PATIENCE_MS * 1e6) throw new Error("The other end does not go on");
  return Atomics.load(words, word);
}
