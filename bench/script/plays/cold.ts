/**
 * The first messages of threads that have never sent one: each is timed, and nothing warms up.
 *
 * @module
 */
import type { Result } from "../../contract.ts";
import { Control } from "../control.ts";
import { histogramOf, type Turns } from "../meter.ts";
import type { End, Order, Report } from "../peer.ts";
import { askBlocking, askEvents, playEcho } from "./echo.ts";
import { send, sendEvents, sends, stepOf, take, takeEvents } from "./stream.ts";

/** Until the other end waits: it is ready a little before. */
const SETTLE_MS = 20;

/** Plays a role of `cold`: one message there and back, one at a time. */
export async function playCold(end: End, order: Order): Promise<Report> {
  if (order.role === "b") return await playEcho(end, order);
  const control = new Control(order.control);
  await settle(control);
  const bands = new Bands(order.scenario.parts);
  bands.begin(performance.now());
  if (end.kind === "blocking") askBlocking(end, bands, control);
  else await askEvents(end, bands, control);
  return bands.report(true);
}

/**
 * Plays a role of a fresh `stream` or `burst`: the receiver notes when each message is there, from
 * when the sender began. A burst is sent in one go.
 */
export async function playColdStream(end: End, order: Order): Promise<Report> {
  const { scenario } = order;
  const control = new Control(order.control);
  if (sends(order)) {
    await settle(control);
    control.start = epochNow();
    if (scenario.burst !== undefined) await sendBurst(end, scenario.burst, order, control);
    else if (end.kind === "blocking") send(end, control);
    else await sendEvents(end, order, control);
    return {};
  }
  const bands = new Bands(scenario.parts);
  const step = stepOf(scenario);
  if (end.kind === "blocking") take(end, bands, control, undefined, step);
  else await takeEvents(end, bands, control, undefined, step);
  bands.begin(control.start - performance.timeOrigin);
  return bands.report(false);
}

async function sendBurst(end: End, size: number, order: Order, control: Control): Promise<void> {
  const { awaited = false } = order.scenario;
  control.total = size;
  for (let count = 0; count < size; count++) {
    const sent = end.send(count);
    if (awaited || count === size - 1) await sent;
  }
  if (end.kind === "blocking") end.flush?.();
}

/** Waits until both ends are there, and the other one waits. */
export async function settle(control: Control): Promise<void> {
  await control.waitUntilReady(2);
  await new Promise((resolve) => setTimeout(resolve, SETTLE_MS));
}

/** The time on a clock that all threads share. */
function epochNow(): number {
  return performance.timeOrigin + performance.now();
}

/** Notes the time of each turn, up to the last of the parts. */
export class Bands implements Turns {
  readonly #parts: readonly { name: string; from: number; to: number }[];
  /** The end of each turn; before the first, the beginning. */
  readonly #times: Float64Array;
  #count = 0;

  constructor(names: readonly string[] = []) {
    this.#parts = names.map((name) => {
      const [from = 1, to = from] = name.split("-").map(Number);
      return { name, from, to };
    });
    this.#times = new Float64Array(1 + Math.max(...this.#parts.map(({ to }) => to)));
  }

  begin(time: number): void {
    this.#times[0] = time;
  }

  turn(): boolean {
    this.#times[++this.#count] = performance.now();
    return this.#count < this.#times.length - 1;
  }

  /** The time of each part; of single turns, where they are apart, with how each was. */
  report(isApart: boolean): Report {
    const parts = this.#parts.map(({ name, from, to }): [string, Result] => {
      const times = this.#times.subarray(from - 1, to + 1);
      const count = to - from + 1;
      const elapsed_ns = Math.round((times[count]! - times[0]!) * 1e6);
      const turns = Array.from({ length: count }, (_, index) => times[index + 1]! - times[index]!);
      const latency = isApart && count > 1 ? { latency: histogramOf(turns) } : {};
      return [name, { count, elapsed_ns, ...latency }];
    });
    const elapsed_ns = Math.round((this.#times[this.#count]! - this.#times[0]!) * 1e6);
    return { count: this.#count, elapsed_ns, parts: Object.fromEntries(parts) };
  }
}
