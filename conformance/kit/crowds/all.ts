/**
 * All live cases of crowds.
 *
 * @module
 */

import type { Arena } from "../arena.ts";
import type { KitCase } from "../verdict.ts";
import { answersCase } from "./answers.ts";
import { CROWD_PLANS } from "./cases.ts";
import { crowdCase } from "./level.ts";

/** Those of so many testees; `death` is what a survivor learns in that place. */
export function crowdCases(death: string, seats: number): KitCase<Arena>[] {
  return [...CROWD_PLANS.map((plan) => crowdCase(plan, death, seats)), answersCase(seats)];
}
