/**
 * How soon a testee that polls finds what nobody rings it for.
 *
 * @module
 */

import { limitOf } from "../../reference/layout.ts";
import { Wrong } from "../verdict.ts";
import { rest } from "./watch.ts";

/**
 * For how long nothing happens before: who pauses for longer and longer, up to some ten
 * milliseconds, does so by then.
 */
const IDLE_MS = 25;
const IDLE_MORE_MS = 45;
/** So many tries, and as many again and one more where that leaves a doubt. */
const TRIES = 7;
const TRIES_MAX = 15;
/** Of so many tries these may be slow; of pauses of 50 ms two thirds are. */
const SLOW_MAX = 1;
const SLOW_IN_ALL_MAX = 5;
/** Where the machine is later than this, a pause that is ten times too long does not show. */
const LATENESS_MAX_MS = 8;
/** Who has not looked by then does not poll at all. */
const PATIENCE_MS = 3_000;

/**
 * Puts something before a testee again and again, and throws where it is found late more than now
 * and then; says why where that cannot be told. `put` gives what says whether it was found.
 */
export async function judgePolling(
  clause: string,
  put: () => () => boolean,
): Promise<string | undefined> {
  const latenesses: number[] = [];
  const delays: number[] = [];
  const pollMs = limitOf("wait_poll_ms");
  // A pause takes its time and that of the machine, which the kit's own pauses tell.
  const boundMs = () => 2 * (pollMs + median(latenesses));
  const slow = () => delays.filter((ms) => ms > boundMs()).length;
  while (delays.length < TRIES || slow() > SLOW_MAX && delays.length < TRIES_MAX) {
    const due = performance.now() + IDLE_MS + Math.random() * IDLE_MORE_MS;
    await rest(due - performance.now());
    latenesses.push(performance.now() - due);
    const begun = performance.now();
    const isFound = put();
    while (!isFound()) {
      if (performance.now() - begun > PATIENCE_MS) throw new Wrong(`${clause} it is never found`);
      await rest(0);
    }
    delays.push(performance.now() - begun);
  }
  const lateMs = median(latenesses);
  if (lateMs > LATENESS_MAX_MS) {
    return `this machine is too slow for it: a pause of the kit ends ${lateMs.toFixed(0)} ms late`;
  }
  if (slow() <= SLOW_IN_ALL_MAX) return undefined;
  const shown = delays.map((ms) => ms.toFixed(0)).join(", ");
  throw new Wrong(
    `${clause} found after ${shown} ms, where ${pollMs} are the longest pause and the machine is ` +
      `${median(latenesses).toFixed(1)} ms late`,
  );
}

function median(numbers: readonly number[]): number {
  return numbers.toSorted((a, b) => a - b)[numbers.length >> 1] ?? 0;
}
