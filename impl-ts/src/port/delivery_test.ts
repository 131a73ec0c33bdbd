import { assert, assertEquals, assertThrows } from "@std/assert";
import { closeEndpoint, failEndpoint } from "../wait/state.ts";
import { MessageError, MillraceError } from "../error.ts";
import { Scribe, watched } from "../testing/fixture.ts";
import { layout } from "../memory/layout.ts";
import { Port } from "./port.ts";
import { held, ports, until } from "./fixture.ts";
import { Segment } from "../memory/segment.ts";
import { nextTask } from "../wait/loop.ts";
import { peek, release } from "../more/lend.ts";
import { writeMany } from "../more/many.ts";
import { PortEvent } from "./events.ts";

/** Records what the events of a port say, in order. */
function record(port: Port): unknown[] {
  const seen: unknown[] = [];
  port.onmessage = ({ data }) => seen.push(data);
  port.onmessageerror = ({ data }) => seen.push(data.code);
  port.onclose = ({ error }) => seen.push(error?.code ?? "closed");
  return seen;
}

Deno.test("onmessage delivers what was there and what comes, and close comes last", async () => {
  const [a, b] = ports();
  writeMany(b, [1, 2]);
  const seen = record(a);
  assertEquals(seen, []); // never inside the call that begins to listen
  await until(() => seen.length === 2);
  b.write(3);
  b.write(4);
  b.end();
  await until(() => seen.length === 5);
  assertEquals(seen, [1, 2, 3, 4, "closed"]);
  assertEquals(await a.closed, undefined);
  a.write("still open this way");
  assertEquals(b.read(), "still open this way");
});

Deno.test("events are the platform's, with the port as their target", async () => {
  const [a, b] = ports();
  const seen: unknown[] = [];
  a.addEventListener("message", function (this: unknown, event) {
    seen.push(event instanceof Event, event.target === a, this === a, event.data);
    const { type, origin, lastEventId, source, ports } = event;
    seen.push([type, origin, lastEventId, source, ports], Object.isFrozen(ports));
  });
  const object = { handleEvent: ({ data }: MessageEvent) => void seen.push(data) };
  a.addEventListener("message", object);
  a.addEventListener("close", (event) => seen.push(event instanceof PortEvent, event.type));
  b.write("x");
  b.end();
  await until(() => seen.length === 9);
  const members = ["message", "", "", null, []];
  assertEquals(seen, [true, true, true, "x", members, true, "x", true, "close"]);
});

Deno.test("an event that somebody else dispatches reaches the same listeners", () => {
  const [a] = ports();
  const seen: unknown[] = [];
  a.onmessage = ({ data }) => seen.push(["handler", data]);
  a.addEventListener("message", (event) => {
    seen.push(event.target === a, event.currentTarget === a, event instanceof MessageEvent);
    event.stopImmediatePropagation();
    event.preventDefault();
  }, { once: true });
  a.addEventListener("message", () => seen.push("last"));
  a.addEventListener("other", ({ type, target }) => seen.push([type, target === a]));
  const message = () => new MessageEvent("message", { data: 1, cancelable: true });
  seen.push(a.dispatchEvent(message()), a.dispatchEvent(message()));
  seen.push(a.dispatchEvent(new Event("other")));
  const first = [["handler", 1], true, true, true];
  assertEquals(seen, [...first, ["handler", 1], "last", false, true, ["other", true], true]);
  a.close();
});

Deno.test("listeners: what comes or goes during an event, and what stops it", async () => {
  const [a, b] = ports();
  const seen: unknown[] = [];
  const gone = () => seen.push("gone");
  const late = () => seen.push("late");
  a.addEventListener("message", (event) => {
    a.removeEventListener("message", gone);
    a.addEventListener("message", late);
    seen.push(event.data, event.composedPath()[0] === a, event.target === a);
  });
  a.addEventListener("message", gone);
  b.write(1);
  await until(() => seen.length === 3);
  assertEquals(seen.splice(0), [1, true, true]);
  a.removeEventListener("message", late);
  a.addEventListener("message", (event) => event.stopImmediatePropagation());
  a.addEventListener("message", late);
  b.write(2);
  await until(() => seen.length === 3);
  await new Promise<void>((resolve) => nextTask(resolve));
  assertEquals(seen, [2, true, true]);
  a.close();
});

Deno.test("delivery that stops loses nothing, whichever way it stops", async () => {
  for (const way of ["handler", "listener", "once", "signal"] as const) {
    const [a, b] = ports();
    writeMany(b, [1, 2, 3, 4]);
    const seen: unknown[] = [];
    const stopping = new AbortController();
    const listener = ({ data }: MessageEvent) => {
      seen.push(data);
      if (way === "handler") a.onmessage = null;
      if (way === "listener") a.removeEventListener("message", listener);
      if (way === "signal") stopping.abort();
    };
    if (way === "handler") a.onmessage = listener;
    else a.addEventListener("message", listener, { once: way === "once", signal: stopping.signal });
    await until(() => seen.length === 1);
    await new Promise<void>((resolve) => nextTask(resolve));
    assertEquals([seen, a.read()], [[1], 2], way);
    a.onmessage = ({ data }) => seen.push(data);
    await until(() => seen.length === 3);
    assertEquals(seen, [1, 3, 4], way);
    a.close();
  }
});

Deno.test("the last listener of several ends the delivery, and each counts once", async () => {
  const [a, b] = ports();
  const seen: string[] = [];
  const one = () => void seen.push("one");
  const two = () => void seen.push("two");
  a.addEventListener("message", one);
  a.addEventListener("message", one, false);
  a.addEventListener("message", one, null as unknown as undefined);
  a.addEventListener("message", two, { capture: true });
  a.addEventListener("message", null);
  a.addEventListener("message", two, { signal: AbortSignal.abort() });
  b.write(0);
  await until(() => seen.length === 2);
  a.removeEventListener("message", one);
  a.removeEventListener("message", two); // not a capturing listener: there is no such one
  b.write(0);
  await until(() => seen.length === 3);
  a.removeEventListener("message", two, true);
  b.write("left");
  await new Promise((resolve) => setTimeout(resolve, 20));
  // Runtimes differ in the order of the first two, which are both called at the target.
  assertEquals([seen.toSorted(), a.tryRead()], [["one", "two", "two"], "left"]);
  a.close();
});

Deno.test("a handler keeps its place, and null takes it away", async () => {
  const [a, b] = ports();
  const seen: string[] = [];
  assertEquals([a.onmessage, a.onclose, a.onmessageerror], [null, null, null]);
  a.onmessage = () => seen.push("old");
  a.addEventListener("message", () => seen.push("listener"));
  a.onmessage = () => seen.push("new");
  b.write(0);
  await until(() => seen.length === 2);
  a.onmessage = null;
  b.write(0);
  await until(() => seen.length === 3);
  assertEquals(seen, ["new", "listener", "listener"]);
  a.close();
});

Deno.test("a lost message is an event, and the next ones come", async () => {
  const [a, b] = ports({ maxMessageSize: 20 });
  const seen = record(a);
  b.write(1);
  b.write("x".repeat(30));
  b.write(2);
  await until(() => seen.length === 3);
  assertEquals(seen, [1, "message.size", 2]);
  a.close();
  await new Promise<void>((resolve) => nextTask(resolve));
  assertEquals(seen.at(-1), "closed");
});

Deno.test("a throwing handler is reported, and the delivery goes on", async () => {
  const [a, b] = ports();
  const reported: unknown[] = [];
  const report = (event: ErrorEvent) => {
    event.preventDefault();
    reported.push(event.error.message);
  };
  addEventListener("error", report);
  try {
    const seen: unknown[] = [];
    a.onmessage = ({ data }) => {
      if (data === 1) throw new Error("boom");
      seen.push(data);
    };
    writeMany(b, [1, 2]);
    await until(() => seen.length === 1);
    assertEquals([seen, reported], [[2], ["boom"]]);
  } finally {
    removeEventListener("error", report);
    a.close();
  }
});

Deno.test("verbs take messages beside the events, and reads that wait come first", async () => {
  const [a, b] = ports();
  const seen: unknown[] = [];
  a.onmessage = ({ data }) => {
    seen.push(data);
    if (data === 1) seen.push(["read", a.tryRead()]);
  };
  writeMany(b, [1, 2, 3]);
  await until(() => seen.length === 3);
  assertEquals(seen, [1, ["read", 2], 3]);
  const reads = [a.readAsync(), a.readAsync()];
  writeMany(b, [4, 5, 6]);
  assertEquals(await Promise.all(reads), [4, 5]);
  await until(() => seen.length === 4);
  assertEquals(seen.at(-1), 6);
  a.close();
});

Deno.test("nothing is delivered while a frame is lent", async () => {
  const [a, b] = ports();
  writeMany(b, ["lent"]);
  b.write("event");
  const seen = record(a);
  peek(a);
  await new Promise((resolve) => setTimeout(resolve, 20));
  assertEquals(seen, []);
  release(a);
  await until(() => seen.length === 1);
  assertEquals(seen, ["event"]);
  a.close();
});

/** Runs `work` with a clock in place of the real one that nearly stands still. */
async function clocked(work: (clock: { now: number }) => Promise<void>, look = () => {}) {
  const real = performance.now;
  const clock = { now: 0 };
  performance.now = () => {
    look();
    return clock.now + real.call(performance) / 1000;
  };
  try {
    await work(clock);
  } finally {
    performance.now = real;
  }
}

/**
 * Runs `work` and counts the turns of the deliveries: each ends by asking for a task, which is a
 * message of a channel of its own. The event loop may run several of those tasks at once.
 */
async function turning(work: (turns: { count: number }) => Promise<void>) {
  const Real = MessageChannel;
  const turns = { count: 0 };
  globalThis.MessageChannel = class extends Real {
    constructor() {
      super();
      turns.count++;
    }
  };
  try {
    await work(turns);
  } finally {
    globalThis.MessageChannel = Real;
  }
}

Deno.test("a turn delivers so many messages, or for so long, and yields by a task", async () => {
  for (
    const { turnCount, turnTime, tick, expected } of [
      { turnCount: 3, turnTime: 1000, tick: 0, expected: [3, 3, 3, 1] },
      { turnCount: 100, turnTime: 7, tick: 2, expected: [4, 4, 2] },
      { turnCount: 100, turnTime: 0, tick: 0, expected: [1, 1, 1, 1, 1, 1, 1, 1, 1, 1] },
    ]
  ) {
    const [here, there] = ports({ capacity: 4096, turnCount, turnTime });
    const seen: number[] = [];
    await turning((turns) =>
      clocked(async (clock) => {
        for (let i = 0; i < 10; i++) there.write(i);
        here.addEventListener("message", () => {
          seen.push(turns.count);
          clock.now += tick;
        });
        await until(() => seen.length === 10);
      })
    );
    assertEquals(sizesOf(seen), expected);
    here.close();
  }
});

/** How often each number stands in a list. */
function sizesOf(turns: number[]): number[] {
  return [...Map.groupBy(turns, (turn) => turn).values()].map(({ length }) => length);
}

Deno.test("the rest of a batch, and of the inbox, comes in the same turn", async () => {
  const [a, b] = ports({ capacity: 256 });
  writeMany(b, [1, 2, 3]);
  while (a.tryWrite(0));
  assertThrows(() => a.write(0, { timeout: 0 })); // takes what is there into the inbox
  writeMany(b, [4, 5]);
  const seen = record(a);
  await new Promise<void>((resolve) => nextTask(resolve));
  await new Promise<void>((resolve) => nextTask(resolve));
  assertEquals(seen, [1, 2, 3, 4, 5]);
  a.close();
});

Deno.test("what a spin finds counts for the turn, after the listener's promises", async () => {
  const here = Port.create<number>({ spin: 20, turnTime: 7 });
  const there = Port.attach<number>(here.memory);
  const seen: number[] = [];
  const early: number[] = [];
  let [settled, next] = [-1, 1];
  // Before anybody listens, so that the first turn begins with a task of the delivery.
  there.write(0);
  await turning((turns) =>
    clocked(async (clock) => {
      here.onmessage = ({ data }) => {
        if (settled !== data - 1) early.push(data);
        Promise.resolve().then(() => settled = data);
        seen.push(turns.count);
        clock.now += 2;
        here.postMessage(0);
        next = data + 1;
      };
      await until(() => seen.length === 10);
    }, () => {
      // The loop of `here` reads the clock while it spins.
      if (there.tryRead() === 0 && next < 10) there.write(next);
    })
  );
  assertEquals([sizesOf(seen), early], [[4, 4, 2], []]);
  here.close();
});

Deno.test("a port looks out for its peer only while somebody listens to close", async () => {
  let looks = 0;
  const mechanism = { ...watched(() => {}), checkPeers: () => void looks++ };
  const here = Port.create({ mechanism });
  const on = () => {};
  here.onclose = on;
  here.addEventListener("close", on);
  await until(() => looks > 0);
  here.onclose = null;
  const before = looks;
  await until(() => looks > before);
  here.removeEventListener("close", on);
  const after = looks;
  await new Promise((resolve) => setTimeout(resolve, 3 * layout.WAIT_SLICE_MS));
  assertEquals([here.link.asks, looks], [0, after]);
  here.close();
});

Deno.test("a flood does not starve a timer, nor the delivery the flood", async () => {
  const [a, b] = ports({ turnCount: 10 });
  let count = 0;
  a.onmessage = () => {
    count++;
    b.write(0); // without end: the next message is always there
  };
  writeMany(b, Array.from({ length: 50 }, () => 0));
  await new Promise((resolve) => setTimeout(resolve, 0));
  await new Promise((resolve) => setTimeout(resolve, 0));
  assert(count > 0);
  const before = count;
  await new Promise<void>((resolve) => nextTask(resolve));
  await new Promise<void>((resolve) => nextTask(resolve));
  assert(count > before && count <= before + 30, `${before} ${count}`);
  a.close();
});

Deno.test("close says why: the peer closes, fails, breaks the ring, or we close", async () => {
  const stops: [string | undefined, (a: Port, b: Port) => void][] = [
    [undefined, (a) => a.close()],
    [undefined, (a) => a.close()],
    [undefined, (_, b) => (b.end(), b.close())],
    ["peer.closed", (_, b) => b.close()],
    ["peer.failed", (a) => failEndpoint(a.segment, 1)],
    ["pipe.closed", (a) => closeEndpoint(Segment.attach(a.memory), 0)],
    ["pipe.failed", (a) => failEndpoint(Segment.attach(a.memory), 0)],
    ["frame.kind", (a) => {
      new Scribe(a.segment, 1).frame({ kind: 77 }).publish();
    }],
  ];
  for (const listening of [true, false]) {
    for (const [code, stop] of stops) {
      const [a, b] = ports();
      // Without a listener, nobody looks into the ring.
      if (!listening && code === "frame.kind") continue;
      const events: (MillraceError | undefined)[] = [];
      a.onclose = ({ error }) => events.push(error);
      if (listening) a.onmessage = () => {};
      const { closed } = a;
      await new Promise<void>((resolve) => nextTask(resolve));
      stop(a, b);
      const error = await held(closed);
      await new Promise<void>((resolve) => nextTask(resolve));
      assertEquals([error?.code, events], [code, [error]], `${code} ${listening}`);
      a.close();
      await new Promise<void>((resolve) => nextTask(resolve));
      assertEquals([events.length, await a.closed], [1, error]);
    }
  }
});

Deno.test("a port that was closed says so to who begins to listen", async () => {
  const [a] = ports();
  a.close();
  const seen: unknown[] = [];
  a.onclose = ({ error }) => seen.push(error);
  assertEquals([await held(a.closed), seen], [undefined, [undefined]]);
});

Deno.test("each listener to close is told, unless it was removed", async () => {
  const a = Port.create();
  const seen: unknown[] = [];
  const abort = new AbortController();
  const listener = () => seen.push("listener");
  a.addEventListener("close", listener, { signal: abort.signal });
  a.addEventListener("close", listener, true);
  a.onclose = () => seen.push("handler");
  a.removeEventListener("close", listener, true);
  await new Promise<void>((resolve) => nextTask(resolve));
  abort.abort();
  a.onclose = null;
  await new Promise<void>((resolve) => nextTask(resolve));
  // Whoever listens again is told.
  a.addEventListener("close", ({ error }) => seen.push(error?.code), { once: true });
  Port.attach(a.memory).close();
  await until(() => seen.length > 0);
  assertEquals(seen, ["peer.closed"]);
});

Deno.test("a handler may close the port: no message comes after that, and no error", async () => {
  for (const close of [(a: Port) => a.close(), (a: Port) => a.close()]) {
    const [a, b] = ports();
    writeMany(b, [1, 2]);
    const seen = record(a);
    a.addEventListener("message", () => close(a));
    await until(() => seen.length === 2);
    assertEquals([seen, await a.closed], [[1, "closed"], undefined]);
  }
});

Deno.test("closed waits until everything is read, by whichever verb", async () => {
  for (const last of ["end", "close"] as const) {
    const [a, b] = ports();
    b.write(1);
    writeMany(b, [2, 3]);
    b[last]();
    let over = false;
    const closed = a.closed.finally(() => over = true);
    for (const value of [1, 2, 3]) {
      await new Promise((resolve) => setTimeout(resolve, 5));
      assertEquals([over, a.read()], [false, value]);
    }
    if (last === "end") assertEquals([a.read(), a.ended], [undefined, true]);
    assertEquals((await held(closed))?.code, last === "end" ? undefined : "peer.closed");
    a.close();
  }
});

Deno.test("closed settles after an end, which nobody has to read", async () => {
  const [a, b] = ports();
  const closed = held(a.closed);
  b.write(1);
  b.end();
  const lent = peek(a);
  assertEquals(lent?.size, 1);
  await new Promise((resolve) => setTimeout(resolve, 5));
  assertEquals(a.ended, false);
  release(a);
  assertEquals(await closed, undefined);
  assertEquals([a.ended, a.tryRead()], [true, undefined]);
  a.close();
});

Deno.test("a listener that is none takes no messages", async () => {
  const [a, b] = ports();
  a.addEventListener("message", undefined as unknown as null);
  a.addEventListener("message", null);
  b.write(1);
  for (let turn = 0; turn < 3; turn++) await new Promise<void>((resolve) => nextTask(resolve));
  assertEquals(a.tryRead(), 1);
  a.close();
});

Deno.test("a lost message and the end after it keep their order", async () => {
  const [a, b] = ports({ capacity: 256 });
  new Scribe(b.segment, 1).frame({ flags: 1, total: 200, payload: new Array(64).fill(1) })
    .frame({ kind: 2, flags: 0 }).publish();
  const seen = record(a);
  await until(() => seen.length === 2);
  assertEquals(seen, ["message.truncated", "closed"]);
  a.close();
});

Deno.test("options that make no sense are refused before the endpoint is taken", () => {
  const a = Port.create();
  for (
    const options of [{ turnCount: 0 }, { turnCount: 1.5 }, { turnTime: -1 }, { turnTime: NaN }]
  ) {
    let error: unknown;
    try {
      Port.attach(a.memory, options);
    } catch (thrown) {
      error = thrown;
    }
    assert(error instanceof RangeError && !(error instanceof MessageError));
  }
  Port.attach(a.memory);
});
