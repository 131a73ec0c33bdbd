/**
 * The runtime's own `MessagePort`, with `postMessage` and `onmessage`: values are cloned, or arrays
 * are given away, a new one for each message.
 *
 * @module
 */
import type { Scenario } from "../../contract.ts";
import { declineForEvents, type EventEnd, type Gear, type Order } from "../peer.ts";
import type { Peer, Role } from "../peer.ts";
import { readStamp, stamp, type Values, valuesOf } from "../payload.ts";

const cloning: Peer = {
  decline(scenario) {
    return scenario.awaited ? "does not tell when a message was taken" : declineForEvents(scenario);
  },
  prepare: prepareChannel,
  open: ({ gear, scenario }: Order) => new MessagePortEnd(gear as MessagePort, scenario),
};

/** A channel, with an end for each role. */
export function prepareChannel(): Record<Role, Gear> {
  const { port1, port2 } = new MessageChannel();
  return { a: { value: port1, transfer: [port1] }, b: { value: port2, transfer: [port2] } };
}

/** One end; what it sends is cloned. */
class MessagePortEnd implements EventEnd {
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

const SIZE_MIN = 4096;

const transferring: Peer = {
  decline(scenario) {
    if (scenario.format !== "bytes") return "transfers bytes only";
    if (scenario.size < SIZE_MIN) return "pays with large messages only";
    return declineForEvents(scenario);
  },
  prepare: prepareChannel,
  open: ({ gear, scenario }: Order) => new TransferEnd(gear as MessagePort, scenario.size),
};

class TransferEnd implements EventEnd {
  readonly kind = "events";
  readonly #port: MessagePort;
  readonly #size: number;

  constructor(port: MessagePort, size: number) {
    this.#port = port;
    this.#size = size;
  }

  send(number: number): void {
    const bytes = new Uint8Array(this.#size);
    stamp(bytes, 0, this.#size, number);
    this.#port.postMessage(bytes, [bytes.buffer]);
  }

  listen(take: (number: number) => void): void {
    this.#port.onmessage = ({ data }) => take(readStamp(data, 0, this.#size));
  }

  close(): void {
    this.#port.close();
  }
}

/** The peers of this file. */
export const peers = { "messageport": cloning, "messageport-transfer": transferring };
