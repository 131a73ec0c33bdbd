/**
 * The runtime's own `MessagePort`, with `postMessage` and `onmessage`: values are cloned, or arrays
 * are given away, a new one for each message.
 *
 * @module
 */
import { readStamp, stamp, valuesOf } from "../payload.ts";
import { declineForEvents, type EventEnd, type Gear, type Peer, type Role } from "../peer.ts";

const TRANSFER_MIN = 4096;

/** A channel, with an end for each role. */
export function prepareChannel(): Record<Role, Gear> {
  const { port1, port2 } = new MessageChannel();
  return { a: { value: port1, transfer: [port1] }, b: { value: port2, transfer: [port2] } };
}

/** What is received at a port, whoever sends. */
export function receivingEnd(
  port: MessagePort,
  numberOf: (value: never) => number,
): Pick<EventEnd, "kind" | "listen" | "close"> {
  return {
    kind: "events",
    listen: (take) => port.onmessage = ({ data }) => take(numberOf(data as never)),
    close: () => port.close(),
  };
}

/** The peers of this file. */
export const peers: Readonly<Record<string, Peer>> = {
  "messageport": {
    decline(scenario) {
      return scenario.awaited
        ? "does not tell when a message was taken"
        : declineForEvents(scenario);
    },
    prepare: prepareChannel,
    open({ gear, scenario }) {
      const port = gear as MessagePort;
      const values = valuesOf(scenario);
      return {
        ...receivingEnd(port, values.numberOf),
        send: (number) => port.postMessage(values.with(number)),
      };
    },
  },
  "messageport-transfer": {
    decline(scenario) {
      if (scenario.format !== "bytes") return "transfers bytes only";
      if (scenario.size < TRANSFER_MIN) return "pays with large messages only";
      return declineForEvents(scenario);
    },
    prepare: prepareChannel,
    open({ gear, scenario: { size } }) {
      const port = gear as MessagePort;
      return {
        ...receivingEnd(port, (bytes: Uint8Array) => readStamp(bytes, 0, size)),
        send(number) {
          const bytes = new Uint8Array(size);
          stamp(bytes, 0, size, number);
          port.postMessage(bytes, [bytes.buffer]);
        },
      };
    },
  },
};
