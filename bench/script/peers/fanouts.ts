/**
 * The peers of `fanout`: one writer in a worker, which starts those of its readers, and as many
 * messages as all of them get within a while.
 *
 * @module
 */
import { type FanoutHandoff, FanoutReader } from "../../../impl-ts/src/fanout/fanout.ts";
import { FanoutWriter } from "../../../impl-ts/src/fanout/fanout.ts";
import { Port, type PortHandoff } from "../../../impl-ts/src/mod.ts";
import { Hub } from "../../../impl-ts/src/more/hub.ts";
import type { Scenario } from "../../contract.ts";
import { nextTurn } from "../control.ts";
import { valuesOf } from "../payload.ts";
import { type BlockingEnd, type EventEnd, type Gear, hear, lonePeer, type Order } from "../peer.ts";
import { PATIENCE_MS, type Peer, type Report } from "../peer.ts";
import type { Place, Player } from "../place.ts";
import { check } from "../plays/echo.ts";
import { receivingEnd } from "./messageport.ts";

/** Bounds every wait of a verb that blocks. */
const WAIT = { timeout: PATIENCE_MS };
/** Bytes of each ring of ours. */
const CAPACITY = 256 * 1024;
/** Messages between two looks at the clock, and at how far the readers are. */
const STEP = 64;
const WINDOW = 4_096;
/** Turns of the event loop in which a sender that waits looks, before it sleeps for 1 ms. */
const TURNS = 8;
/** Words of 32 bits, each on a line of its own: how many there are in all, and each one's count. */
const LINE = 32;

/** The side of the writer. */
interface Sender {
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
type Taker =
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
function fanoutPeer(
  openSender: (scenario: Scenario, readers: number) => Sender,
  openTaker: (gear: unknown, scenario: Scenario) => Taker,
): Peer {
  return lonePeer(
    ({ name }) => name === "fanout" ? undefined : "only one writer and its readers",
    (order, place) => {
      if (order.role === "a") return playSender(openSender, order, place);
      const { gear, counts, index } = order.gear as TakerGear;
      const taker = openTaker(gear, order.scenario);
      return playTaker(taker, new Int32Array(counts), index);
    },
  );
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
      const heard = hear(taker, take);
      Atomics.store(words, word, 1);
      await heard;
    }
    return {};
  } finally {
    await taker.close();
  }
}

/** What an end of ours is made with. */
function optionsOf({ format, wait }: Scenario) {
  const codec = format === "bytes" ? "bytes" : "json";
  return { codec, ...wait === "park" ? { spin: 0 } : {} } as const;
}

/** The peers of this file. */
export const peers = {
  /** Ours in mode `hold`: the slowest reader holds the writer back. */
  "millrace-fanout": fanoutPeer((scenario, readers) => {
    const options = { ...optionsOf(scenario), readers, capacity: CAPACITY };
    const writer = FanoutWriter.create<unknown>(options);
    const values = valuesOf(scenario);
    return {
      gears: Array.from({ length: readers }, (_, reader) => ({ value: writer.handoff(reader) })),
      turns: false,
      send: (number) => writer.write(values.with(number), WAIT),
      close: () => writer.close(),
    };
  }, (gear, scenario) => {
    const reader = FanoutReader.from<unknown>(gear as FanoutHandoff, optionsOf(scenario));
    const values = valuesOf(scenario);
    return {
      kind: "blocking",
      receive: () => values.numberOf(reader.read(WAIT)),
      close: () => reader.close(),
    };
  }),
  /** The same by hand over our hub: each message is written to each port. */
  "millrace-hub": fanoutPeer((scenario, readers) => {
    const hub = Hub.create<unknown>(readers, { ...optionsOf(scenario), capacity: CAPACITY });
    const values = valuesOf(scenario);
    return {
      gears: hub.ports.map((port) => ({ value: port.handoff() })),
      turns: false,
      send(number) {
        const value = values.with(number);
        for (const port of hub.ports) port.write(value, WAIT);
      },
      close: () => hub.close(),
    };
  }, (gear, scenario) => {
    const port = Port.from<unknown>(gear as PortHandoff, optionsOf(scenario));
    const values = valuesOf(scenario);
    return {
      kind: "blocking",
      receive: () => values.numberOf(port.read(WAIT)),
      close: () => port.close(),
    };
  }),
  /** A `MessagePort` for each reader, to each of which every message is posted. */
  "messageport-each": fanoutPeer((scenario, readers) => {
    const channels = Array.from({ length: readers }, () => new MessageChannel());
    const values = valuesOf(scenario);
    return {
      gears: channels.map(({ port2 }) => ({ value: port2, transfer: [port2] })),
      turns: true,
      send(number) {
        const value = values.with(number);
        for (const { port1 } of channels) port1.postMessage(value);
      },
      close() {
        for (const { port1 } of channels) port1.close();
      },
    };
  }, (gear, scenario) => receivingEnd(gear as MessagePort, valuesOf(scenario).numberOf)),
  /**
   * The runtime's own, one object for each reader. That of Deno loses messages of which some
   * hundred are unread, and says nothing: there, all are to be taken before the next ones.
   */
  "broadcast-channel": fanoutPeer((scenario, readers) => {
    const name = `millrace-${crypto.randomUUID()}`;
    const channel = new BroadcastChannel(name);
    const values = valuesOf(scenario);
    return {
      gears: Array.from({ length: readers }, () => ({ value: name })),
      turns: true,
      ..."Deno" in globalThis ? { window: 0 } : {},
      send: (number) => channel.postMessage(values.with(number)),
      close: () => channel.close(),
    };
  }, (gear, scenario) => {
    const channel = new BroadcastChannel(gear as string);
    const values = valuesOf(scenario);
    return {
      kind: "events",
      listen: (take) => channel.onmessage = ({ data }) => take(values.numberOf(data)),
      close: () => channel.close(),
    };
  }),
};
