/**
 * What the kit's second thread can be told to do to the memory of a testee. Each order is a loop on
 * shared words that ends by itself, when it is stopped, or when its time is up.
 *
 * @module
 */

import { byteOf, type Message, Workload } from "../live/workload.ts";
import { CannotHalt, Halter } from "./halter.ts";

// How the kit's second thread waits.

/** An order that nobody stops ends by itself. */
const BOUND_MS = 20_000;

/** Below this nothing can be slept: the shortest sleep takes about as long. */
const SLEEP_MIN_US = 60;

const still = new Int32Array(new SharedArrayBuffer(4));

/** Says when an order is over. */
class Clock {
  readonly #stop: Int32Array;
  readonly #deadline: number;

  constructor(stop: Int32Array, ms: number) {
    this.#stop = stop;
    this.#deadline = performance.now() + ms;
  }

  over(): boolean {
    return Atomics.load(this.#stop, 0) !== 0 || performance.now() >= this.#deadline;
  }
}

/**
 * Takes a while, asleep where that can be: whoever wakes is given a processor at once, and the one
 * who has it is held up wherever it stands.
 */
function pause(us: number): void {
  if (us >= SLEEP_MIN_US) {
    Atomics.wait(still, 0, 0, (us - SLEEP_MIN_US) / 1000);
    return;
  }
  const deadline = performance.now() + us / 1000;
  while (performance.now() < deadline);
}

/** Takes a few nanoseconds, so many times. */
function pass(turns: number): void {
  for (let turn = 0; turn < turns; turn++) Atomics.load(still, 0);
}

// The kit's second thread as the reader of a live run: it looks at what `tail` covers at the very
// moment at which it sees it, the last bytes first.

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
 * Follows until all messages have come, or it is stopped. After the three numbers of the flaw, or
 * three of 0, come the messages of which the ring showed a part at some time, and not the rest.
 */
function follow(order: Follow, words: Int32Array, clock: Clock): number[] {
  const follower = new Follower(order, words);
  while (!follower.isDone() && !clock.over()) follower.wait();
  return follower.found();
}

/** The messages of a seed as they must come out of a ring. */
class Follower {
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

/** A word and what to store there. */
export type Store = [index: number, value: number];

/** One thing after the other. */
interface Steps {
  do: "steps";
  steps: Step[];
}

/**
 * `load`, `exchange` and `change`, a compare-exchange, give what they find. `turn` stores one of
 * some values, each time another one. `until` and `while` wait for a word, and take all of a
 * processor meanwhile; `advance` sleeps, and looks now and then whether a word, which only grows,
 * has gone beyond a number, for a time that is bounded.
 */
export type Step =
  | { store: Store[] }
  | { pauseUs: number }
  | { pass: number }
  | { until: Store }
  | { while: Store }
  | { advance: Store }
  | { load: number }
  | { exchange: Store }
  | { add: Store }
  | { change: [index: number, from: number, to: number] }
  | { turn: { index: number; values: number[] } }
  | { fill: { from: number; to: number; value: number } };

/**
 * Stores the values of words in turn, over and over: `index` and so many words after it, each so
 * many further on. With `feed` it publishes what stands in the ring, units of equal size, so many
 * bytes ahead of `head`; with `wrong`, so many more first, and at once the right number again.
 */
export interface Flip {
  do: "flip";
  index: number;
  count: number;
  step: number;
  values: number[];
  feed?: { tail: number; head: number; unit: number; ahead: number; wrong?: number };
  /** It ends when this word is something else. */
  while?: Store;
}

/**
 * Takes a word by compare-exchange and gives it back, again and again, until somebody else has it.
 * Ends with the word taken. Gives how it ended: 0 by itself; 1 somebody else took it; 2 somebody
 * has changed it while it was taken; 3 a word that is watched has changed meanwhile; and that word.
 */
interface Toggle {
  do: "toggle";
  word: number;
  free: number;
  taken: number;
  /** Words that nobody else may change as long as it is taken. */
  watched: Store[];
}

/** Looks whether words are there as soon as another is. Gives the first that is not, or -1. */
interface Formed {
  do: "formed";
  /** It looks for the first time after so long a sleep; from then on all the time. */
  afterUs: number;
  ready: Store;
  words: Store[];
}

/** Gives all values that a word takes, as far as they are seen. */
interface Values {
  do: "values";
  word: number;
}

/**
 * Halts the testee, a process on a file, whenever it has touched a word, and makes moves then.
 * Gives how often each word was touched, and then what the moves have found.
 */
export interface Halt {
  do: "halt";
  /** The process group, and the file; the field knows them. */
  group?: number;
  path?: string;
  words: { index: number; access: "load" | "store" }[];
  /** Whether it maps the file in its next call only. */
  isLate?: boolean;
  moves: Move[];
  /** Where the first word is `tail`: the kit follows, at every store. */
  follow?: Follow;
}

/** What to do when a word was touched. */
export interface Move {
  /** Which of the words. */
  word: number;
  /** At which of its accesses, counted from 0; without it, at all of them. */
  at?: number;
  /** Only where the word is this now. */
  equals?: number;
  steps: Step[];
}

export type Order = Steps | Flip | Toggle | Formed | Values | Follow | Halt;

/** As short a sleep as there is. */
const SLEEP_US = 60;

/** Carries an order out, and says when it is at work. */
export function carryOut(
  order: Order,
  words: Int32Array,
  stop: Int32Array,
  begun: () => void,
): number[] {
  const clock = new Clock(stop, BOUND_MS);
  if (order.do !== "halt") begun();
  switch (order.do) {
    case "steps":
      return takeSteps(order, words, clock);
    case "flip":
      return flip(order, words, clock);
    case "toggle":
      return toggle(order, words, clock);
    case "formed":
      return formed(order, words, clock);
    case "values":
      return values(order, words, clock);
    case "follow":
      return follow(order, words, clock);
    case "halt":
      return halt(order, words, clock, begun);
  }
}

function takeSteps({ steps }: Steps, words: Int32Array, clock: Clock): number[] {
  const found: number[] = [];
  for (const step of steps) takeStep(step, words, clock, found, 0);
  return found;
}

/** `count` says how often this step was taken before. */
function takeStep(
  step: Step,
  words: Int32Array,
  clock: Clock,
  found: number[],
  count: number,
): void {
  if ("store" in step) {
    for (const [index, value] of step.store) Atomics.store(words, index, value);
  } else if ("pauseUs" in step) pause(step.pauseUs);
  else if ("pass" in step) pass(step.pass);
  else if ("until" in step) waitFor(words, step.until, true, clock);
  else if ("while" in step) waitFor(words, step.while, false, clock);
  else if ("advance" in step) advance(words, step.advance);
  else if ("load" in step) found.push(Atomics.load(words, step.load) >>> 0);
  else if ("exchange" in step) {
    const [index, value] = step.exchange;
    found.push(Atomics.exchange(words, index, value) >>> 0);
  } else if ("change" in step) {
    const [index, from, to] = step.change;
    found.push(Atomics.compareExchange(words, index, from, to) >>> 0);
  } else if ("turn" in step) {
    const { index, values } = step.turn;
    Atomics.store(words, index, values[(count + 1) % values.length]!);
  } else if ("add" in step) Atomics.add(words, ...step.add);
  else words.fill(step.fill.value, step.fill.from, step.fill.to);
}

function waitFor(words: Int32Array, [index, value]: Store, isIt: boolean, clock: Clock): void {
  while (!clock.over()) {
    for (let round = 0; round < ROUNDS; round++) {
      if ((Atomics.load(words, index) === (value | 0)) === isIt) return;
    }
  }
}

/** How long a word may take to advance. */
const ADVANCE_MS = 20;

function advance(words: Int32Array, [index, from]: Store): void {
  const deadline = performance.now() + ADVANCE_MS;
  while ((Atomics.load(words, index) - from | 0) <= 0 && performance.now() < deadline) pause(60);
}

/** Passes over the words between two sleeps, at most. */
const PASSES_MAX = 16;

function flip(order: Flip, words: Int32Array, clock: Clock): number[] {
  const { index, count, step, feed } = order;
  const values = Int32Array.from(order.values);
  const [guard, guarded] = order.while ?? [index, 0];
  let round = 0;
  for (let burst = 0; !clock.over(); burst++) {
    const passes = 1 + burst * 7 % PASSES_MAX;
    for (let pass = 0; pass < passes; pass++, round++) {
      // Every value of a word comes at another time than that of the next: no order is repeated.
      for (let at = 0; at < count; at++) {
        Atomics.store(words, index + at * step, values[(round + at) % values.length]!);
      }
      if (feed === undefined) continue;
      const tail = (Atomics.load(words, feed.head) & -feed.unit) + feed.ahead | 0;
      if (feed.wrong !== undefined) Atomics.store(words, feed.tail, tail + feed.wrong | 0);
      Atomics.store(words, feed.tail, tail);
    }
    if (order.while !== undefined && Atomics.load(words, guard) !== guarded) break;
    // Whoever shares this processor goes on meanwhile, and is held up where it then is.
    if (burst % 2 === 1) pause(SLEEP_US);
  }
  return [round];
}

function toggle(order: Toggle, words: Int32Array, clock: Clock): number[] {
  const { word, watched } = order;
  const [free, taken] = [order.free | 0, order.taken | 0];
  for (let round = 0;; round++) {
    const before = Atomics.compareExchange(words, word, free, taken);
    if (before !== free) return [1, before >>> 0, round];
    // Taken for longer than it is free: whoever does not look again comes in between.
    pass(1 + round % 16);
    for (const [index, value] of watched) {
      const found = Atomics.load(words, index);
      if (found !== (value | 0)) return [3, found >>> 0, index];
    }
    if (round % ROUNDS === 0 && clock.over()) return [0, 0, round];
    const after = Atomics.compareExchange(words, word, taken, free);
    if (after !== taken) return [2, after >>> 0, round];
  }
}

function formed(order: Formed, words: Int32Array, clock: Clock): number[] {
  const indices = Int32Array.from(order.words.map(([index]) => index));
  const values = Int32Array.from(order.words.map(([, value]) => value | 0));
  const found = new Int32Array(indices.length);
  pause(order.afterUs);
  waitFor(words, order.ready, true, clock);
  // First all looks, as quickly as it goes.
  for (let at = 0; at < indices.length; at++) found[at] = Atomics.load(words, indices[at]!);
  const wrong = found.findIndex((value, at) => value !== values[at]!);
  return wrong < 0 ? [-1, 0] : [indices[wrong]!, found[wrong]! >>> 0];
}

/** More than that, nobody has to see. */
const VALUES_MAX = 4096;

function values({ word }: Values, words: Int32Array, clock: Clock): number[] {
  let last = Atomics.load(words, word);
  const found = [last >>> 0];
  while (!clock.over() && found.length < VALUES_MAX) {
    for (let round = 0; round < 16 * ROUNDS; round++) {
      const value = Atomics.load(words, word);
      if (value === last) continue;
      found.push(value >>> 0);
      last = value;
    }
  }
  return found;
}

/** Looks at the testee between two sleeps. */
const LOOKS = 16;

function halt(order: Halt, words: Int32Array, clock: Clock, begun: () => void): number[] {
  const { group, path, moves, isLate = false } = order;
  if (group === undefined || path === undefined) throw new CannotHalt("it is no process on a file");
  const places = order.words.map(({ index, access }) => ({ offset: 4 * index, access }));
  const counts = places.map(() => 0);
  const taken = moves.map(() => 0);
  const found: number[] = [];
  const follower = order.follow && new Follower(order.follow, words);
  const halter = new Halter(group, path, places, isLate);
  try {
    begun();
    for (let looks = 1; !clock.over(); looks++) {
      const stop = halter.poll();
      if (stop === undefined) {
        if (looks % LOOKS === 0) pause(SLEEP_US);
        continue;
      }
      looks = 0;
      const count = counts[stop.word]!++;
      const value = Atomics.load(words, order.words[stop.word]!.index);
      for (const [index, { word, at, equals, steps }] of moves.entries()) {
        if (word !== stop.word || at !== undefined && at !== count) continue;
        if (equals !== undefined && equals !== value) continue;
        for (const step of steps) takeStep(step, words, clock, found, taken[index]!);
        taken[index]!++;
      }
      if (stop.word === 0) follower?.look();
      halter.go(stop.thread);
    }
  } finally {
    halter.release();
  }
  return [...counts, ...found, ...follower?.found() ?? []];
}
