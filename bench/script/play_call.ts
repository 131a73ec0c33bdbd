/**
 * Calls that are answered: down from `a` to `b`, up from `b` to `a`, or nested, where `b` calls
 * back before it answers.
 *
 * @module
 */
import { Control } from "./control.ts";
import { Meter } from "./meter.ts";
import type { End, Order, Report } from "./peer.ts";
import { check, playEcho, reportOf } from "./play_echo.ts";

/** Plays a role of `call`. */
export function playCall(end: End, order: Order): Promise<Report> {
  const { direction } = order.scenario;
  if (direction === "nested") {
    return order.role === "a" ? callNested(end, order) : answerNested(end, order);
  }
  if (direction !== "up") return playEcho(end, order);
  return playEcho(end, { ...order, role: order.role === "a" ? "b" : "a" });
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
