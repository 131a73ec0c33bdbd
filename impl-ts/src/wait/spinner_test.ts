/** What counts as found by a spin. See `spec/wait.md`. */

import { assertEquals } from "@std/assert";
import { pipe, withClock } from "../testing/fixture.ts";
import { NOTHING, something, TestLoop, THERE } from "./fixture.ts";
import { type Sight, Spinner } from "./spinner.ts";

Deno.test("[wait.spin_record] what is there at the first look no spin has found", () => {
  const { writer, reader } = pipe({ spin: 8 });
  const { inlet } = reader;
  const { spinner } = inlet.endpoint;
  /** Whether it goes on spinning behind three misses, that, and another one. */
  const goesOnBehind = (find: () => boolean) => {
    spinner.spin(something(), Infinity);
    for (let i = 0; i < 3; i++) spinner.spin(NOTHING, Infinity);
    assertEquals(find(), true);
    spinner.spin(NOTHING, Infinity);
    return spinner.dips;
  };
  const glance = (early: boolean) => {
    const { load } = Atomics;
    let looks = 0;
    if (early) writer.write(1);
    Atomics.load = ((words: Int32Array, index: number) => {
      if (looks++ === 1 && !early) writer.write(1);
      return load(words, index);
    }) as typeof load;
    try {
      return inlet.glance(4);
    } finally {
      Atomics.load = load;
      reader.tryRead();
    }
  };
  assertEquals(goesOnBehind(() => spinner.spin(THERE, Infinity)), false);
  assertEquals(goesOnBehind(() => spinner.spin(something(), Infinity)), true);
  assertEquals(goesOnBehind(() => spinner.dip(THERE)), false);
  assertEquals(goesOnBehind(() => spinner.dip(something())), true);
  assertEquals(goesOnBehind(() => glance(true)), false);
  assertEquals(goesOnBehind(() => glance(false)), true);
  // A try that is due stays due.
  for (let i = 0; i < 4; i++) spinner.spin(NOTHING, Infinity);
  while (spinner.skip());
  spinner.spin(THERE, Infinity);
  assertEquals(spinner.skip(), false);
});

Deno.test("[wait.spin_record] a miss makes spins twice as long, and four end them", () =>
  withClock((clock) => {
    const spinner = new Spinner(500, true);
    const spins = () => {
      const start = clock.ms;
      spinner.spin(NOTHING, Infinity);
      return [Math.round((clock.ms - start) / 0.5), spinner.dips];
    };
    const budgets = Array.from({ length: 4 }, spins);
    assertEquals(budgets, [[1, true], [2, true], [2, true], [2, false]]);
  }));

Deno.test("[wait.spin_record] what is there at the first look, no loop has found by a spin", () => {
  const loop = new TestLoop(8, 0);
  /** Looks of a wait in which the peer, which was asleep, is awake; and of the next one. */
  const looksBehind = (sight: Sight) => {
    const { loopSpinner } = loop;
    loop.rang = true;
    loopSpinner.spin(NOTHING);
    loop.rang = false;
    assertEquals(loopSpinner.spin(sight), true);
    loop.rang = true;
    let looks = 0;
    loopSpinner.spin({ look: () => ++looks > 2, lookAround: () => false });
    return looks;
  };
  assertEquals(looksBehind(THERE), 1);
  assertEquals(looksBehind(something()), 3);
});
