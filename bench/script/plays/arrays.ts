/**
 * A write and a read on one thread: by the arrays that the caller brings, and by what the codec has
 * to do. No other thread, no wait: what is left is the library's own work.
 *
 * @module
 */
import { Port } from "../../../impl-ts/src/mod.ts";
import { readInto } from "../../../impl-ts/src/more/raw.ts";
import type { Result } from "../../contract.ts";
import { histogramOf, Meter } from "../meter.ts";
import { readStamp, stamp, valuesOf } from "../payload.ts";
import type { Order, Report } from "../peer.ts";
import { check, reportOf } from "./echo.ts";

/** Messages between two readings of the clock, for which arrays are made beforehand. */
const BATCH = 256;

/** Sends so many messages there, and takes each at once. */
type Exchange = (count: number) => void;

/**
 * Plays `arrays`: bytes from one array into one, from two in turn into two in turn, from a fresh
 * one into a fresh one, which are made before, and into those that `read` makes. They take turns.
 */
export function playArrays({ scenario }: Order): Report {
  const { size, warmup_ms, duration_ms } = scenario;
  const ways: readonly [string, (size: number) => Exchange][] = [
    ["same", (size) => intoArrays(size, 1)],
    ["in-turn", (size) => intoArrays(size, 2)],
    ["fresh", intoFresh],
    ["read", byRead],
  ];
  const lines = ways.map(([name, make]) => ({ name, exchange: make(size), laps: [] as number[] }));
  const warmUntil = performance.now() + warmup_ms;
  const end = warmUntil + duration_ms;
  let now = warmUntil;
  do {
    for (const { name, exchange, laps } of lines) {
      // The garbage of it shall not be collected in the time of the others.
      if (name === "fresh") prepare(size);
      const before = performance.now();
      exchange(BATCH);
      now = performance.now();
      if (before >= warmUntil) laps.push((now - before) / BATCH);
    }
  } while (now < end || lines.some(({ laps }) => laps.length === 0));
  const parts = lines.map(({ name, laps }): [string, Result] => {
    const count = laps.length * BATCH;
    const ms = laps.reduce((sum, lap) => sum + lap * BATCH, 0);
    return [name, { count, elapsed_ns: Math.round(ms * 1e6), latency: histogramOf(laps) }];
  });
  const elapsed_ns = Math.round((now - warmUntil) * 1e6);
  return { count: lines[0]!.laps.length * BATCH, elapsed_ns, parts: Object.fromEntries(parts) };
}

/** The arrays of the next batch, which nobody has seen yet. */
const fresh: Uint8Array[] = [];

function prepare(size: number): void {
  fresh.length = 0;
  for (let index = 0; index < 2 * BATCH; index++) fresh.push(new Uint8Array(size));
}

function pair(): readonly [Port<Uint8Array>, Port<Uint8Array>] {
  const here = Port.create<Uint8Array, Uint8Array>({ codec: "bytes" });
  return [here, Port.attach<Uint8Array, Uint8Array>(here.memory, { codec: "bytes" })];
}

function intoArrays(size: number, different: number): Exchange {
  const [here, there] = pair();
  const make = () => Array.from({ length: different }, () => new Uint8Array(size));
  const [sources, targets] = [make(), make()];
  return (count) => {
    for (let index = 0; index < count; index++) {
      const source = sources[index % different] as Uint8Array;
      const target = targets[index % different] as Uint8Array;
      exchange(here, there, source, target, index);
    }
  };
}

function intoFresh(): Exchange {
  const [here, there] = pair();
  return (count) => {
    for (let index = 0; index < count; index++) {
      const source = fresh[2 * index] as Uint8Array;
      exchange(here, there, source, fresh[2 * index + 1] as Uint8Array, index);
    }
  };
}

function exchange(
  here: Port<Uint8Array>,
  there: Port<Uint8Array>,
  source: Uint8Array,
  target: Uint8Array,
  number: number,
): void {
  stamp(source, 0, source.length, number);
  here.write(source);
  const size = readInto(there, target);
  if (size !== source.length) throw new Error(`A message of ${size} bytes came`);
  check(readStamp(target, 0, size), number);
}

function byRead(size: number): Exchange {
  const [here, there] = pair();
  const source = new Uint8Array(size);
  return (count) => {
    for (let index = 0; index < count; index++) {
      stamp(source, 0, size, index);
      here.write(source);
      check(readStamp(there.read() as Uint8Array, 0, size), index);
    }
  };
}

/** Plays `codec`: values in JSON, or texts. */
export function playCodec({ scenario }: Order): Report {
  const { format } = scenario;
  const codec = format as "json" | "text";
  const here = Port.create<unknown, unknown>({ codec } as object);
  const there = Port.attach<unknown, unknown>(here.memory, { codec } as object);
  const values = valuesOf(scenario);
  const meter = new Meter(scenario);
  let count = 0;
  do {
    here.write(values.with(count));
    check(values.numberOf(there.read()), count++);
  } while (meter.turn());
  return reportOf(meter, undefined);
}
