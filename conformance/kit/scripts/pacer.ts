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
/**
 * Where the machine is later than this, a pause that is ten times too long does not show. Such a
 * try does not count, and behind so many of them the machine is too slow.
 */
const LATENESS_MAX_MS = 8;
const UNTOLD_MAX = 15;
/** Who has not looked by then does not poll at all. */
const PATIENCE_MS = 3_000;

/** How long a testee took to find something, and by how much a pause of the kit was late. */
interface Try {
  ms: number;
  lateMs: number;
}

/**
 * Puts something before a testee again and again, and throws where it is found late more than now
 * and then; says why where that cannot be told. `put` gives what says whether it was found.
 */
export async function judgePolling(
  clause: string,
  put: () => () => boolean,
): Promise<string | undefined> {
  const tries: Try[] = [];
  const untold: Try[] = [];
  const pollMs = limitOf("wait_poll_ms");
  // A pause takes its time and that of the machine, which the kit's own pauses meanwhile tell.
  const slow = () => tries.filter(({ ms, lateMs }) => ms > 2 * (pollMs + lateMs));
  while (tries.length < TRIES || slow().length > SLOW_MAX && tries.length < TRIES_MAX) {
    const each = await tryOnce(clause, put);
    (each.lateMs > LATENESS_MAX_MS ? untold : tries).push(each);
    if (untold.length < UNTOLD_MAX) continue;
    const lateMs = median(untold.map((one) => one.lateMs));
    return `this machine is too slow for it: a pause of the kit ends ${lateMs.toFixed(0)} ms late`;
  }
  if (slow().length <= SLOW_IN_ALL_MAX) return undefined;
  const shown = tries.map(({ ms }) => ms.toFixed(0)).join(", ");
  throw new Wrong(
    `${clause} found after ${shown} ms, where ${pollMs} are the longest pause and the machine is ` +
      `${median(tries.map(({ lateMs }) => lateMs)).toFixed(1)} ms late`,
  );
}

async function tryOnce(clause: string, put: () => () => boolean): Promise<Try> {
  let lateMs = await lateness(IDLE_MS + Math.random() * IDLE_MORE_MS);
  const begun = performance.now();
  const isFound = put();
  while (!isFound()) {
    if (performance.now() - begun > PATIENCE_MS) throw new Wrong(`${clause} it is never found`);
    lateMs = Math.max(lateMs, await lateness(1));
  }
  return { ms: performance.now() - begun, lateMs };
}

/** Pauses for so many milliseconds, and returns by how many more it was. */
async function lateness(ms: number): Promise<number> {
  const due = performance.now() + ms;
  await rest(ms);
  return performance.now() - due;
}

function median(numbers: readonly number[]): number {
  return numbers.toSorted((a, b) => a - b)[numbers.length >> 1] ?? 0;
}
