/** `sab-message-port`, out of the folder that was given with `--sab-message-port`. @module */
import type { Scenario } from "../../contract.ts";
import { declineForEvents, type End, kindOf, type Order, PATIENCE_MS } from "../peer.ts";
import type { BlockingEnd, EventEnd, Peer } from "../peer.ts";
import { type Values, valuesOf } from "../payload.ts";

/** What is used of the library. */
interface Port {
  postMessage(value: unknown): Promise<void>;
  read(timeout: number): unknown;
  tryRead(): unknown;
  onmessage: ((event: { data: unknown }) => void) | null;
  close(): void;
}

interface Library {
  SABMessagePort: {
    new (side: "a" | "b", memory: SharedArrayBuffer): Port;
  };
}

const SIZE = 256 * 1024;

const peer: Peer = {
  decline(scenario, { sabMessagePort }) {
    if (sabMessagePort === undefined) return "is given with --sab-message-port DIR";
    if (scenario.format !== "json") return "takes JSON only";
    if (scenario.name === "memory" || scenario.size > 2 ** 24) return "not measured";
    return declineForEvents(scenario);
  },
  prepare() {
    const memory = new SharedArrayBuffer(SIZE);
    return { a: { value: memory }, b: { value: memory } };
  },
  async open({ gear, role, scenario }: Order, place): Promise<End> {
    const { SABMessagePort } = await import(place.moduleUrl("sab-message-port")) as Library;
    const port = new SABMessagePort(role, gear as SharedArrayBuffer);
    // A sender that blocks would never send: the library writes in the background.
    const streams = scenario.name === "stream" || scenario.name === "load";
    const kind = streams && role === "a" ? "events" : kindOf(scenario, role);
    return kind === "events" ? new SabEvents(port, scenario) : new SabEnd(port, scenario);
  },
};

export default peer;

class SabEnd implements BlockingEnd {
  readonly kind = "blocking";
  readonly #port: Port;
  readonly #values: Values;

  constructor(port: Port, scenario: Scenario) {
    this.#port = port;
    this.#values = valuesOf(scenario);
  }

  send(number: number): void {
    this.#port.postMessage(this.#values.with(number));
  }

  receive(): number {
    const value = this.#port.read(PATIENCE_MS);
    if (value === null) throw new Error("No message came");
    return this.#values.numberOf(value);
  }

  tryReceive(): number {
    const value = this.#port.tryRead();
    return value === null ? -1 : this.#values.numberOf(value);
  }

  idle(ms: number): void {
    this.#port.read(ms);
  }

  close(): void {
    this.#port.close();
  }
}

class SabEvents implements EventEnd {
  readonly kind = "events";
  readonly tells = true;
  readonly #port: Port;
  readonly #values: Values;

  constructor(port: Port, scenario: Scenario) {
    this.#port = port;
    this.#values = valuesOf(scenario);
  }

  send(number: number): Promise<void> {
    // It keeps the object until it writes it.
    return this.#port.postMessage({ ...this.#values.with(number) as object });
  }

  listen(take: (number: number) => void): void {
    this.#port.onmessage = ({ data }) => take(this.#values.numberOf(data));
  }

  close(): void {
    this.#port.close();
  }
}
