/** What the tests of waits share. */

import type { Waitable } from "./wait.ts";
import { type Loop, LoopSpinner } from "./loop_spinner.ts";
import type { Sight } from "./spinner.ts";

/** An event loop without an endpoint, which keeps the naps that are asked of it. */
export class TestLoop implements Loop {
  readonly spin: number | undefined;
  readonly nap: number | undefined;
  readonly mechanism: { readonly blocks: boolean };
  readonly watch = { isRung: false };
  readonly loopSpinner: LoopSpinner;
  /** Whether the peer has to be woken before each wait. */
  rang = true;
  /** Milliseconds of the naps so far. */
  readonly naps: number[] = [];

  constructor(spin: number | undefined, nap: number | undefined, blocks = true) {
    this.spin = spin;
    this.nap = nap;
    this.mechanism = { blocks };
    this.loopSpinner = new LoopSpinner(this);
  }

  noteRings(): boolean {
    return this.rang;
  }

  prepare(what: Waitable): Waitable {
    return what;
  }

  doze(_what: Waitable, ms: number): boolean {
    this.naps.push(ms);
    return true;
  }
}

/** Something that comes, or does not. */
export function coming(look: () => boolean): Waitable {
  return { peer: 0, look, lookAround: () => false, arm() {}, stayArmed() {}, disarm() {} };
}

/** What no spin finds, and what is there before it. */
export const NOTHING: Sight = { look: () => false, lookAround: () => false };
export const THERE: Sight = { look: () => true, lookAround: () => false };

/** What a spin finds, as it is not there at the first look. */
export function something(): Sight {
  let looks = 0;
  return { look: () => looks++ > 0, lookAround: () => false };
}
