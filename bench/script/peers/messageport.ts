/** The runtime's own `MessagePort`, with `postMessage` and `onmessage`. @module */
import type { Scenario } from "../../contract.ts";
import { declineForEvents, type EventEnd, type Gear, type Order } from "../peer.ts";
import type { Peer, Role } from "../peer.ts";
import { type Values, valuesOf } from "../payload.ts";

const peer: Peer = {
  decline(scenario) {
    return scenario.awaited ? "does not tell when a message was taken" : declineForEvents(scenario);
  },
  prepare: prepareChannel,
  open: ({ gear, scenario }: Order) => new MessagePortEnd(gear as MessagePort, scenario),
};

export default peer;

/** A channel, with an end for each role. */
export function prepareChannel(): Record<Role, Gear> {
  const { port1, port2 } = new MessageChannel();
  return { a: { value: port1, transfer: [port1] }, b: { value: port2, transfer: [port2] } };
}

/** One end; what it sends is cloned, or transferred where `transfer` says so. */
export class MessagePortEnd implements EventEnd {
  readonly kind = "events";
  readonly #port: MessagePort;
  readonly #values: Values;

  constructor(port: MessagePort, scenario: Scenario) {
    this.#port = port;
    this.#values = valuesOf(scenario);
  }

  send(number: number): void {
    this.#port.postMessage(this.#values.with(number));
  }

  listen(take: (number: number) => void): void {
    this.#port.onmessage = ({ data }) => take(this.#values.numberOf(data));
  }

  close(): void {
    this.#port.close();
  }
}
