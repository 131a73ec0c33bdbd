/** On one processor nobody spins: whoever could answer waits for the same processor. */

import { assertEquals } from "@std/assert";
import { pipe, withProcessors } from "../testing/fixture.ts";
import { sight } from "./fixture.ts";
import { budgetOf, hit, isDue, spin as spinOnce } from "./spin.ts";

/** Looks of one wait for what never comes: of a read that blocks, and of its spin. */
function looksOf(spin?: number): number[] {
  const { reader } = pipe({ spin });
  const { spinner } = reader.link.endpoint;
  hit(spinner); // a fresh one would sleep in its first waits
  let looks = 0;
  const never = sight(() => ++looks < 0)(spinner);
  if (isDue(spinner)) spinOnce(never, 0, budgetOf(spinner), Infinity);
  const spun = looks;
  hit(spinner);
  const { load } = Atomics;
  const { other } = reader.link.incoming!;
  looks = 0;
  Atomics.load = ((words: Int32Array, index: number) => {
    if (index === other) looks++;
    return load(words, index);
  }) as typeof load;
  try {
    reader.read({ timeout: 0.001 });
  } finally {
    Atomics.load = load;
  }
  return [spun, looks];
}

Deno.test("[wait.spin] with one processor no wait spins, with two all do", async () => {
  await withProcessors(1, () => assertEquals(looksOf().map((looks) => looks < 8), [true, true]));
  await withProcessors(2, () => assertEquals(looksOf().map((looks) => looks > 16), [true, true]));
  await withProcessors(1, () => assertEquals(looksOf(50).map((looks) => looks > 16), [true, true]));
});

const TASKSET = "/usr/bin/taskset";
const hasTaskset = await Deno.stat(TASKSET).then(() => true, () => false);

Deno.test({
  name: "[wait.spin] a process that is held on one processor counts one",
  ignore: !hasTaskset,
  fn: async () => {
    const module = new URL("./mechanism.ts", import.meta.url).href;
    const code = `
      const { processorCount } = await import(${JSON.stringify(module)});
      console.log(processorCount());
    `;
    const { stdout } = await new Deno.Command(TASKSET, {
      args: ["-c", "0", Deno.execPath(), "eval", "--no-check", code],
    }).output();
    assertEquals(new TextDecoder().decode(stdout), "1\n");
  },
});
