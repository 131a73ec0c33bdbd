/** A `MessagePort` for each reader, to each of which every message is posted. @module */
import { fanoutPeer } from "../fanout_peer.ts";
import { valuesOf } from "../payload.ts";

export default fanoutPeer((scenario, readers) => {
  const channels = Array.from({ length: readers }, () => new MessageChannel());
  const values = valuesOf(scenario);
  return {
    gears: channels.map(({ port2 }) => ({ value: port2, transfer: [port2] })),
    turns: true,
    send(number) {
      const value = values.with(number);
      for (const { port1 } of channels) port1.postMessage(value);
    },
    close() {
      for (const { port1 } of channels) port1.close();
    },
  };
}, (gear, scenario) => {
  const port = gear as MessagePort;
  const values = valuesOf(scenario);
  return {
    kind: "events",
    listen: (take) => port.onmessage = ({ data }) => take(values.numberOf(data)),
    close: () => port.close(),
  };
});
