/**
 * A main thread that never waits: it looks again and again whether the reply is there, as a loop
 * that draws frames would.
 *
 * @module
 */
import { Control } from "./control.ts";
import { Meter } from "./meter.ts";
import { type BlockingEnd, type End, type Order, PATIENCE_MS, type Report } from "./peer.ts";
import { check, playEcho, reportOf } from "./play_echo.ts";

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
