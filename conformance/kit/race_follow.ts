/**
 * The kit's second thread as the reader of a live run: it looks at what `tail` covers at the very
 * moment at which it sees it, the last bytes first.
 *
 * @module
 */

import { type Clock, pause } from "./race_time.ts";
import { byteOf, type Message, Workload } from "./workload.ts";

/** Reads the messages of a seed out of a ring. Gives what is wrong, see `Flaw`, and what it saw. */
export interface Follow {
  do: "follow";
  /** Words of the control area. */
  tail: number;
  head: number;
  /** Where the byte area begins, in bytes. */
  data: number;
  capacity: number;
  /** Of the workload. */
  seed: number;
  count: number;
  sizes: number;
  /** Whether the messages have their numbers as tags, or 0. */
  isTagged: boolean;
}

/** What the first element of the result says; the second is the message, the third the offset. */
export const Flaw = {
  none: 0,
  /** A header is not that of the next frame of the message. */
  header: 1,
  /** A byte of a payload is not there. */
  payload: 2,
  /** `tail` stands in the middle of a frame. */
  tail: 3,
  /** There is no header yet: what was given back is cleared. */
  none_yet: 4,
} as const;

const HEADER = 16;
const PREAMBLE = 16;
const [DATA, PAD, EXTENSION] = [1, 6, 128];
const [FIRST, LAST] = [1, 2];
const ROUNDS = 64;

/**
 * Follows until all messages have come, or it is stopped. Behind the three numbers of the flaw, or
 * three of 0, come the messages of which the ring showed a part at some time, and not the rest.
 */
export function follow(order: Follow, words: Int32Array, clock: Clock): number[] {
  const follower = new Follower(order, words);
  while (!follower.isDone() && !clock.over()) follower.wait();
  return follower.found();
}

/** The messages of a seed as they must come out of a ring. */
export class Follower {
  readonly #order: Follow;
  readonly #words: Int32Array;
  readonly #bytes: Uint8Array;
  readonly #workload: Workload;
  #head: number;
  #message: Message;
  /** Bytes of the message that have come, and whether its first frame has. */
  #at = 0;
  #isBegun = false;
  #flaw: number[] | undefined;
  readonly #parted: number[] = [];
  #waits = 0;

  constructor(order: Follow, words: Int32Array) {
    this.#order = order;
    this.#words = words;
    this.#bytes = new Uint8Array(words.buffer, words.byteOffset, words.byteLength);
    this.#workload = new Workload(order.seed, order.sizes);
    this.#message = this.#workload.next();
    this.#head = Atomics.load(words, order.head);
  }

  /** Whether all messages have come. */
  isDone(): boolean {
    return this.#message.tag >= this.#order.count;
  }

  found(): number[] {
    return [...this.#flaw ?? [Flaw.none, 0, 0], ...this.#parted];
  }

  /** Looks for a while at what comes, and sleeps for a while in which others have the processor. */
  wait(): void {
    const deadline = performance.now() + (++this.#waits % 2 === 0 ? 0.3 : 0.02);
    do {
      for (let round = 0; round < ROUNDS; round++) this.look();
    } while (performance.now() < deadline && !this.isDone());
    pause(60 + 20 * (this.#waits % 5));
    this.look();
  }

  /** Looks at what `tail` covers now, and gives it back. */
  look(): void {
    const seen = Atomics.load(this.#words, this.#order.tail);
    if (this.#flaw !== undefined) {
      // Nothing more is to be learned; the testee goes on to its end.
      Atomics.store(this.#words, this.#order.head, seen);
      return;
    }
    if (seen === this.#head || this.isDone()) return;
    // The last word of all that must be payload, before anything else is looked at.
    const last = this.#words[this.#wordAt(seen - HEADER - 4)]!;
    const from = this.#head;
    while (this.#head !== seen && !this.isDone() && this.#flaw === undefined) {
      this.#take(seen, last);
    }
    if (this.#flaw !== undefined) return this.look();
    this.#clear(from, this.#head);
    if (this.#isBegun) this.#parted.push(this.#message.tag);
    Atomics.store(this.#words, this.#order.head, this.#head);
  }

  /** Index of the word at a position. */
  #wordAt(position: number): number {
    return (this.#order.data + (position & (this.#order.capacity - 1))) >> 2;
  }

  /** Goes over one frame. `last` is the word at the end of what `seen` covers. */
  #take(seen: number, last: number): void {
    const { capacity, data } = this.#order;
    const word = this.#wordAt(this.#head);
    const [size, second, tag] = [
      this.#words[word]! >>> 0,
      this.#words[word + 1]!,
      this.#words[word + 2]! >>> 0,
    ];
    const [kind, flags] = [second & 255, second >>> 8 & 255];
    const extent = HEADER + size + 15 & -16;
    const place = this.#head & (capacity - 1);
    const left = seen - this.#head | 0;
    if (extent > left || extent > capacity - place || extent < HEADER) {
      const isKnown = kind === DATA || kind === PAD;
      return this.#fail(isKnown ? Flaw.tail : second === 0 ? Flaw.none_yet : Flaw.header, 0);
    }
    if (kind === PAD || kind >= EXTENSION) {
      this.#head = this.#head + extent | 0;
      return;
    }
    const isFirst = !this.#isBegun;
    const preamble = isFirst && (flags & LAST) === 0 ? PREAMBLE : 0;
    const isPart = kind === DATA && (flags & FIRST) === Number(isFirst) && flags <= 3 &&
      tag === (this.#order.isTagged ? this.#message.tag : 0) && size >= preamble &&
      this.#at + size - preamble <= this.#message.size;
    if (!isPart) return this.#fail(second === 0 ? Flaw.none_yet : Flaw.header, 0);
    const from = data + place + HEADER + preamble;
    this.#check(from, size - preamble, extent === left ? last : undefined, size);
    this.#at += size - preamble;
    this.#isBegun = (flags & LAST) === 0;
    this.#head = this.#head + extent | 0;
    if (this.#isBegun) return;
    if (this.#at !== this.#message.size) return this.#fail(Flaw.header, this.#at);
    this.#message = this.#workload.next();
    this.#at = 0;
  }

  /** Compares a part with what it must be: its end first, which is written last. */
  #check(from: number, size: number, last: number | undefined, whole: number): void {
    const { first } = this.#message;
    // `last` is the word that ends 16 bytes before the frame does.
    const behind = (HEADER + whole + 15 & -16) - HEADER - 16;
    const at = behind - 4 - (whole - size);
    if (last !== undefined && at >= 0) {
      for (let byte = 0; byte < 4; byte++) {
        const must = byteOf(this.#message, this.#at + at + byte);
        if ((last >>> 8 * byte & 255) !== must) return this.#fail(Flaw.payload, this.#at + at);
      }
    }
    for (let index = size - 1; index >= 0; index--) {
      const offset = this.#at + index;
      if (this.#bytes[from + index] !== (first + offset + (offset >>> 8) & 255)) {
        return this.#fail(Flaw.payload, offset);
      }
    }
  }

  #fail(flaw: number, offset: number): void {
    this.#flaw ??= [flaw, this.#message.tag, offset];
  }

  /** What is given back is nothing that could be taken for a frame, or a part of one. */
  #clear(from: number, to: number): void {
    const { capacity, data } = this.#order;
    const size = to - from | 0;
    const place = from & (capacity - 1);
    const first = Math.min(size, capacity - place);
    this.#bytes.fill(0, data + place, data + place + first);
    this.#bytes.fill(0, data, data + size - first);
  }
}
