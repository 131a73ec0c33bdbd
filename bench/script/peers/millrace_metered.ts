/** Two ports of ours between the same threads, one of them with a meter at each end. @module */
import { meter } from "../../../impl-ts/src/meter.ts";
import { portMemory } from "../../../impl-ts/src/mod.ts";
import type { Order, Peer, Report } from "../peer.ts";
import { playHandler, TIMES_SIZE } from "../play_handler.ts";
import { playMeter } from "../play_meter.ts";
import { openPort, PortJson, portOptions } from "./millrace.ts";

/** What each thread gets. */
interface Shared {
  readonly memories: readonly [SharedArrayBuffer, SharedArrayBuffer];
  readonly times: SharedArrayBuffer;
}

const peer: Peer = {
  decline: ({ name }) => name === "meter" ? undefined : "of meters only",
  prepare({ ...scenario }) {
    const value: Shared = {
      memories: [portMemory(portOptions(scenario)), portMemory(portOptions(scenario))],
      times: new SharedArrayBuffer(TIMES_SIZE),
    };
    return { a: { value }, b: { value } };
  },
  open() {
    throw new Error("Cannot open: it has two ports");
  },
  play: async (order) => await playBoth(order),
};

export default peer;

async function playBoth(order: Order): Promise<Report> {
  const { memories: [first, second], times } = order.gear as Shared;
  const { scenario } = order;
  if (scenario.task_us === undefined) {
    using bare = openPort<unknown>({ ...order, gear: first });
    using metered = openPort<unknown>({ ...order, gear: second });
    using _meter = meter(metered);
    return playMeter([new PortJson(bare, scenario), new PortJson(metered, scenario)], order);
  }
  using bare = openPort<number>({ ...order, gear: first });
  using metered = openPort<number>({ ...order, gear: second });
  return await playHandler({ bare, metered, times: new Float64Array(times) }, order);
}
