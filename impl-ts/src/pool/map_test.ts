/** Tasks for the values of a source: their order, and how many values are taken. */

import { assert, assertEquals, assertRejects } from "@std/assert";
import { eventually, pause, poolOf } from "./fixture.ts";
import { flow } from "./map.ts";

/** The numbers below `count`. `seen` tells how many were taken, and whether the loop was left. */
function numbers(count: number) {
  const seen = { taken: 0, isLeft: false };
  function* source() {
    try {
      for (let n = 0; n < count; n++) {
        seen.taken++;
        yield n;
      }
    } finally {
      seen.isLeft = true;
    }
  }
  return { seen, source };
}

Deno.test("map gives results in the order of their values", async () => {
  await using pool = poolOf({ least: 2, most: 2, ahead: 3 });
  const times = [30, 1, 20, 2, 10, 3, 0];
  const results = [];
  for await (const ms of pool.map(times, { name: "later" })) results.push(ms);
  assertEquals(results, times);
});

Deno.test("map gives results as they are done, where their order does not matter", async () => {
  await using pool = poolOf({ least: 2, most: 2, ahead: 0 });
  await eventually(() => pool.stats().workers.every(({ state }) => state === "ready"));
  const results = [];
  for await (const ms of pool.map([150, 1, 2, 3], { name: "later", ordered: false })) {
    results.push(ms);
  }
  assertEquals(results, [1, 2, 3, 150]);
});

Deno.test("map takes values of an asynchronous source, one after the other", async () => {
  await using pool = poolOf();
  let asking = 0;
  async function* source() {
    for (let n = 0; n < 20; n++) {
      assertEquals(++asking, 1);
      await pause(n % 3);
      asking--;
      yield n;
    }
  }
  const results = [];
  for await (const n of pool.map(source(), { name: "twice" })) results.push(n);
  assertEquals(results, Array.from({ length: 20 }, (_, n) => 2 * n));
});

for (const ordered of [true, false]) {
  Deno.test(`map takes no more values than there is room for: ordered ${ordered}`, async () => {
    await using pool = poolOf({ least: 2, most: 2, ahead: 1 });
    await eventually(() => pool.stats().workers.every(({ state }) => state === "ready"));
    const { seen, source } = numbers(1_000_000);
    const results = pool.map(source(), { name: "twice", ordered });
    const { value } = await results.next();
    if (ordered) assertEquals(value, 0);
    // No further result is taken: two workers have room for two tasks each, and one more each.
    await pause(20);
    assert(seen.taken <= 7, `${seen.taken} were taken`);
    for (let n = 1; n < 50; n++) await results.next();
    assert(seen.taken <= 56, `${seen.taken} were taken`);
    await results.return();
    assert(seen.isLeft);
    await eventually(() => pool.stats().running + pool.stats().waiting === 0);
  });
}

Deno.test("map ends with the first failure, and gives up what is not done", async () => {
  await using pool = poolOf({ ahead: 0 });
  const { seen, source } = numbers(100);
  const results: unknown[] = [];
  const failing = (async () => {
    const values = source().map((n) => n === 3 ? 1n as unknown as number : n);
    for await (const n of pool.map(values, { name: "twice" })) results.push(n);
  })();
  await assertRejects(() => failing, TypeError);
  assertEquals([results, seen.isLeft], [[0, 2, 4], true]);
  await eventually(() => pool.stats().running + pool.stats().waiting === 0);
});

Deno.test("map passes on what the source throws, after the results before it", async () => {
  await using pool = poolOf();
  function* source() {
    yield 1;
    yield 2;
    throw new Error("no more");
  }
  const results: unknown[] = [];
  const failing = (async () => {
    for await (const n of pool.map(source(), { name: "twice" })) results.push(n);
  })();
  await assertRejects(() => failing, Error, "no more");
  assertEquals(results, [2, 4]);
});

Deno.test("a signal ends map with its reason", async () => {
  await using pool = poolOf();
  const stop = new AbortController();
  const { source } = numbers(100);
  const results: unknown[] = [];
  const failing = (async () => {
    for await (const n of pool.map(source(), { name: "twice", signal: stop.signal })) {
      if (results.push(n) === 5) stop.abort(new Error("enough"));
    }
  })();
  await assertRejects(() => failing, Error, "enough");
});

Deno.test("flow keeps so many values as it may, whenever their results come", async () => {
  for (const ordered of [true, false]) {
    const open: ((value: unknown) => void)[] = [];
    const run = () => ({ promise: new Promise((resolve) => open.push(resolve)) });
    const giveUp = () => {};
    let isHeld = false;
    const hold = (on: boolean) => void (isHeld = on);
    const { source } = numbers(10);
    const results = flow(source(), { ordered, most: () => 3, hold, run, giveUp });
    const first = results.next();
    await pause(0);
    assertEquals([open.length, isHeld], [3, true]);
    open[1]!("second");
    await pause(0);
    assertEquals(open.length, 3); // its result was not taken, where the order matters
    if (ordered) open[0]!("first");
    assertEquals((await first).value, ordered ? "first" : "second");
    const second = results.next();
    await pause(0);
    assertEquals(open.length, 4);
    if (ordered) assertEquals((await second).value, "second");
    for (const each of open) each("end");
    await results.return();
    assertEquals(isHeld, false);
  }
});

Deno.test("a signal ends a map that waits for its source", async () => {
  await using pool = poolOf();
  const stop = new AbortController();
  async function* source() {
    yield 1;
    await new Promise((resolve) => stop.signal.addEventListener("abort", resolve));
  }
  const results = pool.map(source(), { name: "twice", signal: stop.signal });
  assertEquals((await results.next()).value, 2);
  const last = assertRejects(() => results.next(), Error, "enough");
  await pause(0);
  stop.abort(new Error("enough"));
  await last;
});

Deno.test("map ends with the error of a source whose steps are odd", async () => {
  await using pool = poolOf();
  const boom = () => {
    throw new RangeError("boom");
  };
  const steps = [undefined, Object.defineProperty({}, "done", { get: boom })];
  for (const step of steps) {
    for (const next of [() => step, () => Promise.resolve(step)]) {
      const source = { [Symbol.asyncIterator]: () => ({ next }) } as AsyncIterable<number>;
      const results = pool.map(source, { name: "twice" });
      const error = await assertRejects(() => within(results.next()));
      assert(error instanceof TypeError || error instanceof RangeError, String(error));
    }
  }
  assertEquals(await pool.run(1, { name: "twice" }), 2);
});

/** What a promise gives; fails where that takes too long. */
async function within<T>(promise: Promise<T>): Promise<T> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error("nothing came of it")), 5000);
  });
  return await Promise.race([promise, late]).finally(() => clearTimeout(timer));
}

/** A source that gives one value, and then never answers; `left` tells whether it was closed. */
function silent(give: unknown = 1) {
  const seen = { left: 0 };
  let count = 0;
  const source: AsyncIterableIterator<unknown> = {
    next: () => count++ === 0 ? Promise.resolve({ value: give, done: false }) : hang(),
    return() {
      seen.left++;
      return hang();
    },
    [Symbol.asyncIterator]: () => source,
  };
  const hang = () => new Promise<never>(() => {});
  return { seen, source };
}

Deno.test("map ends at its signal, also while its source does not answer", async () => {
  await using pool = poolOf();
  for (const abortsFirst of [false, true]) {
    const { seen, source } = silent();
    const stop = new AbortController();
    const loop = pool.map(source as AsyncIterable<number>, { name: "twice", signal: stop.signal });
    if (abortsFirst) stop.abort("enough");
    else assertEquals((await loop.next()).value, 2);
    const next = loop.next().catch((reason) => reason);
    stop.abort("enough");
    assertEquals(await within(next), "enough");
    assertEquals([(await within(loop.next())).done, seen.left], [true, 1]);
  }
});

Deno.test("map can be left, and fails, while its source does not answer", async () => {
  await using pool = poolOf();
  const first = silent();
  const loop = pool.map(first.source as AsyncIterable<number>, { name: "twice" });
  await loop.next();
  await within(loop.return());
  assertEquals(first.seen.left, 1);
  const second = silent("broken");
  const results = pool.map(second.source as AsyncIterable<string>, { name: "fail" });
  await within(assertRejects(() => results.next(), Error, "broken"));
  assertEquals(second.seen.left, 1);
});

Deno.test("map hears of a source that breaks after it was left", async () => {
  await using pool = poolOf();
  let fail!: (reason: unknown) => void;
  const source: AsyncIterableIterator<number> = {
    next: () => new Promise((_, reject) => fail = reject),
    return: () => Promise.reject(new Error("broken as well")),
    [Symbol.asyncIterator]: () => source,
  };
  const stop = new AbortController();
  const loop = pool.map(source, { name: "twice", signal: stop.signal });
  const next = loop.next().catch((reason) => reason);
  stop.abort("enough");
  assertEquals(await within(next), "enough");
  fail(new Error("broken")); // nobody is there to be told, and nothing is unhandled
  await pause(0);
});
