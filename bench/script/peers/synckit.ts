/** `synckit`: a function of another thread that is called as if it were here. @module */
import { createSyncFn } from "synckit";
import { CallingEnd } from "../calling_end.ts";
import type { Order, Peer } from "../peer.ts";

const peer: Peer = {
  decline({ name, ends, wait, pin, direction }, place) {
    if (place.name === "chromium") return "needs the workers of Node";
    if (name !== "echo" && name !== "calls") return "only calls";
    if (direction !== undefined && direction !== "down") return "measured with calls one way";
    if (ends !== "workers") return "the caller blocks";
    return wait === "spin" && pin === "one-core" ? "does not spin" : undefined;
  },
  prepare: () => ({ a: { value: undefined }, b: { value: undefined } }),
  open({ scenario }: Order, place) {
    // It keeps its thread, and returns the same function for the same module.
    const call = createSyncFn(new URL(place.moduleUrl("synckit_worker")));
    return new CallingEnd(scenario, call as (value: unknown) => unknown);
  },
  alone: true,
};

export default peer;
