/**
 * What a meter costs, and what it says of a handler of known cost.
 *
 * @module
 */
import { estimate, type Meter, meter } from "../../../impl-ts/src/meter/meter.ts";
import type { Port } from "../../../impl-ts/src/mod.ts";
import type { Result, Scenario } from "../../contract.ts";
import { medianOf } from "../../runner/results.ts";
import { Control, nextTurn } from "../control.ts";
import { histogramOf } from "../meter.ts";
import { type BlockingEnd, type Order, PATIENCE_MS, type Report } from "../peer.ts";
import { check } from "./echo.ts";

/** Messages of a window, where the scenario does not say it. */
const WINDOW = 1_000;
/** Looks between two readings of the clock. */
const LOOKS = 1 << 16;
/** Six windows, and the next six: a slow change of the machine meets all ports as much. */
const TURNS = [[0, 1, 2, 2, 1, 0], [2, 1, 0, 0, 1, 2]] as const;
const LAST = TURNS[0].length - 1;
/** Plays a role with the ends of the ports `off`, `on` and `closed`. */
export function playMeter(ends: readonly BlockingEnd[], order: Order): Report {
  const control = new Control(order.control);
  return order.role === "a" ? send(ends, order, control) : receive(ends, order, control);
}

/** Sends a window when the one before is taken, so that no part of it is in the time of that. */
function send(ends: readonly BlockingEnd[], { scenario }: Order, control: Control): Report {
  const { window = WINDOW } = scenario;
  let count = 0;
  for (let turn = 0; !control.stopped; turn++) {
    for (const index of TURNS[turn & 1]!) {
      const end = ends[index]!;
      for (let n = 0; n < window; n++) end.send(count + n);
      count += window;
      waitUntilTaken(control, count);
    }
  }
  return {};
}

function waitUntilTaken(control: Control, count: number): void {
  const deadline = performance.now() + PATIENCE_MS;
  for (let look = 1; control.taken !== count; look++) {
    if (look % LOOKS === 0 && performance.now() > deadline) {
      throw new Error("The other end did not take the messages");
    }
  }
}

function receive(ends: readonly BlockingEnd[], { scenario }: Order, control: Control): Report {
  const { window = WINDOW, warmup_ms, duration_ms } = scenario;
  const laps: number[][] = [[], [], []];
  const warmUntil = performance.now() + warmup_ms;
  const until = warmUntil + duration_ms;
  let count = 0;
  for (let turn = 0; !control.stopped; turn++) {
    const counts = performance.now() >= warmUntil;
    for (const [at, index] of TURNS[turn & 1]!.entries()) {
      const ms = takeWindow(ends[index]!, window, count);
      if (counts) laps[index]!.push(ms / (window - 1));
      count += window;
      if (at === LAST && counts && performance.now() >= until) control.stop();
      control.taken = count;
    }
  }
  return reportOf(laps, window - 1);
}

/**
 * The rate without a meter is that of the window in the middle. Another one is by how many times
 * two windows took as long as their two neighbours without: again the one in the middle, as a pause
 * of the collector in one of them says nothing of the meter.
 */
function reportOf([off, on, closed]: number[][], messages: number): Report {
  const count = off!.length * messages;
  const base = medianOf(off!) * count * 1e6;
  const part = (laps: number[]): Result => {
    const elapsed_ns = Math.round(base * timesOf(laps, off!));
    return { count, elapsed_ns, latency: histogramOf(laps) };
  };
  const parts = { off: part(off!), on: part(on!), closed: part(closed!) };
  return { count, elapsed_ns: parts.on.elapsed_ns, parts };
}

function timesOf(laps: number[], off: number[]): number {
  const ratios: number[] = [];
  for (let index = 0; index < off.length; index += 2) {
    ratios.push((laps[index]! + laps[index + 1]!) / (off[index]! + off[index + 1]!));
  }
  return medianOf(ratios);
}

/** Takes a window; milliseconds from its first message to its last. */
function takeWindow(end: BlockingEnd, window: number, first: number): number {
  check(end.receive(), first);
  const start = performance.now();
  for (let n = 1; n < window; n++) check(end.receive(), first + n);
  return performance.now() - start;
}

/** Messages at once, so that all but the first of them wait, up to 20 times the service. */
const BURST = 21;
/** Memory for the times of a burst. */
export const TIMES_SIZE = 8 * BURST;
const WAIT = { timeout: PATIENCE_MS };

/** A port without a meter, one with, and memory for the times at which messages were written. */
export interface Ways {
  readonly bare: Port<number>;
  readonly metered: Port<number>;
  readonly times: Float64Array;
}

/** How many bursts warm up, and how many are measured; as many messages of each for `estimate`. */
function burstsOf({ warmup_ms, duration_ms, task_us = 0 }: Scenario): [warm: number, all: number] {
  const bursts = (ms: number) => Math.max(1, Math.ceil(ms * 1000 / (task_us * BURST)));
  const warm = bursts(warmup_ms);
  return [warm, warm + bursts(duration_ms)];
}

/** Plays a role. */
export async function playHandler(ways: Ways, order: Order): Promise<Report> {
  const control = new Control(order.control);
  using metered = meter(ways.metered);
  return order.role === "a"
    ? await write(ways, order, control)
    : await serve(ways, metered, order, control);
}

async function write(
  { bare, metered, times }: Ways,
  { scenario }: Order,
  control: Control,
): Promise<Report> {
  const [, bursts] = burstsOf(scenario);
  control.showClock();
  for (let burst = 0; burst < bursts; burst++) {
    for (let n = 0; n < BURST; n++) {
      metered.write(n, WAIT);
      times[n] = performance.now();
    }
    const deadline = performance.now() + PATIENCE_MS;
    while (control.taken <= burst) {
      if (performance.now() > deadline) throw new Error("The other end did not take the messages");
      await nextTurn();
    }
  }
  for (let n = 0; n < bursts * BURST; n++) await bare.writeAsync(n);
  return {};
}

/** A handler that is busy for so long, and notes for how long it was. */
function busyFor(task_us: number, spent: number[]): () => void {
  return () => {
    const from = performance.now();
    let now = from;
    while (now - from < task_us / 1000) now = performance.now();
    spent.push(now - from);
  };
}

async function serve(
  { metered, bare, times }: Ways,
  reading: Meter,
  { scenario }: Order,
  control: Control,
): Promise<Report> {
  const { task_us = 0 } = scenario;
  const [warm, bursts] = burstsOf(scenario);
  const offset = control.readClock();
  const [service, waiting, alone]: number[][] = [[], [], []];
  const work = busyFor(task_us, service!);
  let done = () => {};
  let next = 0;
  metered.onmessage = ({ data }) => {
    waiting!.push(performance.now() - (times[data]! + offset));
    check(data, next++ % BURST);
    work();
    if (data === BURST - 1) done();
  };
  for (let burst = 0; burst < bursts; burst++) {
    if (burst === warm) {
      reading.reset();
      service!.length = waiting!.length = 0;
    }
    const isDone = new Promise<void>((resolve) => done = resolve);
    if (burst > 0) control.taken = burst;
    await isDone;
    await nextTurn(); // after the end of its service
  }
  metered.onmessage = null;
  const { incoming } = reading.snapshot();
  control.taken = bursts;
  const handler = busyFor(task_us, alone!);
  await estimate(bare, handler, { count: warm * BURST });
  alone!.length = 0;
  const estimated = await estimate(bare, handler, { count: (bursts - warm) * BURST });
  const count = service!.length;
  const part = (us: number): Result => ({ count, elapsed_ns: Math.round(us * 1000 * count) });
  return {
    ...part(estimated.service.p50),
    parts: {
      "service": part(medianOf(service!) * 1000),
      "service-metered": part(incoming!.service.p50),
      "alone": part(medianOf(alone!) * 1000),
      "alone-estimated": part(estimated.service.p50),
      "waiting": part(medianOf(waiting!) * 1000),
      "waiting-metered": part(incoming!.waiting.p50),
    },
  };
}
