/**
 * Messages one way, without end or in bursts. The receiver measures, since a sender may only have
 * filled a queue; of bursts, the sender does, until the receiver has confirmed the last message.
 *
 * @module
 */
import type { Scenario } from "../../contract.ts";
import { Control, nextTurn } from "../control.ts";
import { HeapMeter, Meter, type Turns } from "../meter.ts";
import {
  type BlockingEnd,
  type End,
  type EventEnd,
  hear,
  type Order,
  type Report,
} from "../peer.ts";
import type { Place } from "../place.ts";
import { check, reportOf } from "./echo.ts";

/** Messages under way at most, where a scenario does not say it. */
const WINDOW = 4_096;
/** How often a sender looks how far the receiver is, and the receiver says it, at most. */
const STEP_MAX = 64;

/** Twice in a window at least: otherwise one would wait for what the other does not say. */
export function stepOf({ window = WINDOW }: Scenario): number {
  return Math.max(1, Math.min(STEP_MAX, window >> 1));
}

/** Plays a role of `stream`, `large` or `memory`. */
export async function playStream(end: End, order: Order, place: Place): Promise<Report> {
  const { scenario } = order;
  const control = new Control(order.control);
  const role = sends(order) ? "a" : "b";
  if (scenario.burst !== undefined) {
    return role === "a"
      ? await sendBursts(end, order, control)
      : await confirm(end, order, control);
  }
  // The receiver says when both have warmed up: it is the third that is ready.
  const counts = () => control.ready > 2;
  const heap = scenario.name === "memory" ? new HeapMeter(place, counts) : undefined;
  if (role === "a") {
    if (end.kind === "blocking") send(end, control, heap);
    else await sendEvents(end, order, control, heap);
    return heap === undefined ? {} : { bytes_allocated: heap.allocated };
  }
  const meter = new Meter(scenario, () => {
    heap?.begin();
    control.addReady();
  });
  if (end.kind === "blocking") take(end, meter, control, heap, stepOf(scenario));
  else await takeEvents(end, meter, control, heap, stepOf(scenario));
  // Before anything is made of what was measured.
  const allocated = heap?.allocated;
  const { count, elapsed_ns } = reportOf(meter, undefined) as { count: number; elapsed_ns: number };
  const moved = { count, elapsed_ns, bytes: count * scenario.size };
  return allocated === undefined ? moved : { ...moved, bytes_allocated: allocated };
}

/** Whether the end of this role is the sender. */
export function sends({ role, scenario: { direction } }: Order): boolean {
  return role === (direction === "up" ? "b" : "a");
}

/** Sends on and on, until the receiver has enough. */
export function send(end: BlockingEnd, control: Control, heap?: HeapMeter): void {
  let count = 0;
  do {
    end.send(count++);
    heap?.turn();
  } while (!control.stopped);
  control.total = count + 1;
  end.send(count);
  end.flush?.();
}

/** The same on an event loop. */
export async function sendEvents(
  end: EventEnd,
  { scenario }: Order,
  control: Control,
  heap?: HeapMeter,
): Promise<void> {
  const { window = WINDOW, awaited = false, pin } = scenario;
  // On one processor, a sender that looks again and again would take it from the receiver.
  const pause = pin === "one-core" ? sleep : nextTurn;
  const step = awaited ? stepOf(scenario) : end.batch ?? stepOf(scenario);
  let count = 0;
  while (!control.stopped) {
    const sent = end.send(count++);
    if (awaited) await sent;
    heap?.turn();
    if (count % step !== 0) continue;
    // Also lets go out what waits for the end of the job.
    if (!awaited) await (end.batch === undefined ? nextTurn() : sent);
    while (count - control.taken >= window && !control.stopped) await pause();
  }
  control.total = count + 1;
  await end.send(count);
}

function sleep(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, 1));
}

/** Takes until the meter has enough, and then what is still under way. */
export function take(
  end: BlockingEnd,
  meter: Turns,
  control: Control,
  heap: HeapMeter | undefined,
  step: number,
): void {
  let count = 0;
  do {
    check(end.receive(), count);
    count++;
    if (count % step === 0) control.taken = count;
    heap?.turn();
  } while (meter.turn());
  control.stop();
  while (count !== control.total) {
    check(end.receive(), count);
    control.taken = ++count;
  }
}

/** The same on an event loop. */
export async function takeEvents(
  end: EventEnd,
  meter: Turns,
  control: Control,
  heap: HeapMeter | undefined,
  step: number,
): Promise<void> {
  let count = 0;
  let isMeasuring = true;
  await hear(end, (number) => {
    check(number, count);
    count++;
    if (count % step === 0 || !isMeasuring) control.taken = count;
    heap?.turn();
    if (isMeasuring && !meter.turn()) {
      isMeasuring = false;
      control.stop();
    }
    return !isMeasuring && count === control.total;
  });
}

/** Role `a` of bursts. Each sample is one burst, from the first send to the confirmation. */
async function sendBursts(end: End, { scenario }: Order, control: Control): Promise<Report> {
  const size = scenario.burst as number;
  const meter = new Meter(scenario, undefined, true);
  let count = 0;
  const burst = () => {
    for (let n = 0; n < size; n++) end.send(count++);
    if (end.kind === "blocking") end.flush?.();
  };
  if (end.kind === "blocking") {
    do {
      burst();
      end.receive();
    } while (meter.turn());
    control.total = count + size;
    burst();
    end.receive();
  } else {
    let isLast = false;
    const heard = hear(end, () => {
      if (isLast) return true;
      if (!meter.turn()) {
        isLast = true;
        control.total = count + size;
      }
      burst();
      return false;
    });
    burst();
    await heard;
  }
  const { count: bursts, elapsed_ns = 0, latency } = reportOf(meter, undefined);
  const moved = (bursts as number) * size;
  const report = { count: moved, elapsed_ns, bytes: moved * scenario.size };
  return latency === undefined ? report : { ...report, latency };
}

/** Role `b` of bursts: answers after each of them. */
async function confirm(end: End, { scenario }: Order, control: Control): Promise<Report> {
  const size = scenario.burst as number;
  let count = 0;
  if (end.kind === "blocking") {
    do {
      check(end.receive(), count++);
      if (count % size === 0) {
        end.send(count);
        end.flush?.();
      }
    } while (count !== control.total);
    return {};
  }
  await hear(end, (number) => {
    check(number, count++);
    if (count % size === 0) end.send(count);
    return count === control.total;
  });
  return {};
}
