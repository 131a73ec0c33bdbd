/**
 * An open loop: messages arrive by a schedule made ahead, whether or not the last one is done. A
 * stall is therefore not hidden: all that should have arrived meanwhile has waited.
 *
 * @module
 */
import { Control } from "./control.ts";
import { histogramOf } from "./meter.ts";
import type { End, Order, Report } from "./peer.ts";
import { check } from "./play_echo.ts";

/** A sender that is so many times slower than its schedule, and so much later, gives up. */
const LATE_MAX = 3;
const LATE_MS = 1_000;

/** Plays a role of `load`. */
export function playLoad(end: End, order: Order): Promise<Report> {
  const control = new Control(order.control);
  return order.role === "a" ? offer(end, order, control) : serve(end, order, control);
}

function countsOf({ scenario }: Order): { warm: number; total: number; gapMs: number } {
  const { rate = 1000, duration_ms, warmup_ms } = scenario;
  const warm = Math.ceil(rate * warmup_ms / 1000);
  return { warm, total: warm + Math.ceil(rate * duration_ms / 1000), gapMs: 1000 / rate };
}

async function offer(end: End, order: Order, control: Control): Promise<Report> {
  const { total, gapMs } = countsOf(order);
  control.showClock();
  const start = performance.now() + 1;
  control.start = start;
  control.total = total;
  const deadline = start + LATE_MAX * total * gapMs + LATE_MS;
  let count = 0;
  while (count < total - 1) {
    const due = start + count * gapMs;
    let now = performance.now();
    while (now < due) now = performance.now();
    if (now > deadline) {
      control.total = count + 1;
      break;
    }
    end.send(count++);
  }
  await end.send(count);
  if (end.kind === "blocking") end.flush?.();
  return count + 1 === total ? {} : { notes: [`gave up after ${count + 1} of ${total} messages`] };
}

async function serve(end: End, order: Order, control: Control): Promise<Report> {
  const { warm, total, gapMs } = countsOf(order);
  const serviceMs = (order.scenario.service_us ?? 0) / 1000;
  const waiting = new Float64Array(total - warm);
  const service = new Float64Array(total - warm);
  const offset = control.readClock();
  let count = 0;
  let begun = 0;
  let lastDone = 0;
  /** Serves one message; false behind the last. */
  const take = (number: number): boolean => {
    const arrived = performance.now();
    check(number, count);
    let done = arrived;
    while (done - arrived < serviceMs) done = performance.now();
    const index = count - warm;
    if (index === 0) begun = arrived;
    if (index >= 0) {
      waiting[index] = arrived - (control.start + offset + count * gapMs);
      service[index] = done - arrived;
    }
    lastDone = done;
    return ++count !== control.total;
  };
  if (end.kind === "blocking") { while (take(end.receive())) { /* the next one */ } }
  else {
    await new Promise<void>((resolve, reject) => {
      end.listen((number) => {
        try {
          if (!take(number)) resolve();
        } catch (error) {
          reject(error);
        }
      });
    });
  }
  const served = Math.max(0, count - warm);
  return {
    count: served,
    elapsed_ns: Math.max(1, Math.round((lastDone - begun) * 1e6)),
    waiting: histogramOf(waiting.subarray(0, served)),
    service: histogramOf(service.subarray(0, served)),
  };
}
