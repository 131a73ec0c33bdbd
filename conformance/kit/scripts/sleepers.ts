/**
 * The kit asleep, several times over: what a testee that rings must wake.
 *
 * @module
 */

import type { Field } from "../arena.ts";
import { Wrong } from "../verdict.ts";
import { rest } from "./watch.ts";

const COUNT = 3;
/** Far longer than it takes to be woken. */
const SLEEP_MS = 800;
/** After so long all sleep; where they are threads they have to be started, which can take long. */
const SETTLE_MS = [5, 20, 100, 300];

/**
 * Has some threads sleep on a word and the testee do what must wake them. Throws where one sleeps
 * on, and says why it cannot be tried.
 */
export async function wakeAll(
  field: Field,
  index: number,
  clause: string,
  act: () => Promise<void>,
): Promise<string | undefined> {
  const { sleep } = field;
  if (sleep === undefined) return "the kit cannot sleep here several times over";
  for (const ms of SETTLE_MS) {
    const value = Atomics.load(field.words(), index);
    const sleeps = Array.from({ length: COUNT }, () => sleep.call(field, index, value, SLEEP_MS));
    await rest(ms);
    await act();
    const ends = await Promise.all(sleeps);
    const count = ends.filter((how) => how !== "timed-out").length;
    if (count < COUNT) throw new Wrong(`${clause} ${count} of ${COUNT} sleepers were woken`);
    if (!ends.includes("not-equal")) return undefined;
  }
  return "the kit's threads come to no sleep";
}
