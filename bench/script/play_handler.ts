/**
 * What a meter and an estimate say of a handler whose cost is known: it is busy for a time that it
 * measures itself, and the thread that writes notes when each message was there. By the real clock.
 *
 * @module
 */
import { estimate, type Meter, meter } from "../../impl-ts/src/meter/meter.ts";
import type { Port } from "../../impl-ts/src/mod.ts";
import type { Result, Scenario } from "../contract.ts";
import { medianOf } from "../runner/results.ts";
import { Control, nextTurn } from "./control.ts";
import { type Order, PATIENCE_MS, type Report } from "./peer.ts";
import { check } from "./play_echo.ts";

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
    await nextTurn(); // behind the end of its service
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
