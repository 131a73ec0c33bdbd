/** On one processor nobody spins: whoever could answer waits for the same processor. */

import { assertEquals } from "@std/assert";
import { withProcessors } from "../testing/fixture.ts";
import { TestLoop } from "./fixture.ts";
import { Spinner } from "./spinner.ts";

/** Looks of one wait for what never comes, by each who could spin. */
function looksOf(spin?: number): number[] {
  let looks = 0;
  const sight = {
    look: () => ++looks < 0,
    lookAround: () => false,
  };
  const count = (wait: () => unknown) => {
    looks = 0;
    wait();
    return looks;
  };
  const spinner = new Spinner(spin, true);
  const loop = new TestLoop(spin, 0);
  loop.rang = false;
  // A fresh one would sleep in its first waits.
  let found = 0;
  spinner.spin({ look: () => found++ > 0, lookAround: () => false }, Infinity);
  return [
    count(() => spinner.spin(sight, Infinity)),
    count(() => spinner.dips && spinner.dip(sight)),
    spinner.glances,
    count(() => loop.loopSpinner.spin(sight)),
  ];
}

Deno.test("[wait.spin] with one processor no wait spins, with two all do", async () => {
  await withProcessors(
    1,
    () => assertEquals(looksOf().map((looks) => looks <= 1), [true, true, true, true]),
  );
  await withProcessors(
    2,
    () => assertEquals(looksOf().map((looks) => looks > 16), [true, true, true, true]),
  );
  await withProcessors(
    1,
    () => assertEquals(looksOf(50).map((looks) => looks > 16), [true, true, true, true]),
  );
});

const TASKSET = "/usr/bin/taskset";
const hasTaskset = await Deno.stat(TASKSET).then(() => true, () => false);

Deno.test({
  name: "[wait.spin] a process that is held on one processor counts one",
  ignore: !hasTaskset,
  fn: async () => {
    const module = new URL("./wait.ts", import.meta.url).href;
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
