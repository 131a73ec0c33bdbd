import { assert, assertEquals, assertThrows } from "@std/assert";
import { pattern, random } from "../testing/fixture.ts";
import { Port } from "./port.ts";
import { ports } from "./fixture.ts";
import type { Task } from "./worker_fixture.ts";
import { isPortHandoff } from "./options.ts";

const WAIT = { timeout: 60_000 };

/** Hands ports to one worker, runs something, and ends the worker. */
async function withWorker(
  modes: readonly Task["mode"][],
  run: (ports: Port[], worker: Worker) => Promise<void>,
  capacity = 4096,
): Promise<void> {
  const ports = modes.map(() => Port.create({ capacity }));
  const url = new URL("./worker_fixture.ts", import.meta.url);
  const worker = new Worker(url, { type: "module" });
  try {
    worker.postMessage(ports.map((port, i) => port.handoff<Task>({ mode: modes[i]! })));
    await run(ports, worker);
  } finally {
    for (const port of ports) port.close(); // ends the waits of the worker
    worker.terminate();
  }
}

function message(next: () => number): unknown {
  const kind = next() % 3;
  if (kind === 0) return pattern(next() % 3000, next());
  return kind === 1 ? "é".repeat(next() % 30) : { id: next(), list: [1, null] };
}

for (const mode of ["events", "streams", "blocking"] as const) {
  Deno.test(`what is posted comes back by events from a worker: ${mode}`, async () => {
    await withWorker([mode], async ([port]) => {
      const next = random(3);
      const values = Array.from({ length: 400 }, () => message(next));
      const seen: unknown[] = [];
      const over = new Promise<unknown>((resolve) => {
        port!.onclose = ({ error }) => resolve(error);
      });
      port!.onmessage = ({ data }) => seen.push(data);
      for (const [i, value] of values.entries()) {
        port!.postMessage(value);
        if (i % 50 === 0) await new Promise((resolve) => setTimeout(resolve, 0));
      }
      await port!.endAsync(WAIT);
      assertEquals(await over, undefined);
      assertEquals(seen, values);
    });
  });
}

Deno.test("one worker serves several ports, told apart by what their handoffs say", async () => {
  await withWorker(["events", "streams", "events"], async (all) => {
    for (const [i, port] of all.entries()) port.write(i);
    for (const [i, port] of all.entries()) assertEquals(await port.readAsync(WAIT), i);
    for (const port of all) port.end();
    for (const port of all) assertEquals(await port.readAsync(WAIT), undefined);
  });
});

Deno.test("a port that is posted itself is refused, and the error says what to post", () => {
  const port = Port.create();
  const { port1, port2 } = new MessageChannel();
  const said = "post port.handoff() in its place";
  assertThrows(() => structuredClone(port), DOMException, said);
  assertThrows(() => port1.postMessage({ ports: [port] }), DOMException, said);
  port1.postMessage(port.handoff());
  port1.close();
  port2.close();
  // To look at a port, or to spread it, is no error.
  assertEquals([JSON.stringify({ ...port, segment: 1 }), Deno.inspect(port)], [
    '{"segment":1}',
    "Port {}",
  ]);
});

Deno.test("either side may come first", async () => {
  await withWorker(["events"], async ([port]) => {
    // Long before the worker has started; the messages of both stand one after the other in the
    // ring.
    port!.postMessage("early");
    assertEquals(await port!.readAsync(WAIT), "early");
  });
  await withWorker(["early"], async ([port], worker) => {
    await new Promise((resolve) => worker.onmessage = resolve);
    const seen: unknown[] = [];
    await new Promise<void>((resolve) => {
      port!.onmessage = ({ data }) => {
        seen.push(data);
        if (seen.length === 2) resolve();
      };
      port!.postMessage("second");
    });
    assertEquals(seen, ["first", "second"]);
  });
});

Deno.test("a flood both ways comes through small rings, by events", async () => {
  await withWorker(["events"], async ([port]) => {
    const count = 3000;
    let seen = 0;
    const done = new Promise<void>((resolve) => {
      port!.onmessage = ({ data }) => {
        if (data === seen) seen++;
        if (seen === count) resolve();
      };
    });
    for (let i = 0; i < count; i++) port!.postMessage(i);
    await done;
  }, 256);
});

Deno.test("a handoff is a plain object that can be cloned, with the caller's properties", () => {
  const [a] = ports();
  const handoff = a.handoff({ name: "log", list: [1] });
  assertEquals(structuredClone(handoff), handoff);
  assertEquals([handoff.millrace, handoff.endpoint, handoff.memory, handoff.name], [
    "port",
    1,
    a.memory,
    "log",
  ]);
  const b = Port.create({ side: "b" });
  const there = Port.from<string>(b.handoff(), { codec: "text" });
  there.write("from side a");
  assertEquals(b.read(), "from side a");
});

Deno.test("what is no handoff is refused, and each end is given once", () => {
  const [a] = ports();
  const good = a.handoff();
  for (
    const bad of [
      undefined,
      null,
      1,
      "port",
      {},
      a.memory,
      { ...good, millrace: "segment" },
      { ...good, memory: undefined },
      { ...good, endpoint: "1" },
    ]
  ) {
    assertEquals(isPortHandoff(bad), false);
    assertThrows(() => Port.from(bad), TypeError, "no handoff");
  }
  assert(isPortHandoff(good));
  assertThrows(() => Port.from(good), Error, "segment.endpoint");
  assertThrows(() => a.handoff({ memory: 1 }), TypeError, "memory");
  const own = Port.create({ memory: new ArrayBuffer(4096), capacity: 256 });
  assertThrows(() => own.handoff(), TypeError, "not shared");
});
