/** `synckit`: a function of another thread that is called as if it were here. @module */
import { createSyncFn } from "synckit";
import { both, type Order, type Peer } from "../peer.ts";
import { CallingEnd } from "../play_calls.ts";

/** The channel on which its thread says that it serves. */
const STARTED = "synckit-started";

const peer: Peer = {
  decline({ name, ends, wait, pin, direction }, place) {
    if (place.name === "chromium") return "needs the workers of Node";
    if (name !== "echo" && name !== "calls") return "only calls";
    if (direction !== undefined && direction !== "down") return "measured with calls one way";
    if (ends !== "workers") return "the caller blocks";
    return wait === "spin" && pin === "one-core" ? "does not spin" : undefined;
  },
  prepare: () => both(undefined),
  async open({ scenario, isNew }: Order, place) {
    // It keeps its thread, and returns the same function for the same module.
    const started = isNew ? untilStarted() : undefined;
    const call = createSyncFn(new URL(place.moduleUrl("synckit_worker")));
    await started;
    return new CallingEnd(scenario, call as (value: unknown) => unknown);
  },
  alone: true,
};

/** The peer of this file. */
export const peers = { "synckit": peer };

/** Settles when its thread serves: its first call would begin with the start of that otherwise. */
function untilStarted(): Promise<void> {
  const channel = new BroadcastChannel(STARTED);
  return new Promise((resolve) => {
    channel.onmessage = () => {
      channel.close();
      resolve();
    };
  });
}
