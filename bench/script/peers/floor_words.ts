/**
 * The floors of peers that block: words, and frames of bytes, that go from thread to thread with
 * nothing around them.
 *
 * @module
 */
import { type BlockingEnd, both, type Order, PATIENCE_MS, type Peer } from "../peer.ts";
import { readStamp, stamp, valuesOf } from "../payload.ts";

/** Words of a line, and of the one that is fetched with it. */
const LINE = 32;

/** One word there and one back, each on a line of its own, both threads looking. */
const spinning: Peer = {
  decline({ name, ends, wait, pin, size }) {
    if (name !== "echo" && name !== "calls") return "no message, only a word there and back";
    if (wait !== "spin" || pin !== "free") return "spins";
    if (ends !== "workers") return "both ends block";
    return size > 128 ? "no payload" : undefined;
  },
  prepare: prepareWords,
  open: (order: Order) => new SpinningWord(order),
};

/** The floor of peers that sleep: the same by `Atomics.wait` and `notify`. */
const sleeping: Peer = {
  decline({ name, ends, wait, size }) {
    if (name !== "echo" && name !== "idle") return "no message, only a word there and back";
    if (wait !== "park") return "sleeps";
    if (ends !== "workers") return "both ends block";
    return size > 128 ? "no payload" : undefined;
  },
  prepare: prepareWords,
  open: (order: Order) => new SleepingWord(order),
};

function prepareWords() {
  return both(new SharedArrayBuffer(4 * 3 * LINE));
}

/** A word that changes with each message, and has its number. */
abstract class Word {
  readonly kind = "blocking";
  protected readonly words: Int32Array;
  protected readonly outgoing: number;
  protected readonly incoming: number;
  protected seen = 0;
  #sent = 0;

  constructor({ gear, role }: Order) {
    this.words = new Int32Array(gear as SharedArrayBuffer);
    this.outgoing = role === "a" ? 0 : LINE;
    this.incoming = LINE - this.outgoing;
  }

  /** The word counts in its upper bits, so that the same number twice is a change. */
  send(number: number): void {
    this.#sent = (this.#sent + 256) & 0x7fffff00;
    Atomics.store(this.words, this.outgoing, this.#sent | (number & 255));
  }

  close(): void {}
}

class SpinningWord extends Word implements BlockingEnd {
  receive(): number {
    let word = Atomics.load(this.words, this.incoming);
    for (let looks = 1; word === this.seen; looks++) {
      word = look(this.words, this.incoming, looks);
    }
    this.seen = word;
    return word & 255;
  }
}

class SleepingWord extends Word implements BlockingEnd {
  #sleeps = 0;

  override send(number: number): void {
    super.send(number);
    Atomics.notify(this.words, this.outgoing);
  }

  receive(): number {
    let word = Atomics.load(this.words, this.incoming);
    while (word === this.seen) {
      const woken = Atomics.wait(this.words, this.incoming, word, PATIENCE_MS);
      if (woken === "timed-out") throw new Error("No answer came");
      if (woken === "ok") this.#sleeps++;
      word = Atomics.load(this.words, this.incoming);
    }
    this.seen = word;
    return word & 255;
  }

  idle(ms: number): void {
    this.#sleeps++;
    Atomics.wait(this.words, this.incoming, this.seen, ms);
  }

  sleeps(): number {
    return this.#sleeps;
  }
}

/**
 * The floor of peers that frame bytes: the least that a ring of frames does, with sleepers that are
 * looked for, but never there. No pipe, no state, no error, one size of message, no wait that ends.
 * What is left are a header, a copy in and out, and five accesses that are atomic for each message.
 */
const frame: Peer = {
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
function look(words: Int32Array, word: number, looks: number): number {
  if (looks > PATIENCE_MS * 1e6) throw new Error("The other end does not go on");
  return Atomics.load(words, word);
}

/**
 * The floor of peers that send JSON as text: each end makes the text of what it sends, and parses
 * the text of what it gets, which it has already. Only a word, or a count, goes from thread to
 * thread. Whoever sends text cannot be faster, however it does so.
 */
const json: Peer = {
  decline({ name, format, ends, wait, pin, burst }) {
    if (format !== "json") return "JSON only";
    if (ends !== "workers") return "both ends block";
    if (name === "echo") return wait === "spin" && pin !== "free" ? "spins" : undefined;
    if (name !== "stream" && name !== "load") return "has no use for it";
    return wait !== "spin" || pin !== "free" || burst !== undefined ? "spins one way" : undefined;
  },
  prepare: prepareWords,
  open: (order: Order) => jsonEnd(order, carrierOf(order)),
};

const WINDOW = 4_096;

/** What brings the number of a message, and nothing else of it. */
type Carrier = Pick<BlockingEnd, "send" | "receive" | "sleeps">;

function carrierOf(order: Order): Carrier {
  const { name, wait } = order.scenario;
  if (name !== "echo") return new Count(order);
  return wait === "spin" ? new SpinningWord(order) : new SleepingWord(order);
}

function jsonEnd({ scenario }: Order, carrier: Carrier): BlockingEnd {
  const { size } = scenario;
  const values = valuesOf(scenario);
  /** By number. */
  const texts = Array.from({ length: 256 }, (_, value) => JSON.stringify(values.with(value)));
  return {
    kind: "blocking",
    send(number) {
      const { length } = JSON.stringify(values.with(number));
      if (length !== size) throw new Error(`The text has ${length} characters`);
      carrier.send(number);
    },
    receive: () => values.numberOf(JSON.parse(texts[carrier.receive()] as string)),
    sleeps: () => carrier.sleeps?.() ?? 0,
    close() {},
  };
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

/** The peers of this file. */
export const peers = {
  "floor-atomics-spin": spinning,
  "floor-atomics-wait": sleeping,
  "floor-frame": frame,
  "floor-json": json,
};
