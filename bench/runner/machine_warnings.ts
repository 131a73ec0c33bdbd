/**
 * What makes the figures of a run doubtful; also for the page, which cannot look at a machine.
 *
 * @module
 */
import type { Machine } from "./machine.ts";

/** Above these, a run is worth little. */
const BUSY_MAX = 10;
const STEAL_MAX = 2;

/** What makes the figures of a run doubtful, one line each. */
export function machineWarnings({ busy_percent, steal_percent, processors }: Machine): string[] {
  const warnings: string[] = [];
  if (busy_percent > BUSY_MAX) {
    warnings.push(`other programs used ${busy_percent} % of the processors before the run`);
  }
  if (steal_percent > STEAL_MAX) {
    warnings.push(`the host took away ${steal_percent} % of the processors during the run`);
  }
  if (processors < 2) warnings.push("there is one processor: nothing can spin");
  return warnings;
}
