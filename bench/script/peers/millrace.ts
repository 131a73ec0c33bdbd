/** Our port, from TypeScript to TypeScript: the verbs that everybody uses. @module */
import {
  type Codec,
  Port,
  type PortCreateOptions,
  portMemory,
  statsOf,
} from "../../../impl-ts/src/mod.ts";
import { readInto, tryReadInto } from "../../../impl-ts/src/more/raw.ts";
import type { Scenario } from "../../contract.ts";
import { readStamp, sampleOf, stamp, type Values, valuesOf } from "../payload.ts";
import { type BlockingEnd, both, type End, type EventEnd, kindOf, type Order } from "../peer.ts";
import { PATIENCE_MS, type Peer, type Report } from "../peer.ts";

const WAIT = { timeout: PATIENCE_MS };
const CAPACITY = 256 * 1024;
/** Large messages pass in parts: the ring need not hold them, and should stay in the cache. */
const LARGE_CAPACITY = 1024 * 1024;

/** How a port is made for a scenario, with rings of at least so many bytes. */
export function portOptions(
  { format, size, wait }: Scenario,
  capacity = size < CAPACITY ? CAPACITY : LARGE_CAPACITY,
): PortCreateOptions {
  const codec = format === "bytes" ? "bytes" : "json";
  return { codec, capacity, ...(wait === "park" ? { spin: 0 } : {}) };
}

/** Takes one end of a port; either may come first. */
export function openPort<Value>(
  { gear, role, scenario }: Order,
  capacity?: number,
  codec?: Codec,
): Port<Value> {
  const memory = gear as SharedArrayBuffer;
  return Port.create({
    ...portOptions(scenario, capacity),
    ...codec === undefined ? {} : { codec },
    memory,
    side: role,
  } as PortCreateOptions<Value, Value>);
}

/** Makes the memory of a port for a scenario. */
export function sharedPort(scenario: Scenario) {
  return both(portMemory(portOptions(scenario)));
}

/** What every blocking end of a port has beside its verbs. */
export abstract class PortEnd<Value> {
  readonly kind = "blocking";
  protected readonly port: Port<Value>;

  constructor(port: Port<Value>) {
    this.port = port;
  }

  idle(timeout: number): void {
    this.port.read({ timeout });
  }

  sleeps(): number {
    return statsOf(this.port).parks;
  }

  close(): void {
    this.port.close();
  }
}

const peer: Peer = {
  decline({ name, payload }) {
    const isLost = name === "values" && !sampleOf(payload).isPlain;
    return isLost ? "JSON cannot carry it" : undefined;
  },
  prepare: sharedPort,
  open(order): End {
    const { scenario, role } = order;
    if (kindOf(scenario, role) === "events") return new PortEvents(openPort(order), scenario);
    if (scenario.format === "bytes") return new PortBytes(openPort(order), scenario.size);
    return new PortJson(openPort(order), scenario);
  },
  play(order) {
    if (order.scenario.ends !== "worker") return undefined;
    return playAlone(order);
  },
};

/** The peer of this file. */
export const peers = { "millrace": peer };

/** Both ends on one thread. */
async function playAlone(order: Order): Promise<Report> {
  const { playArrays, playCodec } = await import("../plays/arrays.ts");
  return order.scenario.name === "arrays" ? playArrays(order) : playCodec(order);
}

/** Bytes, copied in and out, into an array of the caller's. */
class PortBytes extends PortEnd<Uint8Array> implements BlockingEnd {
  readonly #size: number;
  readonly #outgoing: Uint8Array;
  readonly #incoming: Uint8Array;

  constructor(port: Port<Uint8Array>, size: number) {
    super(port);
    this.#size = size;
    this.#outgoing = new Uint8Array(size);
    this.#incoming = new Uint8Array(size);
  }

  send(number: number): void {
    stamp(this.#outgoing, 0, this.#size, number);
    this.port.write(this.#outgoing, WAIT);
  }

  receive(): number {
    return this.#read(readInto(this.port, this.#incoming, WAIT));
  }

  tryReceive(): number {
    const size = tryReadInto(this.port, this.#incoming);
    return size === undefined ? -1 : this.#read(size);
  }

  #read(size: number | undefined): number {
    if (size !== this.#size) throw new Error(`A message of ${size} bytes came`);
    return readStamp(this.#incoming, 0, size);
  }
}

/** Values, in JSON or by another codec. */
export class PortJson extends PortEnd<unknown> implements BlockingEnd {
  readonly #values: Values;

  constructor(port: Port, scenario: Scenario) {
    super(port);
    this.#values = valuesOf(scenario);
  }

  send(number: number): void {
    this.port.write(this.#values.with(number), WAIT);
  }

  receive(): number {
    const value = this.port.read(WAIT);
    if (value === undefined) throw new Error("No message came");
    return this.#values.numberOf(value);
  }

  tryReceive(): number {
    const value = this.port.tryRead();
    return value === undefined ? -1 : this.#values.numberOf(value);
  }
}

/** The interface of a `MessagePort`. */
class PortEvents implements EventEnd {
  readonly kind = "events";
  readonly tells = true;
  readonly #port: Port;
  readonly #values: Values;

  constructor(port: Port, scenario: Scenario) {
    this.#port = port;
    this.#values = valuesOf(scenario);
  }

  send(number: number): Promise<void> {
    return this.#port.postMessage(this.#values.with(number));
  }

  listen(take: (number: number) => void): void {
    this.#port.onmessage = ({ data }) => take(this.#values.numberOf(data));
  }

  sleeps(): number {
    return statsOf(this.#port).parks;
  }

  close(): void {
    this.#port.close();
  }
}
