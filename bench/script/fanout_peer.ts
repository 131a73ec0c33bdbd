/**
 * What the peers of `fanout` have in common: one writer in a worker, which starts those of its
 * readers, and as many messages as all of them get within a while.
 *
 * @module
 */
import type { Scenario } from "../contract.ts";
import { type BlockingEnd, type EventEnd, type Gear, type Order, PATIENCE_MS } from "./peer.ts";
import type { Peer, Report } from "./peer.ts";
import type { Place, Player } from "./place.ts";
import { nextTurn } from "./next_turn.ts";
import { check } from "./play_echo.ts";

/** Bounds every wait of a verb that blocks. */
export const WAIT = { timeout: PATIENCE_MS };
/** Bytes of each ring of ours. */
export const CAPACITY = 256 * 1024;
/** Messages between two looks at the clock, and at how far the readers are. */
const STEP = 64;
const WINDOW = 4_096;
/** Turns of the event loop in which a sender that waits looks, before it sleeps for 1 ms. */
const TURNS = 8;
/** Words of 32 bits, each on a line of its own: how many there are in all, and each one's count. */
const LINE = 32;

/** The side of the writer. */
export interface Sender {
  /** What each reader gets. */
  readonly gears: readonly Gear[];
  /** Sends one to all. */
  send(number: number): void;
  /** Whether what was sent goes out, or makes room, only when the event loop turns. */
  readonly turns: boolean;
  /** Most messages under way, a step apart, where it is not the usual number. */
  readonly window?: number;
  close(): void;
}

/** The side of a reader: only what it takes. */
export type Taker =
  | Pick<BlockingEnd, "kind" | "receive" | "close">
  | Pick<EventEnd, "kind" | "listen" | "close">;

/** What a reader's thread gets. */
interface TakerGear {
  readonly gear: unknown;
  readonly counts: SharedArrayBuffer;
  readonly index: number;
}

/** The threads of the readers, which stay from one repetition to the next. */
const players: Player[] = [];

/** A peer of `fanout`, by how its two sides are made. */
export function fanoutPeer(
  openSender: (scenario: Scenario, readers: number) => Sender,
  openTaker: (gear: unknown, scenario: Scenario) => Taker,
): Peer {
  return {
    decline: ({ name }) => name === "fanout" ? undefined : "only one writer and its readers",
    prepare: () => ({ a: { value: undefined }, b: { value: undefined } }),
    open() {
      throw new Error("Cannot open: a fanout has more than two ends");
    },
    play(order, place) {
      if (order.role === "a") return playSender(openSender, order, place);
      const { gear, counts, index } = order.gear as TakerGear;
      const taker = openTaker(gear, order.scenario);
      return playTaker(taker, new Int32Array(counts), index);
    },
    alone: true,
  };
}

async function playSender(
  openSender: (scenario: Scenario, readers: number) => Sender,
  order: Order,
  place: Place,
): Promise<Report> {
  const { scenario } = order;
  const { readers = 1, warmup_ms, duration_ms } = scenario;
  while (players.length < readers) players.push(place.startPlayer());
  const sender = openSender(scenario, readers);
  const counts = new SharedArrayBuffer(4 * LINE * (readers + 1));
  const words = new Int32Array(counts);
  const played = sender.gears.map(({ value, transfer = [] }, index) => {
    const gear: TakerGear = { gear: value, counts, index };
    const own: Order = { ...order, role: "b", gear };
    return players[index]!.play(own, { value: gear, transfer });
  });
  const failed = Promise.all(played).then(() => undefined);
  try {
    const run = new SendRun(sender, words, readers);
    await Promise.race([failed, run.waitFor(0)]); // until all are there
    await Promise.race([failed, run.sendFor(warmup_ms, false)]);
    const before = run.count;
    const began = performance.now();
    await Promise.race([failed, run.sendFor(duration_ms, true)]);
    const elapsed = performance.now() - began;
    await failed;
    const count = run.count - before;
    return { count, elapsed_ns: Math.round(elapsed * 1e6), bytes: count * scenario.size };
  } finally {
    sender.close();
  }
}

/** Sends, and waits for the readers. */
class SendRun {
  count = 0;
  readonly #sender: Sender;
  readonly #words: Int32Array;
  readonly #readers: number;

  constructor(sender: Sender, words: Int32Array, readers: number) {
    this.#sender = sender;
    this.#words = words;
    this.#readers = readers;
  }

  /** Sends for so many milliseconds, and until all readers have got all of it. */
  async sendFor(ms: number, isLast: boolean): Promise<void> {
    const end = performance.now() + ms;
    do {
      for (let left = STEP; left > 0; left--) this.#sender.send(this.count++);
      await this.waitFor(this.count - (this.#sender.window ?? WINDOW));
    } while (performance.now() < end);
    if (isLast) Atomics.store(this.#words, 0, this.count + 1);
    this.#sender.send(this.count++);
    await this.waitFor(this.count);
  }

  /** Waits until all readers have got so many. */
  async waitFor(count: number): Promise<void> {
    const deadline = performance.now() + PATIENCE_MS;
    for (let turns = 0;; turns++) {
      let least = Infinity;
      for (let index = 1; index <= this.#readers; index++) {
        least = Math.min(least, Atomics.load(this.#words, index * LINE) - 1);
      }
      if (least >= count && (turns > 0 || !this.#sender.turns)) return;
      if (performance.now() > deadline) throw new Error(`A reader got ${least} of ${count}`);
      // Then a timer: who looks again and again takes a processor from a reader.
      await (turns < TURNS ? nextTurn() : new Promise((resolve) => setTimeout(resolve, 1)));
    }
  }
}

/** Takes until the last message. The word holds one more than were taken, 0 before it has come. */
async function playTaker(taker: Taker, words: Int32Array, index: number): Promise<Report> {
  const word = (index + 1) * LINE;
  let count = 0;
  const take = (number: number): boolean => {
    check(number, count++);
    Atomics.store(words, word, count + 1);
    return count === Atomics.load(words, 0);
  };
  try {
    if (taker.kind === "blocking") {
      Atomics.store(words, word, 1);
      while (!take(taker.receive())) { /* the next one */ }
    } else {
      await new Promise<void>((resolve, reject) => {
        taker.listen((number) => {
          try {
            if (take(number)) resolve();
          } catch (error) {
            reject(error);
          }
        });
        Atomics.store(words, word, 1);
      });
    }
    return {};
  } finally {
    await taker.close();
  }
}
