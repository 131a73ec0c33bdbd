/**
 * The end of a library that only knows calls: what is sent is the argument, and what is received
 * the result.
 *
 * @module
 */
import type { Scenario } from "../contract.ts";
import { type Values, valuesOf } from "./payload.ts";
import type { BlockingEnd } from "./peer.ts";

/** Calls a function that blocks until the other thread has returned. */
export class CallingEnd implements BlockingEnd {
  readonly kind = "blocking";
  readonly #values: Values;
  readonly #call: (value: unknown) => unknown;
  #number = 0;

  constructor(scenario: Scenario, call: (value: unknown) => unknown) {
    this.#values = valuesOf(scenario);
    this.#call = call;
  }

  send(number: number): void {
    this.#number = number;
  }

  receive(): number {
    return this.#values.numberOf(this.#call(this.#values.with(this.#number)));
  }

  close(): void {}
}
