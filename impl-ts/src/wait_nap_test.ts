/** An event loop that stands still for an answer: the option `nap`. */

import { assertEquals, assertThrows } from "@std/assert";
import { watched, withClock } from "./fixture.ts";
import { RING_READER_WANTS_WORD, WAIT_SLICE_ATTACHED_MS } from "./layout.ts";
import { Port } from "./port.ts";
import type { Mechanism } from "./wait.ts";
import { Naps } from "./wait_spinner.ts";

/** A mechanism whose sleeps do something else, and the sleeps of each kind. */
function acting(act: () => void, blocks = true) {
  const naps: number[] = [];
  const sleeps = { async: 0 };
  const usual = watched((ms) => {
    naps.push(ms);
    act();
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
      setTimeout(() => {
        if (how === "late" || naps.length === before) there.write(0);
      }, 0);
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

Deno.test("an event loop naps for an answer, and does not turn where it comes", async () => {
  const { naps } = await converse(20, 4, "soon");
  assertEquals(naps, Array(naps.length).fill(4));
  // Before the first post nothing was there to be answered, behind the last nobody listens.
  assertEquals(naps.length >= 18, true, `${naps.length}`);
});

Deno.test("[wait.slice] a nap ends with its slice, whatever the option says", async () => {
  const { naps } = await converse(3, Infinity, "soon");
  assertEquals(naps, Array(naps.length).fill(WAIT_SLICE_ATTACHED_MS));
  assertEquals(naps.length > 0, true);
});

Deno.test("an event loop naps only if it is told to, and may block", async () => {
  assertEquals(await converse(5, undefined, "late"), { naps: [], asleep: true });
  assertEquals(await converse(5, 0, "late"), { naps: [], asleep: true });
  assertEquals(await converse(5, 4, "late", false), { naps: [], asleep: true });
});

Deno.test("[wait.spin_record] naps that find nothing become rare", async () => {
  assertEquals((await converse(60, 4, "late")).naps.length, 8);
  const naps = new Naps(4, true);
  const tries = (count: number, found: boolean) => {
    let tried = 0;
    for (let n = 0; n < count; n++) {
      if (!naps.try()) continue;
      tried++;
      naps.note(found);
    }
    return tried;
  };
  assertEquals(tries(8 + 3 * 128, false), 8 + 3);
  assertEquals(tries(128 + 9, true), 10); // one that finds something makes up for all
  assertEquals(tries(7, false), 7);
  assertEquals(tries(1, true), 1);
  assertEquals(tries(8, false), 8);
  assertEquals(tries(1, false), 0);
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
    assertEquals(spins.map((ms) => ms > 0.2), spins.map((_, i) => i % 8 === 7));
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
