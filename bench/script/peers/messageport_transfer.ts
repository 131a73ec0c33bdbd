/**
 * The runtime's `MessagePort`, to which arrays are given away: a new one for each message.
 *
 * @module
 */
import { declineForEvents, type EventEnd, type Order, type Peer } from "../peer.ts";
import { readStamp, stamp } from "../payload.ts";
import { prepareChannel } from "./messageport.ts";

const SIZE_MIN = 4096;

const peer: Peer = {
  decline(scenario) {
    if (scenario.format !== "bytes") return "transfers bytes only";
    if (scenario.size < SIZE_MIN) return "pays with large messages only";
    return declineForEvents(scenario);
  },
  prepare: prepareChannel,
  open: ({ gear, scenario }: Order) => new TransferEnd(gear as MessagePort, scenario.size),
};

export default peer;

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
