/** Our port, from TypeScript to TypeScript: the verbs that everybody uses. @module */
import { type Codec, Port, type PortCreateOptions } from "../../../impl-ts/src/mod.ts";
import { portMemory, statsOf } from "../../../impl-ts/src/mod.ts";
import { readInto, tryReadInto } from "../../../impl-ts/src/more/raw.ts";
import type { Scenario } from "../../contract.ts";
import { readStamp, sampleOf, stamp, valuesOf } from "../payload.ts";
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
export function portEnd<Value>(port: Port<Value>) {
  return {
    kind: "blocking",
    idle: (timeout: number) => void port.read({ timeout }),
    sleeps: () => statsOf(port).parks,
    close: () => port.close(),
  } as const;
}

const peer: Peer = {
  decline({ name, payload }) {
    const isLost = name === "values" && !sampleOf(payload).isPlain;
    return isLost ? "JSON cannot carry it" : undefined;
  },
  prepare: sharedPort,
  open(order): End {
    const { scenario, role } = order;
    if (kindOf(scenario, role) === "events") return portEvents(openPort(order), scenario);
    if (scenario.format === "bytes") return portBytes(openPort(order), scenario.size);
    return portValues(openPort(order), scenario);
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
function portBytes(port: Port<Uint8Array>, size: number): BlockingEnd {
  const outgoing = new Uint8Array(size);
  const incoming = new Uint8Array(size);
  const read = (came: number | undefined): number => {
    if (came !== size) throw new Error(`A message of ${came} bytes came`);
    return readStamp(incoming, 0, size);
  };
  return {
    ...portEnd(port),
    send(number) {
      stamp(outgoing, 0, size, number);
      port.write(outgoing, WAIT);
    },
    receive: () => read(readInto(port, incoming, WAIT)),
    tryReceive() {
      const came = tryReadInto(port, incoming);
      return came === undefined ? -1 : read(came);
    },
  };
}

/** Values, in JSON or by another codec. */
export function portValues(port: Port, scenario: Scenario): BlockingEnd {
  const values = valuesOf(scenario);
  return {
    ...portEnd(port),
    send: (number) => port.write(values.with(number), WAIT),
    receive() {
      const value = port.read(WAIT);
      if (value === undefined) throw new Error("No message came");
      return values.numberOf(value);
    },
    tryReceive() {
      const value = port.tryRead();
      return value === undefined ? -1 : values.numberOf(value);
    },
  };
}

/** The interface of a `MessagePort`. */
function portEvents(port: Port, scenario: Scenario): EventEnd {
  const values = valuesOf(scenario);
  return {
    kind: "events",
    tells: true,
    send: (number) => port.postMessage(values.with(number)),
    listen: (take) => port.onmessage = ({ data }) => take(values.numberOf(data)),
    sleeps: () => statsOf(port).parks,
    close: () => port.close(),
  };
}
