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
import { valuesOf } from "../payload.ts";
import {
  type BlockingEnd,
  type CallEnd,
  type End,
  hear,
  type Order,
  type Report,
  type Role,
} from "../peer.ts";
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
  let isLast = false;
  const heard = hear(end, (number) => {
    if (number % 2 === 1) {
      end.send(number);
      return false;
    }
    check(number, 2 * count);
    count++;
    if (isLast) return true;
    if (!meter.turn()) {
      isLast = true;
      control.total = count + 1;
    }
    end.send(2 * count);
    return false;
  });
  end.send(0);
  await heard;
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
  await hear(end, (number) => {
    const isCall = number % 2 === 0;
    end.send(isCall ? number + 1 : number - 1);
    return !isCall && ++count === control.total;
  });
  return {};
}

/** An end of a library that only calls: what is sent is the argument, what comes is the result. */
export function argumentEnd(scenario: Scenario, call: (value: unknown) => unknown): BlockingEnd {
  const values = valuesOf(scenario);
  let sent = 0;
  return {
    kind: "blocking",
    send: (number) => void (sent = number),
    receive: () => values.numberOf(call(values.with(sent))),
    close() {},
  };
}
