/** An event loop that stands still for an answer: the option `nap`. */

import { assertEquals, assertThrows } from "@std/assert";
import { watched, withClock, withProcessors } from "../testing/fixture.ts";
import { Hub } from "../more/hub.ts";
import { RING_READER_WANTS_WORD, WAIT_SLICE_ATTACHED_MS } from "../memory/layout.ts";
import { Port } from "../port/port.ts";
import type { Mechanism } from "./wait.ts";
import { coming, TestLoop } from "./fixture.ts";
import { nextTask } from "./task.ts";

/** A mechanism whose sleeps do something else, and the sleeps of each kind. */
function acting(act: (ms: number) => void, blocks = true) {
  const naps: number[] = [];
  const sleeps = { async: 0 };
  const usual = watched((ms) => {
    naps.push(ms);
    act(ms);
  }, blocks);
  const mechanism: Mechanism = {
    ...usual,
    sleepAsync(...given) {
      sleeps.async++;
      return usual.sleepAsync(...given);
    },
  };
  return { mechanism, naps, sleeps };
}

/** Posts and is answered so many times; the answers come in the naps, or a little later. */
async function converse(
  count: number,
  nap: number | undefined,
  how: "soon" | "late",
  blocks = true,
) {
  const { mechanism, naps, sleeps } = acting(() => how === "soon" && there.write(0), blocks);
  using here = Port.create<number>({ nap, spin: 0, mechanism });
  using there = Port.attach<number>(here.memory);
  await new Promise<void>((resolve) => {
    let left = count;
    const post = () => {
      const before = naps.length;
      here.postMessage(1);
      // Answers that the nap has not brought.
      nextTask(true).then(() => {
        if (how === "late" || naps.length === before) there.write(0);
      });
    };
    here.onmessage = () => {
      if (--left === 0) resolve();
      else post();
    };
    post();
  });
  here.onmessage = null;
  return { naps, asleep: sleeps.async > 0 };
}

Deno.test("an event loop naps for an answer, and does not turn where it comes", () =>
  withClock(async () => {
    const { naps } = await converse(20, 4, "soon");
    assertEquals(naps, Array(naps.length).fill(4));
    // Before the first post nothing was there to be answered, behind the last nobody listens.
    assertEquals(naps.length >= 18, true, `${naps.length}`);
  }));

Deno.test("[wait.slice] a nap ends with its slice, whatever the option says", async () => {
  const { naps } = await converse(3, Infinity, "soon");
  assertEquals(naps, Array(naps.length).fill(WAIT_SLICE_ATTACHED_MS));
  assertEquals(naps.length > 0, true);
});

for (const count of [1, 2]) {
  Deno.test(`on ${count} processors, it naps once a few answers have come soon, if it shall`, () =>
    withProcessors(count, () =>
      withClock(async () => {
        const { naps } = await converse(20, undefined, "soon");
        assertEquals(naps, Array(naps.length).fill(4));
        const most = count === 1 ? 18 : 16;
        assertEquals(naps.length >= 13 && naps.length <= most, true, `${naps.length}`);
        assertEquals(await converse(20, 0, "soon"), { naps: [], asleep: true });
        assertEquals(await converse(20, undefined, "soon", false), { naps: [], asleep: true });
      })));
}

Deno.test("[wait.spin_record] naps that find nothing become rare", async () => {
  await withClock(async () => assertEquals((await converse(60, 4, "late")).naps.length, 2));
  const loop = new TestLoop(0, 4);
  // Waits, and naps among them.
  const tries = (count: number, finds: boolean, ms: number) => {
    const before = loop.naps.length;
    const { now } = performance;
    try {
      for (let n = 0; n < count; n++) {
        const napped = loop.naps.length;
        performance.now = () => loop.naps.length > napped ? ms : 0;
        loop.loopSpinner.nap(coming(() => finds));
        if (loop.naps.length === napped) loop.loopSpinner.slept(ms);
      }
    } finally {
      performance.now = now;
    }
    return loop.naps.length - before;
  };
  assertEquals(tries(50, true, 4), 50);
  assertEquals(tries(1, false, 0), 1);
  assertEquals(tries(3, false, 4), 1); // two answers later
  // From now on 256 answers, then 512 and 1,024, make up for one; two have.
  assertEquals(tries(254, false, 4), 0);
  assertEquals(tries(1 + 512 + 1 + 1024, false, 4), 2);
  // One that finds something makes up for none, but the next in vain is 128 again.
  assertEquals(tries(1, true, 4), 1);
  assertEquals(tries(1 + 127 + 1 + 256, false, 4), 2);
  // One that takes longer than a nap has to be followed by two that do not.
  assertEquals(tries(1000, true, 4.1), 1);
  assertEquals(tries(1000, true, 4), 998);
});

Deno.test("a nap that a ring for another port of the endpoint ends is not one in vain", () =>
  withClock(async () => {
    const { mechanism, naps } = acting(() => others.write(0));
    using hub = Hub.create<number>(2, { nap: 4, spin: 0, mechanism });
    using there = Port.attach<number>(hub.memory, { endpoint: 1 });
    using others = Port.attach<number>(hub.memory, { endpoint: 2 });
    const [here, other] = hub.ports;
    other!.onmessage = () => {};
    await new Promise<void>((resolve) => {
      let left = 20;
      const post = () => {
        here!.postMessage(1);
        nextTask(true).then(() => there.write(0));
      };
      here!.onmessage = () => --left === 0 ? resolve() : post();
      post();
    });
    here!.onmessage = other!.onmessage = null;
    assertEquals(naps.length >= 15, true, `${naps.length}`);
  }));

Deno.test("a nap without an option follows answers in a millisecond, or a tenth", async () => {
  /** The naps behind each of several sleeps of so many milliseconds. */
  const napsOf = (nap: number | undefined, blocks: boolean, sleeps: number[]) =>
    sleeps.map((_, last) => {
      const loop = new TestLoop(0, nap, blocks);
      // It looks first, once it is about to nap, how many processors there are.
      for (const ms of [0, 0]) loop.loopSpinner.slept(ms);
      loop.loopSpinner.nap(coming(() => true));
      loop.naps.length = 0;
      for (const ms of [10, ...sleeps.slice(0, last)]) loop.loopSpinner.slept(ms);
      loop.loopSpinner.nap(coming(() => true));
      return loop.naps[0] ?? 0;
    });
  for (const [count, tenths] of [[1, 10], [2, 1]] as const) {
    await withProcessors(count, () => {
      const sleeps = [0.05, 0.15, 0.05, 0.1, 0.01, 0.11, 0.01].map((ms) => ms * tenths);
      assertEquals(napsOf(undefined, true, sleeps), [0, 0, 0, 0, 4, 4, 0]);
      for (const [nap, blocks] of [[undefined, false], [4, false], [0, true]] as const) {
        assertEquals(napsOf(nap, blocks, [0, 0, 0, 0]), [0, 0, 0, 0]);
      }
    });
  }
});

Deno.test("[wait.spin_record] a loop spins long behind short naps, as behind short sleeps", () =>
  withClock(async (clock) => {
    const spins: number[] = [];
    let posted = 0;
    const { mechanism } = acting(() => {
      spins.push(clock.ms - posted);
      clock.ms += 0.3;
      there.write(0);
    });
    using here = Port.create<number>({ nap: 4, spin: 20, mechanism });
    using there = Port.attach<number>(here.memory);
    await new Promise<void>((resolve) => {
      let left = 20;
      here.onmessage = () => {
        if (--left === 0) return resolve();
        posted = clock.ms;
        here.postMessage(1);
      };
      there.write(0);
    });
    here.onmessage = null;
    // The next one, behind one in vain, would be the 24th.
    assertEquals(spins.map((ms) => ms > 0.2), spins.map((_, i) => i === 7));
    assertEquals(spins.length >= 16, true, `${spins.length}`);
  }));

Deno.test("[wait.recheck] an event loop does not nap over what came while it armed", async () => {
  const { mechanism, naps } = acting(() => {});
  using here = Port.create<number>({ nap: 4, spin: 0, mechanism });
  using there = Port.attach<number>(here.memory);
  const { store } = Atomics;
  let isPosted = false;
  Atomics.store = ((words: Int32Array, at: number, value: number) => {
    const stored = store(words, at, value);
    if (isPosted && at === RING_READER_WANTS_WORD && value !== 0) {
      isPosted = false;
      there.write(2);
    }
    return stored;
  }) as typeof store;
  try {
    await new Promise<void>((resolve) => {
      here.onmessage = ({ data }) => {
        if (data === 2) return resolve();
        here.postMessage(data);
        isPosted = true;
      };
      there.write(1);
    });
  } finally {
    Atomics.store = store;
  }
  here.onmessage = null;
  assertEquals(naps, []);
});

Deno.test("a nap is in milliseconds, 0 or more", () => {
  for (const nap of [-1, NaN]) assertThrows(() => Port.create({ nap }), RangeError, "nap");
});
