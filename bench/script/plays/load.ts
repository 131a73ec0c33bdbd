/**
 * An open loop: messages arrive by a schedule made ahead, whether or not the last one is done. A
 * stall is therefore not hidden: all that should have arrived meanwhile has waited.
 *
 * @module
 */
import { Control, nextTurn } from "../control.ts";
import { histogramOf } from "../meter.ts";
import { type End, hear, type Order, type Report } from "../peer.ts";
import { check } from "./echo.ts";

/** A sender that is so many times slower than its schedule, and so much later, gives up. */
const LATE_MAX = 3;
const LATE_MS = 1_000;
/** A sender that is late, and sends on its event loop, gives way to it so often. */
const TURN_EVERY = 64;
/**
 * Looks at a word between two readings of the clock, some 0.2 us. Each reading may make a number,
 * and a sender that only read the clock made megabytes of them a second: garbage whose collection
 * stops a thread for milliseconds where its helpers find no processor free.
 */
const LOOKS = 16;
const word = new Int32Array(new SharedArrayBuffer(4));

/** Keeps the processor until then; returns the time. */
function spinUntil(time: number): number {
  let now = performance.now();
  while (now < time) {
    for (let look = 0; look < LOOKS; look++) Atomics.load(word, 0);
    now = performance.now();
  }
  return now;
}

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
  // What is sent on an event loop would otherwise all go out in the end.
  const turns = end.kind === "events" && end.tells === true;
  let count = 0;
  while (count < total - 1) {
    const due = start + count * gapMs;
    if (turns) {
      if (count % TURN_EVERY === 0) await nextTurn();
      while (performance.now() < due) await nextTurn();
    }
    const now = spinUntil(due);
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
  /** When the first was there, and the last done: variables of a closure would be new numbers. */
  const times = new Float64Array(2);
  /** Serves one message; false after the last. */
  const take = (number: number): boolean => {
    const arrived = performance.now();
    check(number, count);
    const done = spinUntil(arrived + serviceMs);
    const index = count - warm;
    if (index === 0) times[0] = arrived;
    if (index >= 0) {
      waiting[index] = arrived - (control.start + offset + count * gapMs);
      service[index] = done - arrived;
    }
    times[1] = done;
    return ++count !== control.total;
  };
  if (end.kind === "blocking") { while (take(end.receive())) { /* the next one */ } }
  else await hear(end, (number) => !take(number));
  const served = Math.max(0, count - warm);
  return {
    count: served,
    elapsed_ns: Math.max(1, Math.round((times[1]! - times[0]!) * 1e6)),
    waiting: histogramOf(waiting.subarray(0, served)),
    service: histogramOf(service.subarray(0, served)),
  };
}
