/** Ports of ours between the same threads, one of them with a meter at each end. @module */
import { meter } from "../../../impl-ts/src/meter/meter.ts";
import { portMemory } from "../../../impl-ts/src/mod.ts";
import type { Order, Peer, Report } from "../peer.ts";
import { playHandler, TIMES_SIZE } from "../play_handler.ts";
import { playMeter } from "../play_meter.ts";
import { openPort, PortJson, portOptions } from "./millrace.ts";

/** What each thread gets. */
interface Shared {
  readonly memories: readonly SharedArrayBuffer[];
  readonly times: SharedArrayBuffer;
}

const peer: Peer = {
  decline: ({ name }) => name === "meter" ? undefined : "of meters only",
  prepare({ ...scenario }) {
    const value: Shared = {
      memories: [1, 2, 3].map(() => portMemory(portOptions(scenario))),
      times: new SharedArrayBuffer(TIMES_SIZE),
    };
    return { a: { value }, b: { value } };
  },
  open() {
    throw new Error("Cannot open: it has several ports");
  },
  play: async (order) => await playBoth(order),
};

export default peer;

async function playBoth(order: Order): Promise<Report> {
  const { memories, times } = order.gear as Shared;
  const { scenario } = order;
  if (scenario.task_us === undefined) return playStreams(memories, order);
  using bare = openPort<number>({ ...order, gear: memories[0] });
  using metered = openPort<number>({ ...order, gear: memories[1] });
  return await playHandler({ bare, metered, times: new Float64Array(times) }, order);
}

function playStreams(memories: readonly SharedArrayBuffer[], order: Order): Report {
  const ports = memories.map((gear) => openPort<unknown>({ ...order, gear }));
  meter(ports[1]!);
  meter(ports[2]!).close();
  const ends = ports.map((port) => new PortJson(port, order.scenario));
  try {
    return playMeter(ends, order);
  } finally {
    for (const end of ends) end.close();
  }
}
