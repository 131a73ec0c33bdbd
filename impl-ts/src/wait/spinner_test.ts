/** What an endpoint remembers of its spins, and what follows from it. See `spec/wait.md`. */

import { assert, assertEquals } from "@std/assert";
import { pipe, watched, withClock } from "../testing/fixture.ts";
import { ports } from "../port/fixture.ts";
import { NOTHING, type Sight, sight, something, THERE } from "./fixture.ts";
import {
  budgetOf,
  isDue,
  learns,
  makeSpinner,
  pays,
  slept,
  spin as spinOnce,
  type Spinner,
} from "./spin.ts";

const BLOCKS = watched(() => {});

/** A record of an endpoint that was told for how many microseconds it has to spin. */
function told(us: number): Spinner {
  return makeSpinner(us, BLOCKS);
}

function spin(spinner: Spinner, sight: Sight): boolean {
  return spinOnce(sight(spinner), 0, budgetOf(spinner), Infinity);
}

/** How many waits sleep at once before a spin is due; each sleep takes so many milliseconds. */
function waitsUntilDue(spinner: Spinner, sleepMs: number): number {
  for (let waits = 0;; waits++) {
    if (isDue(spinner)) return waits;
    slept(spinner, sleepMs);
  }
}

Deno.test("[wait.spin_record] what is there at the first look no spin has found", () => {
  /** Whether it goes on spinning after seven misses, that, and another one. */
  const goesOnAfter = (sight: Sight) => {
    const spinner = told(8);
    for (let i = 0; i < 7; i++) assertEquals(spin(spinner, NOTHING), false);
    assertEquals(spin(spinner, sight), true);
    spin(spinner, NOTHING);
    return pays(spinner);
  };
  assertEquals([goesOnAfter(THERE), goesOnAfter(something())], [false, true]);
  // A try that is due stays due.
  const spinner = told(8);
  for (let i = 0; i < 8; i++) spin(spinner, NOTHING);
  waitsUntilDue(spinner, 0.1);
  spin(spinner, THERE);
  assertEquals(isDue(spinner), true);
});

Deno.test("[wait.spin_record] eight misses end the spins, a try that finds starts them", () => {
  const spinner = told(8);
  for (let i = 0; i < 8; i++) {
    assertEquals([pays(spinner), isDue(spinner)], [true, true]);
    spin(spinner, NOTHING);
  }
  assertEquals([pays(spinner), isDue(spinner)], [false, false]);
  spin(spinner, something());
  assertEquals([pays(spinner), isDue(spinner)], [true, true]);
});

Deno.test("[wait.spin_record] a fresh end sleeps at once, and tries a spin now and then", () => {
  const fresh = () => makeSpinner(undefined, BLOCKS);
  const spinner = fresh();
  const tries = Array.from({ length: 5 }, () => {
    const waits = waitsUntilDue(spinner, 0.1);
    spin(spinner, NOTHING);
    return waits;
  });
  // Each in vain makes them rarer, up to a bound.
  assertEquals(tries, [8, 16, 32, 64, 127]);
  // After sleeps that no spin could have replaced it tries none early.
  assertEquals(waitsUntilDue(fresh(), 1), 127);
  // Once a spin has found something, the next ones in vain count from the beginning.
  const other = fresh();
  waitsUntilDue(other, 0.1);
  spin(other, something());
  assertEquals(pays(other), true);
  for (let i = 0; i < 8; i++) spin(other, NOTHING);
  assertEquals(waitsUntilDue(other, 0.1), 127);
});

Deno.test("[wait.spin_record] after a miss it spins as long as its last sleep, up to 0.4 ms", () =>
  withClock((clock) => {
    const spent = (sleepMs: number) => {
      const spinner = told(50);
      const first = clock.ms;
      spin(spinner, NOTHING);
      const second = clock.ms;
      slept(spinner, sleepMs);
      spin(spinner, NOTHING);
      return [second - first, clock.ms - second].map((ms) => Math.round(ms * 20) / 20);
    };
    assertEquals([spent(0.2), spent(0.01), spent(0.6)], [[0.05, 0.2], [0.05, 0.05], [0.05, 0.4]]);
    assertEquals(spent(1), [0.05, 0.05]); // it has other work
  }));

Deno.test("[wait.spin_record] what a spin finds late leaves two misses", () =>
  withClock((clock) => {
    const spinner = told(50);
    for (let i = 0; i < 8; i++) spin(spinner, NOTHING);
    slept(spinner, 0.3);
    const late = clock.ms + 0.1;
    assertEquals(spin(spinner, sight(() => clock.ms >= late)), true);
    assertEquals(pays(spinner), true);
    spin(spinner, NOTHING);
    assertEquals(pays(spinner), true);
    spin(spinner, NOTHING);
    assertEquals(pays(spinner), false);
  }));

Deno.test("the processors are counted when a spin is due, and not before", () => {
  let counts = 0;
  const counted = { get: () => (counts++, 2), configurable: true };
  Object.defineProperty(navigator, "hardwareConcurrency", counted);
  try {
    const spinner = makeSpinner(undefined, BLOCKS);
    for (let waits = 0; waits < 8; waits++) {
      assertEquals([pays(spinner), isDue(spinner)], [false, false]);
      if (learns(spinner)) slept(spinner, 0.1);
    }
    assertEquals(counts, 0);
    assertEquals([isDue(spinner), counts], [true, 1]);
  } finally {
    delete (navigator as { hardwareConcurrency?: number }).hardwareConcurrency;
  }
});

Deno.test("a read that blocks looks for an answer before it sleeps, for no other message", () => {
  // The option says for how long; the first looks are not timed.
  for (const [us, sleeps] of [[50, 0], [0, 1]] as const) {
    let slept = 0;
    let left = 20;
    const mechanism = watched(() => {
      slept++;
      there.write(2);
    });
    const [here, there] = ports({ spin: us, mechanism });
    const { load } = Atomics;
    here.write(1);
    const { other } = here.link.incoming!;
    Atomics.load = ((words: Int32Array, index: number) => {
      if (us > 0 && index === other && --left === 0) there.write(2);
      return load(words, index);
    }) as typeof load;
    try {
      assertEquals(here.read(), 2);
    } finally {
      Atomics.load = load;
    }
    assertEquals(slept, sleeps);
  }
});

Deno.test("an event loop spins for an answer, 20 µs at most, and for nothing else", () =>
  withClock(async (clock) => {
    const { writer, reader } = pipe({ spin: 50 });
    const [here, there] = ports({ spin: 50 });
    /** Hundredths of a millisecond until the delivery of a message is through. */
    const spent = async (listen: (next: () => void) => void) => {
      let start = 0;
      await new Promise<void>((resolve) => {
        listen(() => {
          start = clock.ms;
          setTimeout(resolve, 5);
        });
      });
      return Math.round((clock.ms - start) * 100);
    };
    const asking = await spent((next) => {
      here.onmessage = () => {
        here.postMessage(1);
        next();
      };
      there.write(0);
    });
    assert(asking >= 2 && asking < 5, `${asking}`);
    const silent = await spent((next) => {
      here.onmessage = next;
      there.write(0);
    });
    assert(silent < 2, `${silent}`);
    here.close();
    there.close();
    writer.close();
    reader.close();
  }));
