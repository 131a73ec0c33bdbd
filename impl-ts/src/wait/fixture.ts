/** What the tests of waits share. */

import type { Waiter } from "./endpoint.ts";
import type { Spinner } from "./spin.ts";

/** What a spin looks at: a waiter of an endpoint that has this record, and whose state stays. */
export type Sight = (spinner: Spinner) => Waiter;

/** A sight of which each look tells whether something is there. */
export const sight = (sees: () => boolean): Sight => (spinner) => {
  const endpoint = { spinner, words: new Int32Array(1), state: 0, attached: 0 };
  return { endpoint, peerStates: [], sees } as unknown as Waiter;
};

/** What no spin finds, and what is there before it. */
export const NOTHING: Sight = sight(() => false);
export const THERE: Sight = sight(() => true);

/** What a spin finds, as it is not there at the first look. */
export function something(): Sight {
  let looks = 0;
  return sight(() => looks++ > 0);
}
