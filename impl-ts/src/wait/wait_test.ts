import { assert, assertEquals, assertRejects, assertThrows } from "@std/assert";
import { Endpoint } from "./endpoint.ts";
import {
  assertCode,
  codeOf,
  pattern,
  pipe,
  pipeSegment,
  watched,
  withClock,
} from "../testing/fixture.ts";
import * as layout from "../memory/layout.ts";
import { Port } from "../port/port.ts";
import { agentMechanism, mayBlock, type Mechanism, pollingMechanism } from "./wait.ts";
import { processorCount, Turns } from "./wait.ts";
import { NOTHING, something, TestLoop } from "./fixture.ts";
import { Spinner } from "./spinner.ts";

const WAKES = (256 + layout.ENDPOINT_WAKES_OFFSET) >> 2;

Deno.test("an endpoint stores the mechanisms that it can ring", () => {
  for (const mechanism of [agentMechanism(), pollingMechanism()]) {
    const segment = pipeSegment();
    Endpoint.attach(segment, 1, { mechanism });
    assertEquals(new Int32Array(segment.memory as SharedArrayBuffer)[WAKES], mechanism.rings);
  }
});

Deno.test("a sleeper arms head + 16, sleeps until its deadline at most, and disarms", () => {
  const seen: number[] = [];
  const spin = 0;
  const { segment, reader } = pipe({
    start: 0,
    spin,
    mechanism: watched((ms) => seen.push(wants(), ms)),
  });
  const wants = () => segment.words(512, 512)[layout.RING_READER_WANTS_WORD]!;
  assertEquals(reader.read({ timeout: 5 }), undefined);
  assertEquals(seen[0], 17);
  assertEquals([seen[1]! <= 5, wants(), reader.stats.parks > 0], [true, 0, true]);
});

Deno.test("what is published between the look and the arming is found without a sleep", () => {
  let sleeps = 0;
  const mechanism = watched(() => sleeps++);
  const { segment, writer, reader } = pipe({ spin: 0, mechanism });
  const words = segment.words(512, 512);
  const { store } = Atomics;
  try {
    Atomics.store = ((view: Int32Array, index: number, value: number) => {
      Atomics.store = store;
      writer.write(5); // just before the wish is stored
      assertEquals(words[layout.RING_READER_WANTS_WORD], 0);
      return store(view, index, value);
    }) as typeof store;
    assertEquals(reader.read({ timeout: 1000 }), 5);
  } finally {
    Atomics.store = store;
  }
  assertEquals(sleeps, 0);
});

Deno.test("an asynchronous wait that finds something leaves nothing armed", async () => {
  const { segment, reader, writer } = pipe({ start: 0 });
  const { endpoint, link: { incoming } } = reader.inlet;
  const wait = (ms: number) => endpoint.waitAsync(incoming!, ms, undefined);
  assertEquals(await wait(0), false); // long ago
  writer.write(1);
  assertEquals([await wait(0), await wait(Infinity)], [true, true]);
  assertEquals(segment.words(512, 512)[layout.RING_READER_WANTS_WORD], 0);
});

Deno.test("a writer asks for the head at which pad, frame and reserve fit", () => {
  let wants = 0;
  const mechanism = watched(() => wants = word());
  const { segment, writer } = pipe({ start: 0, spin: 0, codec: "bytes", mechanism });
  const word = () => segment.words(512, 512)[layout.RING_WRITER_WANTS_WORD]!;
  writer.write(pattern(112));
  writer.write(pattern(64)); // the tail is at 208
  assertCode(() => writer.write(pattern(112), { timeout: 3 }), "wait.timeout");
  assertEquals(wants, (208 + 48 + 128 + 16 - 256) | 1);
  assertEquals(word(), 0);
});

Deno.test("an endpoint polls while its peer cannot ring it, and sleeps while it is vacant", () => {
  for (const [state, wakes, most] of [[1, 1, 100], [1, 2, 5], [1, 0, 5], [0, 0, 100]] as const) {
    const longest: number[] = [];
    const { segment, reader } = pipe({ spin: 0, mechanism: watched((ms) => longest.push(ms)) });
    segment.words(128, 128).set([state, wakes], 1);
    reader.read({ timeout: 8 });
    const ms = Math.max(...longest);
    assertEquals(most === 5 ? ms <= 5 : ms > 5, true, `${state} ${wakes}: ${ms}`);
  }
});

Deno.test("a thread that must not block gets wait.forbidden, and never a sleep", async () => {
  let sleeps = 0;
  const mechanism = watched(() => sleeps++, false);
  const { writer, reader } = pipe({ codec: "bytes", mechanism });
  assertCode(() => reader.read(), "wait.forbidden");
  assertEquals(reader.read({ timeout: 0 }), undefined);
  assertCode(() => writer.write(pattern(1000)), "wait.forbidden");
  assertEquals(sleeps, 0);
  assertEquals(await reader.readAsync({ timeout: 5 }), undefined);
  await writer.writeAsync(pattern(1));
  assertCode(() => reader.read(), "message.cancelled");
  assertEquals(await reader.readAsync(), pattern(1));
});

Deno.test("a blocking wait does not clear the word of an asynchronous one", async () => {
  const { segment, writer, reader } = pipe({ start: 0, spin: 0 });
  const words = segment.words(512, 512);
  const pending = reader.readAsync();
  assertEquals(reader.read({ timeout: 2 }), undefined);
  assertEquals(words[layout.RING_READER_WANTS_WORD], 17);
  writer.write(1);
  assertEquals(writer.stats.wakes, 1);
  assertEquals(await pending, 1);
  assertEquals(words[layout.RING_READER_WANTS_WORD], 0);
});

Deno.test("one asynchronous sleep stands on the bell, however many wait", async () => {
  let sleeps = 0;
  const agent = agentMechanism();
  const mechanism: Mechanism = {
    ...watched(() => {}),
    sleepAsync: (words, index, expected, ms) => {
      sleeps++;
      return agent.sleepAsync(words, index, expected, ms);
    },
  };
  const { reader, writer } = pipe({ mechanism });
  for (let i = 0; i < 10; i++) await codeOf(reader.readAsync({ timeout: 1 }));
  assertEquals(sleeps, 1);
  const reading = reader.readAsync();
  writer.write(1);
  assertEquals(await reading, 1);
});

Deno.test("nobody is rung who does not sleep", () => {
  const { writer, reader } = pipe();
  for (let i = 0; i < 100; i++) {
    writer.write(i);
    reader.read();
  }
  assertEquals([writer.stats.wakes, reader.stats.wakes], [0, 0]);
  assertEquals([writer.stats.wakesElided, reader.stats.wakesElided], [100, 100]);
});

Deno.test("a flood does not starve the event loop", async () => {
  const { writer, reader } = pipe({ capacity: 4096 });
  let ticks = 0;
  const timer = setInterval(() => ticks++, 1);
  // Bounded by count: the machine may be busy with something else.
  for (let left = 1_000_000; ticks < 2 && left > 0; left--) {
    await writer.writeAsync(1);
    await reader.readAsync();
  }
  clearInterval(timer);
  assert(ticks >= 2);
});

Deno.test("a flood of writes that never wait does not starve the event loop", async () => {
  const here = Port.create<number>();
  const there = Port.attach<number>(here.memory);
  for (const verb of ["writeAsync", "postMessage"] as const) {
    let over = false;
    setTimeout(() => over = true, 0);
    for (let left = 1_000_000; !over && left > 0; left--) {
      await here[verb](1);
      there.tryRead();
    }
    assertEquals(over, true, verb);
  }
  here.close();
});

Deno.test("Turns are given in order, and a deadline leaves the line", async () => {
  const turns = new Turns();
  const order: number[] = [];
  assertEquals(turns.tryTake(), true);
  const one = turns.take(Infinity, undefined).then(() => order.push(1));
  const late = turns.take(performance.now() + 1, undefined);
  const two = turns.take(Infinity, undefined).then(() => order.push(2));
  assertEquals(await late, false);
  turns.give();
  await one;
  turns.give();
  await two;
  turns.give();
  assertEquals([order, turns.busy], [[1, 2], false]);
});

Deno.test("the spin budget is the caller's, and must be a number from 0 on", () => {
  assertEquals(mayBlock(), true);
  for (const spin of [-1, NaN]) assertThrows(() => pipe({ spin }), RangeError);
});

Deno.test("[wait.spin] the processors are counted, or taken for two where nothing tells", () => {
  const navigator = { hardwareConcurrency: 3 };
  const os = { availableParallelism: () => 1 };
  const process = { getBuiltinModule: (name: string) => name === "node:os" ? os : undefined };
  assertEquals(processorCount(), globalThis.navigator.hardwareConcurrency);
  assertEquals(processorCount({ navigator, process }), 3);
  assertEquals(processorCount({ process }), 1); // Node 20
  assertEquals(processorCount({ process: { getBuiltinModule: () => undefined } }), 2);
  assertEquals(processorCount({ process: {} }), 2);
  assertEquals(processorCount({ navigator: {} }), 2);
});

Deno.test("a sleep that throws leaves nothing armed", async () => {
  const fail = () => {
    throw new Error("no sleep");
  };
  const mechanism: Mechanism = { ...watched(fail), sleepAsync: fail };
  const { segment, reader, writer } = pipe({ spin: 0, start: 0, mechanism });
  const wants = () => segment.words(512, 512)[layout.RING_READER_WANTS_WORD];
  assertThrows(() => reader.read(), Error, "no sleep");
  assertEquals(wants(), 0);
  await assertRejects(() => reader.readAsync(), Error, "no sleep");
  assertEquals(wants(), 0);
  reader.close(); // wakes whoever still sleeps, and nobody does
  assertCode(() => writer.write(1), "peer.closed");
});

Deno.test("a thread that must not block looks, and does not spin by the clock", () => {
  const { now } = performance;
  const mechanism = watched(() => {}, false);
  const { reader } = pipe({ spin: 1e6, mechanism });
  let glances = 0;
  performance.now = () => {
    glances++;
    return 0; // a page's clock is coarse: it does not move within microseconds
  };
  try {
    assertCode(() => reader.read(), "wait.forbidden");
  } finally {
    performance.now = now;
  }
  assertEquals(glances < 4, true, `${glances}`);
});

/** The spinning of a blocking endpoint whose last spin has found something. */
function awake(us: number): Spinner {
  const spinner = new Spinner(us, true);
  spinner.spin(something(), Infinity);
  return spinner;
}

Deno.test("[wait.spin_record] a fresh end sleeps at once, and tries a spin now and then", () => {
  const skips = (spinner: Spinner, sleepMs = 1) => {
    assertEquals([spinner.glances, spinner.dips], [0, false]);
    let waits = 0;
    for (; spinner.skip(); waits++) spinner.slept(sleepMs, true);
    return waits;
  };
  // Who says how long has it so from the first wait on.
  assertEquals(new Spinner(8, true).skip(), false);
  const spinner = new Spinner(8, true, true);
  for (const waits of [8, 32, 127, 127]) {
    assertEquals(skips(spinner), waits);
    assertEquals(spinner.spin(NOTHING, Infinity), false);
  }
  // Behind sleeps that cross no processor it tries none early.
  assertEquals(skips(new Spinner(8, true, true), 0.005), 127);
  // What a spin has found says more than that it was fresh once.
  const other = new Spinner(8, true, true);
  assertEquals(skips(other), 8);
  other.spin(something(), Infinity);
  assertEquals([other.skip(), other.glances > 0, other.dips], [false, true, true]);
  for (let i = 0; i < 4; i++) other.spin(NOTHING, Infinity);
  assertEquals(skips(other), 127);
});

Deno.test("[wait.spin_record] what a spin finds late leaves two misses", () =>
  withClock((clock) => {
    const spinner = new Spinner(50, true, true);
    let late = 0;
    const found = { look: () => clock.ms >= late, lookAround: () => false };
    const isSpinning = () => spinner.dips;
    assertEquals(isSpinning(), false);
    late = clock.ms + 0.1;
    assertEquals([spinner.spin(found, Infinity), isSpinning()], [true, true]);
    assertEquals([spinner.spin(NOTHING, Infinity), isSpinning()], [false, true]);
    assertEquals([spinner.spin(NOTHING, Infinity), isSpinning()], [false, false]);
    assertEquals([spinner.spin(something(), Infinity), isSpinning()], [true, true]);
    for (let i = 0; i < 3; i++) spinner.spin(NOTHING, Infinity);
    assertEquals(isSpinning(), true);
  }));

Deno.test("the processors are counted when a spin is due, and not before", () => {
  let counts = 0;
  const counted = { get: () => (counts++, 2), configurable: true };
  Object.defineProperty(navigator, "hardwareConcurrency", counted);
  try {
    const spinner = new Spinner(undefined, true);
    for (let waits = 0; waits < 8; waits++) {
      assertEquals([spinner.glances, spinner.dips, spinner.skip()], [0, false, true]);
      spinner.slept(0.1, true);
    }
    const loop = new TestLoop(undefined, undefined).loopSpinner;
    for (let waits = 0; waits < 7; waits++) {
      assertEquals([loop.spin(NOTHING), loop.learns], [false, true]);
      loop.slept(0.3);
    }
    assertEquals(counts, 0);
    assertEquals([spinner.skip(), counts], [false, 1]);
    loop.spin(NOTHING);
    assertEquals(counts, 2);
  } finally {
    delete (navigator as { hardwareConcurrency?: number }).hardwareConcurrency;
  }
});

Deno.test("the first waits without a timeout look at no clock", async () => {
  const here = Port.create<number>({ mechanism: watched(() => there.write(1)) });
  const there = Port.attach<number>(here.memory);
  const { now } = performance;
  performance.now = () => {
    throw new Error("Somebody looks at the clock");
  };
  try {
    for (let waits = 0; waits < 7; waits++) assertEquals(here.read(), 1);
    const later = here.readAsync();
    there.write(2);
    assertEquals(await later, 2);
  } finally {
    performance.now = now;
  }
  assertEquals(here.stats.parks, 8);
});

Deno.test("a glance is no longer than the spin that was asked for", () => {
  assertEquals(new Spinner(0, true).glances, 0);
  for (const us of [0.05, 1, 2]) assertEquals(awake(us).glances, us * 100);
  const longest = awake(1e6).glances;
  const page = new Spinner(1e6, false).glances;
  assertEquals(awake(50).glances, longest);
  assert(longest > 200 && longest <= 550, `${longest}`);
  assert(page > 0 && page < layout.WAIT_NO_BLOCK_LOOKS / 2, `${page}`); // [wait.no_block]
});

Deno.test("[wait.slice] a port that is listened to looks at each slice", async () => {
  const limits: number[] = [];
  let checks = 0;
  const agent = agentMechanism();
  const watching: Mechanism = {
    ...watched(() => {}),
    checkPeers: () => checks++, // which keeps the slices short
    sleepAsync: (words, index, expected, ms) => {
      limits.push(ms);
      return agent.sleepAsync(words, index, expected, ms);
    },
  };
  using here = Port.create<number>({ mechanism: watching });
  using there = Port.attach<number>(here.memory, {
    mechanism: { ...watched(() => {}), notify: () => {} },
  });
  const got: number[] = [];
  await new Promise<void>((resolve) => {
    here.onmessage = ({ data }) => {
      got.push(data);
      if (data === 2) resolve();
      else setTimeout(() => there.write(data + 1), 1); // while `here` sleeps
    };
    there.write(0);
  });
  assertEquals(got, [0, 1, 2]);
  // One sleep for all of it: nothing has ended it, and a timer of its own ends the slices.
  assertEquals(limits, [Infinity]);
  assert(checks > 0); // [wait.liveness] behind each slice
});

Deno.test("[wait.spin_record] sleeps as short as a wake bring the spinning back early", () => {
  const skips = (sleepMs: number, rang: boolean): number => {
    const spinner = awake(8);
    for (let i = 0; i < 4; i++) spinner.spin(NOTHING, Infinity);
    let waits = 0;
    for (; spinner.skip(); waits++) spinner.slept(sleepMs, rang);
    return waits;
  };
  assertEquals(skips(0.016, false) < 40, true);
  assertEquals(skips(0.064, true) < 20, true); // a peer that was rung takes longer
  assertEquals(skips(0.064, false), 127);
  assertEquals(skips(1, true), 127); // it has other work
  assertEquals(skips(0.001, true), 127); // it waits for this processor
});

Deno.test("[wait.spin] a dip looks a few times, and only where a spin would", () => {
  let looks = 0;
  let found = Infinity;
  const sight = { look: () => ++looks > found, lookAround: () => false };
  const dip = (spinner: Spinner) => {
    looks = 0;
    return [spinner.dips && spinner.dip(sight), looks];
  };
  const spinner = awake(8);
  const [missed, most] = dip(spinner);
  assertEquals([missed, Number(most) > 8, Number(most) < 1000], [false, true, true]);
  found = 3;
  assertEquals(dip(spinner), [true, 4]);
  assertEquals(dip(new Spinner(0, true)), [false, 0]);
  assertEquals(dip(new Spinner(8, false)), [false, 0]); // the spin that follows is all it may do
  // [wait.spin_record] What it finds counts as what a spin finds.
  for (let i = 0; i < 3; i++) spinner.spin(NOTHING, Infinity);
  dip(spinner);
  spinner.spin(NOTHING, Infinity);
  assertEquals(dip(spinner), [true, 4]);
  for (let i = 0; i < 4; i++) spinner.spin(NOTHING, Infinity);
  assertEquals(dip(spinner), [false, 0]);
});

Deno.test("[wait.spin_record] a loop spins long in the eighth wait, and less often in vain", () =>
  withClock((clock) => {
    const never = { look: () => false, lookAround: () => false };
    const waits = (sleepMs: number, count: number, spin = 50) => {
      const spinner = new TestLoop(spin, 0).loopSpinner;
      return Array.from({ length: count }, () => {
        const before = clock.ms;
        assertEquals(spinner.spin(never), false);
        const spent = clock.ms - before;
        spinner.slept(sleepMs);
        return Math.round(spent * 100) / 100;
      });
    };
    const none = Array(7).fill(0);
    const tries = waits(0.3, 1000).flatMap((ms, wait) => ms > 0 ? [[wait + 1, ms]] : []);
    const at = [8, 24, 56, 120, 248, 376, 504, 632, 760, 888];
    assertEquals(tries, at.map((wait) => [wait, 0.31]));
    assertEquals(waits(0.7, 9), [...none, 0.41, 0]);
    assertEquals(waits(0.9, 9), [...none, 0, 0]);
    assertEquals(waits(0.3, 8, 0), [...none, 0]);
  }));

Deno.test("[wait.spin_record] a loop spins again for a peer that is awake once more", () =>
  withClock(() => {
    const loop = new TestLoop(20, 0);
    let found = false;
    let looks = 0;
    const sight = { look: () => looks++ > 1 && found, lookAround: () => false };
    const spins = (rang: boolean) => {
      looks = 0;
      loop.rang = rang;
      return [loop.loopSpinner.spin(sight), looks > 1];
    };
    for (let i = 0; i < 8; i++) spins(true);
    assertEquals(spins(true), [false, false]);
    assertEquals(spins(false), [false, true]);
    assertEquals(spins(false), [false, false]);
    // Not again at once: behind one in vain in the eighth wait, then the sixteenth, and so on.
    for (const next of [8, 16, 32]) {
      for (let wait = 1; wait < next; wait++) assertEquals(spins(wait % 2 === 1), [false, false]);
      if (next < 32) assertEquals(spins(false), [false, true]);
    }
    found = true;
    assertEquals(spins(false), [true, true]);
    found = false;
    for (let i = 0; i < 8; i++) assertEquals(spins(true), [false, true]);
    assertEquals(spins(true), [false, false]);
  }));

Deno.test("[wait.spin_record] a loop tries as often as before once it has found something", () =>
  withClock((clock) => {
    /** Hundredths of a millisecond that a loop spins in some waits, each until so many looks. */
    const loopWith = (sleepMs: number) => {
      const loop = new TestLoop(20, 0);
      return (count: number, rang = true, most = Infinity) =>
        Array.from({ length: count }, () => {
          let looks = 0;
          loop.rang = rang;
          const start = clock.ms;
          loop.loopSpinner.spin({ look: () => looks++ >= most, lookAround: () => false });
          loop.loopSpinner.slept(sleepMs);
          return Math.round((clock.ms - start) * 100);
        });
    };
    const none = Array(7).fill(0);
    const short = 3;
    const long = 31;
    const spins = loopWith(0.3);
    assertEquals([...spins(8), ...spins(15)], [...none, long, ...Array(15).fill(0)]);
    assertEquals(spins(1, true, 1), [0]); // the next try, behind which all spin again
    assertEquals(spins(8), [...none.fill(short), long]);
    // Without long ones: tries for a peer that is awake once more.
    const shortOnes = loopWith(1);
    for (const waits of [8, 6, 14]) {
      shortOnes(waits);
      assertEquals([...shortOnes(1), ...shortOnes(1, false)], [0, short]);
    }
    assertEquals([...shortOnes(31), ...shortOnes(1, false, 1)], Array(32).fill(0));
    assertEquals(shortOnes(8), Array(8).fill(short));
    for (let tries = 0; tries < 2; tries++) {
      assertEquals([...shortOnes(7), ...shortOnes(1, false)].at(-1), short);
    }
    // And at once behind a long one that has found something late.
    const both = loopWith(0.3);
    assertEquals([...both(6), ...both(1, false)].at(-1), short);
    assertEquals(both(1, true, 1000)[0]! > short, true);
    assertEquals(both(1, false), [short]);
  }));

Deno.test("a port tells its loop's spinning how long it slept, and whether it rang", () =>
  withClock(async (clock) => {
    using here = Port.create<number>({ spin: 20 });
    using there = Port.attach<number>(here.memory);
    const spins: number[] = [];
    let wait = 0;
    there.onmessage = ({ data }) => {
      // It is woken by the sleep of `here`, so that this is all of its spin.
      spins.push(Math.round((clock.ms - wait) * 10) / 10);
      clock.ms += 0.3;
      there.write(data + 1);
    };
    await new Promise<void>((resolve) => {
      here.onmessage = ({ data }) => {
        wait = clock.ms;
        if (data === 20) there.onmessage = null;
        here.postMessage(data);
        if (data === 20) resolve();
      };
      here.postMessage(0);
    });
    // The first answer came before there was a wait for it.
    assertEquals(spins.slice(1).map((ms) => ms > 0.2), spins.slice(1).map((_, i) => i === 7));
    const spent: number[] = [];
    for (let i = 0; i < 2; i++) {
      await new Promise((resolve) => setTimeout(resolve, 5));
      spent.push(clock.ms - wait);
      there.write(21);
    }
    // Before the first of them the peer had to be rung, and now it has not.
    assert(spent[0]! - spent[1]! >= 0.02, `${spent}`);
  }));
