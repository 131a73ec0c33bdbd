/** Our calls, blocking or as promises. @module */
import { type Remote, remote, serve } from "../../../impl-ts/src/call/call.ts";
import { type Port, portMemory, statsOf } from "../../../impl-ts/src/mod.ts";
import { both, type CallEnd, kindOf, later, PATIENCE_MS, type Peer } from "../peer.ts";
import { openPort, portOptions } from "./millrace.ts";

/** Of the ring: calls are small. */
const CAPACITY = 64 * 1024;
const WAIT = { timeout: PATIENCE_MS };

/** What both ends serve. */
interface Api {
  ask(number: number): number;
  nest(number: number): number | Promise<number>;
  leave(): void;
}

const peer: Peer = {
  decline({ name }) {
    return name === "calls" ? undefined : "only calls";
  },
  prepare(scenario) {
    const memory = portMemory(portOptions(scenario, CAPACITY));
    return both(memory);
  },
  open(order) {
    const blocks = kindOf(order.scenario, order.role) === "blocking";
    return callingEnd(openPort(order, CAPACITY), blocks);
  },
};

/** The peer of this file. */
export const peers = { "millrace-call": peer };

/** One side of a port, of whatever transport. */
export function callingEnd(port: Port, blocks: boolean): CallEnd {
  const far: Remote<Api> = remote<Api>(port);
  // A deadline of its own would have a timer set for each call that is a promise.
  const { sync } = far.with(WAIT);
  const left = later();
  return {
    kind: "calls",
    blocks,
    serve(ask) {
      const nest = blocks
        ? (number: number) => far.sync.ask(number) + 1
        : async (number: number) => await far.ask(number) + 1;
      serve(port, { ask, nest, leave: () => left.resolve() } satisfies Api);
    },
    ask: blocks ? (number) => sync.ask(number) : (number) => far.ask(number),
    nest: blocks ? (number) => sync.nest(number) : (number) => far.nest(number),
    async rest() {
      if (blocks) { while (!port.ended) port.read(WAIT); }
      await left.promise;
      // So that the answer to the last call is on its way before this side closes.
      await port.closed;
    },
    async leave() {
      if (blocks) far.sync.leave();
      else await far.leave();
      port.end();
    },
    sleeps: () => statsOf(port).parks,
    close: () => port.close(),
  };
}
