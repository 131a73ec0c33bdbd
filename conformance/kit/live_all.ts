/**
 * All live cases.
 *
 * @module
 */

import type { Arena } from "./arena.ts";
import { CALL_PLANS } from "./live_calls.ts";
import { LIVE_PLANS, MAILBOX_PLANS } from "./live_cases.ts";
import { liveCase } from "./live_level.ts";
import { liveValues } from "./live_values.ts";
import type { KitCase } from "./verdict.ts";

/** The cases of the level live; `death` is what a survivor learns in that place. */
export function liveCases(death: string): KitCase<Arena>[] {
  return [...[...LIVE_PLANS, ...CALL_PLANS].map((plan) => liveCase(plan, death)), liveValues()];
}

/** Those of the track of the mailbox. */
export function liveMailboxes(death: string): KitCase<Arena>[] {
  return MAILBOX_PLANS.map((plan) => liveCase(plan, death));
}
