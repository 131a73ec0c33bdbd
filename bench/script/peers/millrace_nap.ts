/** Our port by events, on loops that may stand still for an answer: the option `nap`. @module */
import { kindOf, type Peer } from "../peer.ts";
import millrace, { openPort, PortEvents } from "./millrace.ts";

/** A tick of the system's clock: a sleep with a shorter limit has a timer set for it. */
const NAP_MS = 4;

const peer: Peer = {
  decline({ name, ends }) {
    if (name !== "echo" && name !== "cold") return "naps for answers";
    return ends === "async" || ends === "main-worker" ? undefined : "naps on event loops";
  },
  prepare: millrace.prepare,
  open(order, place) {
    const { scenario, role } = order;
    if (kindOf(scenario, role) !== "events") return millrace.open(order, place);
    return new PortEvents(openPort(order, undefined, NAP_MS), scenario);
  },
};

export default peer;
