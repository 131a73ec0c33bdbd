/**
 * All scripts of streams, as cases.
 *
 * @module
 */

import type { Arena } from "../arena.ts";
import type { KitCase } from "../verdict.ts";
import { ARRIVAL_SCRIPTS } from "./arrival.ts";
import { CALL_SCRIPTS } from "./calls.ts";
import { CREDIT_SCRIPTS } from "./credit.ts";
import { streamCase } from "./script.ts";
import { STOPPING_SCRIPTS } from "./stopping.ts";

/** In the order in which they are played: who cannot read is not asked to stop. */
export const STREAMS: KitCase<Arena>[] = [
  ...ARRIVAL_SCRIPTS,
  ...CREDIT_SCRIPTS,
  ...CALL_SCRIPTS,
  ...STOPPING_SCRIPTS,
].map(streamCase);
