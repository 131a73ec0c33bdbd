/** Our port with a meter at each end, as `millrace` but for that. @module */
import { meter } from "../../../impl-ts/src/meter.ts";
import type { End, Peer } from "../peer.ts";
import { kindOf } from "../peer.ts";
import millrace, { openPort, PortEvents, PortJson } from "./millrace.ts";

const peer: Peer = {
  decline: ({ name, format }) =>
    name === "meter" && format === "json" ? undefined : "measured with one stream of JSON",
  prepare: millrace.prepare,
  open(order): End {
    const { scenario, role } = order;
    const port = openPort<unknown>(order);
    meter(port);
    if (kindOf(scenario, role) === "events") return new PortEvents(port, scenario);
    return new PortJson(port, scenario);
  },
};

export default peer;
