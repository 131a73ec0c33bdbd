/**
 * The plays by the name of their scenario, and the one in which both ends wait for what does not
 * come, while the driver measures what that costs.
 *
 * @module
 */
import type { Scenario } from "../../contract.ts";
import { Control } from "../control.ts";
import type { End, Order, PlayRole, Report } from "../peer.ts";
import type { Place } from "../place.ts";
import { playCallMessages } from "./calls.ts";
import { playCold, playColdStream } from "./cold.ts";
import { playDropbox, playEcho } from "./echo.ts";
import { playLoad } from "./load.ts";
import { playStream } from "./stream.ts";

/** What plays a scenario. */
export function playOf({ name, fresh }: Scenario): PlayRole {
  switch (name) {
    case "cold":
      return playCold;
    case "echo":
      return playEcho;
    case "stream":
    case "burst":
    case "large":
    case "memory":
      return fresh ? playColdStream : playStream;
    case "load":
      return playLoad;
    case "values":
      return playEcho;
    case "calls":
      return playCallMessages;
    case "dropbox":
      return playDropbox;
    case "idle":
      return playIdle;
  }
  throw new Error(`Cannot play ${name}: there is no such scenario`);
}

/** Until nothing is left to do of what started the ends; less where little is measured. */
const SETTLE_MS = 400;
const SETTLE_DURATIONS = 10;

/** Plays a role of `idle`. What is not idle is left out: `b` begins before, and ends after `a`. */
export async function playIdle(end: End, order: Order, place: Place): Promise<Report> {
  const { scenario, role } = order;
  const control = new Control(order.control);
  const settleMs = Math.min(SETTLE_MS, SETTLE_DURATIONS * scenario.duration_ms);
  if (end.kind === "events") end.listen(() => {});
  await control.waitUntilReady(2);
  if (role === "b") {
    await idle(end, 3 * settleMs + scenario.duration_ms);
    control.addReady();
    return {};
  }
  await idle(end, settleMs);
  const sleeps = end.sleeps?.();
  const cpu = place.processorTime() ?? NaN;
  const start = performance.now();
  await idle(end, scenario.duration_ms);
  const report = {
    count: 1,
    elapsed_ns: Math.round((performance.now() - start) * 1e6),
    cpu_ms: (place.processorTime() ?? NaN) - cpu,
    ...sleeps === undefined ? {} : { sleeps: end.sleeps!() - sleeps },
  };
  // Closing would end the wait of the other.
  await control.waitUntilReady(3);
  return report;
}

async function idle(end: End, ms: number): Promise<void> {
  if (end.kind === "blocking") end.idle!(ms);
  else await new Promise((resolve) => setTimeout(resolve, ms));
}
