/** Two ports of ours between the same threads, one of them with a meter at each end. @module */
import { meter } from "../../../impl-ts/src/meter.ts";
import { portMemory } from "../../../impl-ts/src/mod.ts";
import type { Order, Peer, Report } from "../peer.ts";
import { playMeter } from "../play_meter.ts";
import { openPort, PortJson, portOptions } from "./millrace.ts";

const peer: Peer = {
  decline: ({ name }) => name === "meter" ? undefined : "of meters only",
  prepare({ ...scenario }) {
    const value = [portMemory(portOptions(scenario)), portMemory(portOptions(scenario))];
    return { a: { value }, b: { value } };
  },
  open() {
    throw new Error("Cannot open: it has two ports");
  },
  play: async (order) => await playBoth(order),
};

export default peer;

async function playBoth(order: Order): Promise<Report> {
  const [bare, metered] = (order.gear as SharedArrayBuffer[])
    .map((gear) => openPort<unknown>({ ...order, gear }));
  meter(metered!);
  const ends = [bare!, metered!].map((port) => new PortJson(port, order.scenario));
  try {
    return playMeter([ends[0]!, ends[1]!], order);
  } finally {
    for (const end of ends) end.close();
  }
}
