/**
 * What is needed to halt a testee between two of its accesses, where it is a process on a file.
 * What happens in between is then not a matter of luck.
 *
 * @module
 */

import type { Field } from "../arena.ts";
import type { Halt } from "../race_orders.ts";
import { Cannot } from "../racer.ts";
import type { Script } from "./stage.ts";

/** What to halt at, and what to do then; words that are stored only, where it says so. */
export type Plan = Pick<Halt, "moves" | "follow" | "isLate"> & {
  words: number[];
  stores?: boolean;
};

/** A script that is declined where the kit cannot halt a testee. */
export function halted(script: Script): Script {
  return {
    ...script,
    async play(arena) {
      try {
        return await script.play(arena);
      } catch (error) {
        if (error instanceof Cannot) return error.message;
        throw error;
      }
    },
  };
}

/**
 * Has the testee halted whenever it touches certain words, for as long as something takes. Gives
 * that, how often it touched each of them, and what the moves have found.
 */
export async function whileHalted<T>(
  field: Field,
  { words, stores = false, ...plan }: Plan,
  act: () => Promise<T>,
): Promise<{ got: T; counts: number[]; found: number[] }> {
  const access = stores ? "store" : "load";
  const list = words.map((index) => ({ index, access } as const));
  const racing = field.race({ do: "halt", words: list, ...plan });
  await racing.begun;
  const got = await act();
  const found = await racing.stop();
  return { got, counts: found.slice(0, words.length), found: found.slice(words.length) };
}
