/** What the tests of waits share. */

import type { Sight } from "./spin.ts";

/** What no spin finds, and what is there before it. */
export const NOTHING: Sight = { sees: () => false, hasChanged: () => false };
export const THERE: Sight = { sees: () => true, hasChanged: () => false };

/** What a spin finds, as it is not there at the first look. */
export function something(): Sight {
  let looks = 0;
  return { sees: () => looks++ > 0, hasChanged: () => false };
}
