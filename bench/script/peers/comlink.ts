/** `comlink`: calls of the other thread's functions, over a `MessagePort`. @module */
import * as comlink from "comlink";
import type { Scenario } from "../../contract.ts";
import {
  type CallEnd,
  declineForEvents,
  type End,
  type EventEnd,
  type Order,
  type Peer,
} from "../peer.ts";
import { type Values, valuesOf } from "../payload.ts";
import { prepareChannel } from "./messageport.ts";

const peer: Peer = {
  decline(scenario) {
    const { name } = scenario;
    if (name === "idle" || name === "memory" || name === "load") return "only calls";
    if (scenario.burst !== undefined) return "confirms each message";
    return declineForEvents(scenario);
  },
  prepare: prepareChannel,
  open({ gear, role, scenario }: Order): End | CallEnd {
    const port = gear as MessagePort;
    if (scenario.name === "calls") return new CallingEnds(port);
    return role === "a" ? new Caller(port, scenario) : new Callee(port, scenario);
  },
};

/** The peer of this file. */
export const peers = { "comlink": peer };

/** What both ends expose, on the port on which each calls the other. */
interface Api {
  ask(number: number): number;
  nest(number: number): Promise<number>;
  leave(): void;
}

class CallingEnds implements CallEnd {
  readonly kind = "calls";
  readonly blocks = false;
  readonly #port: MessagePort;
  readonly #far: comlink.Remote<Api>;
  readonly #left: Promise<void>;
  #leave = () => {};

  constructor(port: MessagePort) {
    this.#port = port;
    this.#far = comlink.wrap<Api>(port);
    this.#left = new Promise((resolve) => this.#leave = resolve);
  }

  serve(ask: (number: number) => number): void {
    const nest = async (number: number) => await this.#far.ask(number) + 1;
    comlink.expose({ ask, nest, leave: () => this.#leave() }, this.#port);
  }

  ask(number: number): Promise<number> {
    return this.#far.ask(number);
  }

  nest(number: number): Promise<number> {
    return this.#far.nest(number);
  }

  rest(): Promise<void> {
    return this.#left;
  }

  leave(): Promise<void> {
    return this.#far.leave();
  }

  close(): void {
    this.#port.close();
  }
}

class Caller implements EventEnd {
  readonly kind = "events";
  readonly tells = true;
  readonly #values: Values;
  readonly #call: (value: unknown) => Promise<unknown>;
  #take = (_number: number) => {};

  constructor(port: MessagePort, scenario: Scenario) {
    this.#values = valuesOf(scenario);
    const { call } = comlink.wrap<{ call(value: unknown): unknown }>(port);
    this.#call = call;
  }

  async send(number: number): Promise<void> {
    this.#take(this.#values.numberOf(await this.#call(this.#values.with(number))));
  }

  listen(take: (number: number) => void): void {
    this.#take = take;
  }

  close(): void {}
}

/** Sends by returning: the value of the last `send` in a call is its answer. */
class Callee implements EventEnd {
  readonly kind = "events";
  readonly #port: MessagePort;
  readonly #values: Values;
  #answer: unknown;

  constructor(port: MessagePort, scenario: Scenario) {
    this.#port = port;
    this.#values = valuesOf(scenario);
  }

  send(number: number): void {
    this.#answer = this.#values.with(number);
  }

  listen(take: (number: number) => void): void {
    const call = (value: unknown) => {
      this.#answer = value;
      take(this.#values.numberOf(value));
      return this.#answer;
    };
    comlink.expose({ call }, this.#port);
  }

  close(): void {}
}
