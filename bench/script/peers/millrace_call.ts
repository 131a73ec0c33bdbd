/** Our calls, blocking or as promises. @module */
import { type Remote, remote, serve } from "../../../impl-ts/src/call/call.ts";
import { type Port, portMemory, statsOf } from "../../../impl-ts/src/mod.ts";
import { both, type CallEnd, kindOf, PATIENCE_MS, type Peer } from "../peer.ts";
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
    return new CallingPort(openPort(order, CAPACITY), blocks);
  },
};

/** The peer of this file. */
export const peers = { "millrace-call": peer };

/** One side of a port, of whatever transport. */
export class CallingPort implements CallEnd {
  readonly kind = "calls";
  readonly blocks: boolean;
  readonly ask: CallEnd["ask"];
  readonly nest: CallEnd["nest"];
  readonly #port: Port;
  readonly #far: Remote<Api>;
  readonly #left: Promise<void>;
  #leave = () => {};

  constructor(port: Port, blocks: boolean) {
    this.blocks = blocks;
    this.#port = port;
    this.#far = remote<Api>(port);
    this.#left = new Promise((resolve) => this.#leave = resolve);
    // A deadline of its own would have a timer set for each call that is a promise.
    const { sync } = this.#far.with(WAIT);
    const far = this.#far;
    this.ask = blocks ? (number) => sync.ask(number) : (number) => far.ask(number);
    this.nest = blocks ? (number) => sync.nest(number) : (number) => far.nest(number);
  }

  serve(ask: (number: number) => number): void {
    const nest = this.blocks
      ? (number: number) => this.#far.sync.ask(number) + 1
      : async (number: number) => await this.#far.ask(number) + 1;
    serve(this.#port, { ask, nest, leave: () => this.#leave() } satisfies Api);
  }

  async rest(): Promise<void> {
    if (this.blocks) { while (!this.#port.ended) this.#port.read(WAIT); }
    await this.#left;
    // So that the answer to the last call is on its way before this side closes.
    await this.#port.closed;
  }

  async leave(): Promise<void> {
    if (this.blocks) this.#far.sync.leave();
    else await this.#far.leave();
    this.#port.end();
  }

  sleeps(): number {
    return statsOf(this.#port).parks;
  }

  close(): void {
    this.#port.close();
  }
}
