/**
 * Calls that are answered: down from `a` to `b`, up from `b` to `a`, or nested, where `b` calls
 * back before it answers. Libraries that call are asked to call; of the others, messages go the
 * same ways.
 *
 * @module
 */
import type { Scenario } from "../../contract.ts";
import { Control } from "../control.ts";
import { Meter, type Turns } from "../meter.ts";
import { type Values, valuesOf } from "../payload.ts";
import type { BlockingEnd, CallEnd, End, Order, Report, Role } from "../peer.ts";
import { Bands, playCold, settle } from "./cold.ts";
import { Answered, check, playEcho, reportOf } from "./echo.ts";

/** Plays a role of `calls` with a library that calls. */
export async function playCalls(end: CallEnd, order: Order): Promise<Report> {
  const { role, scenario } = order;
  const control = new Control(order.control);
  if (isCaller(role, scenario)) {
    end.serve((number) => number + 1);
    if (scenario.fresh) await settle(control);
    return await callAndLeave(end, scenario, control);
  }
  const answered = new Answered(end, control);
  end.serve((number) => {
    answered.countAnswer();
    return number + 1;
  });
  await end.rest();
  return answered.report();
}

/** Whether it is this end that makes the calls which are timed. */
export function isCaller(role: Role, { direction }: Scenario): boolean {
  return role === (direction === "up" ? "b" : "a");
}

/** Makes all calls, and says so. Between processes there is no control. */
export async function callAndLeave(
  end: CallEnd,
  scenario: Scenario,
  control?: Control,
): Promise<Report> {
  const report = scenario.fresh
    ? await callFresh(end, scenario)
    : await callWarm(end, scenario, control);
  await end.leave();
  return report;
}

async function callFresh(end: CallEnd, scenario: Scenario): Promise<Report> {
  const bands = new Bands(scenario.parts);
  bands.begin(performance.now());
  await callAll(end, scenario, bands);
  return bands.report(true);
}

async function callWarm(end: CallEnd, scenario: Scenario, control?: Control): Promise<Report> {
  const sleeps = () => end.sleeps?.();
  let before = sleeps();
  const meter = new Meter(scenario, () => {
    before = sleeps();
    control?.begin();
  });
  await callAll(end, scenario, meter);
  const after = sleeps();
  return reportOf(meter, after === undefined ? undefined : after - (before ?? 0));
}

async function callAll(end: CallEnd, { direction }: Scenario, turns: Turns): Promise<void> {
  const isNested = direction === "nested";
  const call = isNested ? end.nest.bind(end) : end.ask.bind(end);
  const more = isNested ? 2 : 1;
  let number = 0;
  if (end.blocks) {
    do requireAnswer(call(number) as number, number++ + more); while (turns.turn());
  } else {
    do requireAnswer(await call(number), number++ + more); while (turns.turn());
  }
}

function requireAnswer(number: number, expected: number): void {
  if (number !== expected) throw new Error(`The answer is ${number} in place of ${expected}`);
}

/** Plays a role of `calls` with messages. */
export function playCallMessages(end: End, order: Order): Promise<Report> {
  const { direction, fresh } = order.scenario;
  if (direction === "nested") {
    return order.role === "a" ? callNested(end, order) : answerNested(end, order);
  }
  const play = fresh ? playCold : playEcho;
  if (direction !== "up") return play(end, order);
  return play(end, { ...order, role: order.role === "a" ? "b" : "a" });
}

/** The calls of `a` have even numbers, and those back from `b` the odd ones that follow. */
async function callNested(end: End, order: Order): Promise<Report> {
  const control = new Control(order.control);
  const meter = new Meter(order.scenario);
  let count = 0;
  if (end.kind === "blocking") {
    const call = () => {
      end.send(2 * count);
      check(end.receive(), 2 * count + 1);
      end.send(2 * count + 1);
      check(end.receive(), 2 * count);
      count++;
    };
    do call(); while (meter.turn());
    control.total = count + 1;
    call();
    return reportOf(meter, undefined);
  }
  await new Promise<void>((resolve, reject) => {
    let isLast = false;
    end.listen((number) => {
      try {
        if (number % 2 === 1) return void end.send(number);
        check(number, 2 * count);
        count++;
        if (isLast) return resolve();
        if (!meter.turn()) {
          isLast = true;
          control.total = count + 1;
        }
        end.send(2 * count);
      } catch (error) {
        reject(error);
      }
    });
    end.send(0);
  });
  return reportOf(meter, undefined);
}

async function answerNested(end: End, order: Order): Promise<Report> {
  const control = new Control(order.control);
  let count = 0;
  if (end.kind === "blocking") {
    do {
      const number = end.receive();
      end.send(number + 1);
      check(end.receive(), number + 1);
      end.send(number);
    } while (++count !== control.total);
    return {};
  }
  await new Promise<void>((resolve, reject) => {
    end.listen((number) => {
      try {
        if (number % 2 === 0) return void end.send(number + 1);
        end.send(number - 1);
        if (++count === control.total) resolve();
      } catch (error) {
        reject(error);
      }
    });
  });
  return {};
}

/** Calls a function that blocks until the other thread has returned. */
export class CallingEnd implements BlockingEnd {
  readonly kind = "blocking";
  readonly #values: Values;
  readonly #call: (value: unknown) => unknown;
  #number = 0;

  constructor(scenario: Scenario, call: (value: unknown) => unknown) {
    this.#values = valuesOf(scenario);
    this.#call = call;
  }

  send(number: number): void {
    this.#number = number;
  }

  receive(): number {
    return this.#values.numberOf(this.#call(this.#values.with(this.#number)));
  }

  close(): void {}
}
