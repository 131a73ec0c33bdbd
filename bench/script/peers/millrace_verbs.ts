/**
 * Our port by other verbs: without copies (`claim` and `publish`, `peek` and `release`), several
 * values as one publish (`writeMany` and `readMany`), and three ports between the same threads, one
 * of them with a meter at each end.
 *
 * @module
 */
import { meter } from "../../../impl-ts/src/meter/meter.ts";
import { type Port, portMemory } from "../../../impl-ts/src/mod.ts";
import { claim, peek, publish, release, tryPeek } from "../../../impl-ts/src/more/lend.ts";
import { readMany, writeMany } from "../../../impl-ts/src/more/many.ts";
import { readStamp, stamp, valuesOf } from "../payload.ts";
import { type BlockingEnd, both, type Order, PATIENCE_MS, type Peer } from "../peer.ts";
import type { Report } from "../peer.ts";
import { playHandler, playMeter, TIMES_SIZE } from "../plays/meter.ts";
import { openPort, portEnd, portOptions, portValues, sharedPort } from "./millrace.ts";

const WAIT = { timeout: PATIENCE_MS };
const CAPACITY_MIN = 256 * 1024;
/** A place has at most half of the ring: a little more than twice the message, and a power of 2. */
const SIZE_MAX = 16 * 1024 * 1024;

const lending: Peer = {
  decline({ name, format, ends, size }) {
    if (name === "idle") return "waits as millrace does";
    if (format !== "bytes") return "lends bytes only";
    if (ends !== "workers") return "measured between workers only";
    return size > SIZE_MAX ? "a ring of four times the message is too large" : undefined;
  },
  prepare(scenario) {
    return both(portMemory(portOptions(scenario, capacityFor(scenario.size))));
  },
  open: (order) =>
    lendingEnd(openPort(order, capacityFor(order.scenario.size)), order.scenario.size),
};

function capacityFor(size: number): number {
  return Math.max(CAPACITY_MIN, 2 ** Math.ceil(Math.log2(4 * size)));
}

function lendingEnd(port: Port, size: number): BlockingEnd {
  const receive = (): number => {
    const lent = peek(port, WAIT);
    if (lent?.size !== size) throw new Error(`A frame of ${lent?.size} bytes came`);
    const number = readStamp(lent.area, lent.offset, lent.size);
    release(port);
    return number;
  };
  return {
    ...portEnd(port),
    send(number) {
      const place = claim(port, size, WAIT);
      stamp(place.area, place.offset, place.size, number);
      publish(port);
    },
    receive,
    tryReceive: () => tryPeek(port) === undefined ? -1 : receive(),
  };
}

/** Values in one call. */
const MANY = 64;

const gathering: Peer = {
  decline({ name, ends, format, wait }) {
    if (name !== "stream") return "gathers what is sent one way";
    if (ends !== "workers" || wait !== "spin") return "measured between workers only";
    return format === "json" ? undefined : "measured with JSON only";
  },
  prepare: sharedPort,
  open: (order) => manyEnd(openPort(order), order),
};

function manyEnd(port: Port, { scenario }: Order): BlockingEnd {
  /** Those of each place: a value is made anew only for the same place. */
  const values = Array.from({ length: MANY }, () => valuesOf(scenario));
  const outgoing = values.map((each) => each.with(0));
  let incoming: unknown[] = [];
  let gathered = 0;
  let taken = 0;
  const flush = (): void => {
    const all = gathered === MANY ? outgoing : outgoing.slice(0, gathered);
    gathered = 0;
    if (all.length > 0) writeMany(port, all, WAIT);
  };
  return {
    ...portEnd(port),
    send(number) {
      const place = gathered++;
      outgoing[place] = values[place]!.with(number);
      if (gathered === MANY) flush();
    },
    flush,
    receive() {
      if (taken === incoming.length) {
        incoming = readMany(port, MANY, WAIT) ?? [];
        taken = 0;
        if (incoming.length === 0) throw new Error("No message came");
      }
      return values[0]!.numberOf(incoming[taken++]);
    },
  };
}

/** What each thread gets. */
interface Shared {
  readonly memories: readonly SharedArrayBuffer[];
  readonly times: SharedArrayBuffer;
}

const metered: Peer = {
  decline: ({ name }) => name === "meter" ? undefined : "of meters only",
  prepare({ ...scenario }) {
    const value: Shared = {
      memories: [1, 2, 3].map(() => portMemory(portOptions(scenario))),
      times: new SharedArrayBuffer(TIMES_SIZE),
    };
    return both(value);
  },
  open() {
    throw new Error("Cannot open: it has several ports");
  },
  play: async (order) => await playBoth(order),
};

async function playBoth(order: Order): Promise<Report> {
  const { memories, times } = order.gear as Shared;
  const { scenario } = order;
  if (scenario.task_us === undefined) return playStreams(memories, order);
  using bare = openPort<number>({ ...order, gear: memories[0] });
  using metered = openPort<number>({ ...order, gear: memories[1] });
  return await playHandler({ bare, metered, times: new Float64Array(times) }, order);
}

function playStreams(memories: readonly SharedArrayBuffer[], order: Order): Report {
  const ports = memories.map((gear) => openPort<unknown>({ ...order, gear }));
  meter(ports[1]!);
  meter(ports[2]!).close();
  const ends = ports.map((port) => portValues(port, order.scenario));
  try {
    return playMeter(ends, order);
  } finally {
    for (const end of ends) end.close();
  }
}

/** The peers of this file. */
export const peers = {
  "millrace-lent": lending,
  "millrace-many": gathering,
  "millrace-metered": metered,
};
