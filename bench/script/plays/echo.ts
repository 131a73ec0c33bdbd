/**
 * One message there and back, then the next: a closed loop. In `dropbox`, a main thread never
 * waits: it looks again and again whether the reply is there, as a loop that draws frames would.
 *
 * @module
 */
import { Control } from "../control.ts";
import { Meter, type Turns } from "../meter.ts";
import {
  type BlockingEnd,
  type End,
  type EventEnd,
  hear,
  type Order,
  PATIENCE_MS,
} from "../peer.ts";
import type { Report } from "../peer.ts";

/** Plays a role of `echo`. */
export function playEcho(end: End, order: Order): Promise<Report> {
  const control = new Control(order.control);
  if (order.role === "a") return ask(end, order, control);
  return end.kind === "blocking" ? Promise.resolve(answer(end, control)) : echo(end, control);
}

/** What the asking end reports of its meter. */
export function reportOf(meter: Meter, sleeps: number | undefined): Report {
  return {
    count: meter.count,
    elapsed_ns: Math.round(meter.elapsedMs * 1e6),
    latency: meter.histogram(),
    ...(sleeps === undefined ? {} : { sleeps }),
    ...(meter.turns > 1 ? { notes: [`each sample is the mean of ${meter.turns}`] } : {}),
  };
}

/** Sends and receives until the meter has enough. */
export async function ask(end: End, order: Order, control: Control): Promise<Report> {
  const sleeps = () => end.sleeps?.();
  let before = sleeps();
  const meter = new Meter(order.scenario, () => {
    before = sleeps();
    control.begin();
  });
  if (end.kind === "blocking") askBlocking(end, meter, control);
  else await askEvents(end, meter, control);
  const after = sleeps();
  return reportOf(meter, after === undefined ? undefined : after - (before ?? 0));
}

/** Asks until the meter has enough, and once more. */
export function askBlocking(end: BlockingEnd, meter: Turns, control: Control): void {
  let count = 0;
  do {
    end.send(count);
    check(end.receive(), count);
    count++;
  } while (meter.turn());
  control.total = count + 1;
  end.send(count);
  end.receive();
}

/** The same on an event loop. */
export async function askEvents(end: EventEnd, meter: Turns, control: Control): Promise<void> {
  let count = 0;
  let isLast = false;
  const heard = hear(end, (number) => {
    check(number, count);
    if (isLast) return true;
    count++;
    if (!meter.turn()) {
      isLast = true;
      control.total = count + 1;
    }
    end.send(count);
    return false;
  });
  end.send(count);
  await heard;
}

/** Sends back what comes, as often as `a` says in the end. */
function answer(end: BlockingEnd, control: Control): Report {
  const answered = new Answered(end, control);
  do end.send(end.receive()); while (!answered.countAnswer());
  return answered.report();
}

async function echo(end: EventEnd, control: Control): Promise<Report> {
  const answered = new Answered(end, control);
  await hear(end, (number) => {
    end.send(number);
    return answered.countAnswer();
  });
  return answered.report();
}

/**
 * What the answering end counts: messages, and sleeps, from when the warm-up of `a` was over, or
 * from the first message where `a` does not say when that is.
 */
export class Answered {
  #count = 0;
  #before = 0;
  #begun = false;
  readonly #end: Pick<End, "sleeps">;
  readonly #control: Control;

  constructor(end: Pick<End, "sleeps">, control: Control) {
    this.#end = end;
    this.#control = control;
  }

  /** To be called after each answer. Returns whether it was the last one. */
  countAnswer(): boolean {
    const { total } = this.#control;
    const begins = total < 0 && !this.#begun;
    if (begins || this.#count === 0) this.#before = this.#end.sleeps?.() ?? 0;
    this.#begun ||= begins;
    return ++this.#count === total;
  }

  report(): Report {
    const after = this.#end.sleeps?.();
    return after === undefined ? {} : { sleeps: after - this.#before };
  }
}

/** Throws unless the answer is the one that belongs to the question. */
export function check(number: number, expected: number): void {
  if (number === (expected & 255)) return;
  throw new Error(`Message ${number} came in place of ${expected & 255}`);
}

/** Plays a role of `dropbox`. Who cannot poll gets the reply as an event. */
export function playDropbox(end: End, order: Order): Promise<Report> {
  if (order.role === "b" || end.kind === "events") return playEcho(end, order);
  const control = new Control(order.control);
  const meter = new Meter(order.scenario);
  let count = 0;
  do {
    end.send(count);
    check(poll(end), count);
    count++;
  } while (meter.turn());
  control.total = count + 1;
  end.send(count);
  poll(end);
  return Promise.resolve(reportOf(meter, undefined));
}

function poll(end: BlockingEnd): number {
  const deadline = performance.now() + PATIENCE_MS;
  for (let looks = 1;; looks++) {
    const number = end.tryReceive!();
    if (number >= 0) return number;
    if (looks % 65_536 === 0 && performance.now() > deadline) throw new Error("No reply came");
  }
}
