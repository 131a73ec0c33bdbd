import { assert, assertEquals, assertRejects, assertThrows } from "@std/assert";
import { attachEndpoint } from "./endpoint.ts";
import { assertCode, codeOf, pattern, pipe, pipeSegment, watched } from "../testing/fixture.ts";
import { layout } from "../memory/layout.ts";
import { Port } from "../port/port.ts";
import {
  agentMechanism,
  mayBlock,
  type Mechanism,
  pollingMechanism,
  processorCount,
} from "./mechanism.ts";
import { Turns, waitForAsync } from "./waitable.ts";
import { ring } from "./state.ts";
import { statsOf } from "../pipe/ends.ts";

const WAKES = (256 + layout.ENDPOINT_WAKES_OFFSET) >> 2;

Deno.test("an endpoint stores the mechanisms that it can ring", () => {
  for (const mechanism of [agentMechanism(), pollingMechanism()]) {
    const segment = pipeSegment();
    attachEndpoint(segment, 1, { mechanism });
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
  assertEquals([seen[1]! <= 5, wants(), statsOf(reader).parks > 0], [true, 0, true]);
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
  const endpoint = attachEndpoint(pipeSegment(), 1);
  let isThere = false;
  let armed = 0;
  const what = {
    peer: 0,
    look: () => isThere,
    lookAround: () => false,
    arm: () => void armed++,
    stayArmed: () => {},
    disarm: () => void armed--,
  };
  const wait = (deadline: number) => waitForAsync(endpoint, what, deadline, undefined);
  assertEquals(await wait(0), false); // long ago
  isThere = true;
  assertEquals([await wait(0), await wait(Infinity), armed], [true, true, 0]);
  isThere = false;
  const later = wait(Infinity);
  assertEquals(armed, 1);
  isThere = true;
  ring(endpoint, 1);
  assertEquals([await later, armed], [true, 0]);
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
  assertEquals(await codeOf(reader.readAsync()), "message.cancelled");
  assertEquals(await reader.readAsync({ timeout: 5 }), undefined);
  await writer.writeAsync(pattern(1));
  assertEquals(await reader.readAsync(), pattern(1));
});

Deno.test("a blocking wait does not clear the word of an asynchronous one", async () => {
  const { segment, writer, reader } = pipe({ start: 0, spin: 0 });
  const words = segment.words(512, 512);
  const pending = reader.readAsync();
  assertEquals(reader.read({ timeout: 2 }), undefined);
  assertEquals(words[layout.RING_READER_WANTS_WORD], 17);
  writer.write(1);
  assertEquals(statsOf(writer).wakes, 1);
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
  assertEquals([statsOf(writer).wakes, statsOf(reader).wakes], [0, 0]);
  assertEquals([statsOf(writer).wakesElided, statsOf(reader).wakesElided], [100, 100]);
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

Deno.test("the first waits without a timeout look at no clock", async () => {
  const here = Port.create<number>({ mechanism: watched(() => there.write(1)) });
  const there = Port.attach<number>(here.memory);
  const { now } = performance;
  performance.now = () => {
    throw new Error("Somebody looks at the clock");
  };
  try {
    for (let waits = 0; waits < 6; waits++) assertEquals(here.read(), 1);
    const later = here.readAsync();
    there.write(2);
    assertEquals(await later, 2);
  } finally {
    performance.now = now;
  }
  assertEquals(statsOf(here).parks, 7);
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
  assert(checks > 0); // [wait.liveness] after each slice
});

Deno.test("[wait.recheck] an event loop does not sleep over what came while it armed", async () => {
  let sleeps = 0;
  const mechanism: Mechanism = {
    ...watched(() => {}),
    sleepAsync: () => {
      sleeps++;
      return Promise.resolve();
    },
  };
  using here = Port.create<number>({ spin: 0, mechanism });
  using there = Port.attach<number>(here.memory);
  const { store } = Atomics;
  const { wants } = here.link.incoming!;
  let before = -1;
  const came = new Promise<void>((resolve) => {
    here.onmessage = ({ data }) => data === 2 && resolve();
  });
  Atomics.store = ((words: Int32Array, at: number, value: number) => {
    const stored = store(words, at, value);
    if (at === wants && value !== 0 && before < 0) {
      before = sleeps;
      there.write(2);
    }
    return stored;
  }) as typeof store;
  try {
    there.write(1);
    await came;
  } finally {
    Atomics.store = store;
  }
  here.onmessage = null;
  assertEquals(before >= 0 && sleeps === before, true, `${before} ${sleeps}`);
});
