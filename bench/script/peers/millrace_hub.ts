/** The same by hand over our hub: each message is written to each port. @module */
import { Hub } from "../../../impl-ts/src/more/hub.ts";
import { Port, type PortHandoff } from "../../../impl-ts/src/mod.ts";
import { CAPACITY, fanoutPeer, WAIT } from "../fanout_peer.ts";
import { valuesOf } from "../payload.ts";
import { optionsOf } from "./millrace_fanout.ts";

export default fanoutPeer((scenario, readers) => {
  const hub = Hub.create<unknown>(readers, { ...optionsOf(scenario), capacity: CAPACITY });
  const values = valuesOf(scenario);
  return {
    gears: hub.ports.map((port) => ({ value: port.handoff() })),
    turns: false,
    send(number) {
      const value = values.with(number);
      for (const port of hub.ports) port.write(value, WAIT);
    },
    close: () => hub.close(),
  };
}, (gear, scenario) => {
  const port = Port.from<unknown>(gear as PortHandoff, optionsOf(scenario));
  const values = valuesOf(scenario);
  return {
    kind: "blocking",
    receive: () => values.numberOf(port.read(WAIT)),
    close: () => port.close(),
  };
});
