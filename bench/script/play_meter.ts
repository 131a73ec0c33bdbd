/**
 * What a meter costs: the same stream through three ports of the same two threads. One never had a
 * meter, one has a meter at each end, and one had them, and they were closed. Two processes differ
 * by more than a meter costs, so the ports are measured in short windows that take turns.
 *
 * @module
 */
import type { Result } from "../contract.ts";
import { medianOf } from "../runner/results.ts";
import { Control } from "./control.ts";
import { histogramOf } from "./meter.ts";
import { type BlockingEnd, type Order, PATIENCE_MS, type Report } from "./peer.ts";
import { check } from "./play_echo.ts";

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
