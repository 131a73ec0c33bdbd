import { assertEquals } from "@std/assert";
import { closeEndpoint, failEndpoint } from "../wait/state.ts";
import { pattern, random } from "./fixture.ts";
import type { Task } from "./worker_fixture.ts";
import { writeMany } from "../more/many.ts";
import type { PortCreateOptions } from "../port/options.ts";
import { Port } from "../port/port.ts";
import { processorCount } from "../wait/mechanism.ts";

const WAIT = { timeout: 60_000 };

/** Starts the other thread, and ends it whatever happens; returns the last thing that it said. */
async function withWorker(
  options: PortCreateOptions & { spin?: number },
  mode: Task["mode"],
  run: (port: Port) => void | Promise<void>,
): Promise<string> {
  const port = Port.create(options);
  const worker = new Worker(new URL("./worker_fixture.ts", import.meta.url), { type: "module" });
  const said: string[] = [];
  let heard = () => {};
  worker.onmessage = ({ data }) => {
    said.push(data);
    heard();
  };
  const hear = async (count: number) => {
    while (said.length < count) await new Promise<void>((resolve) => heard = resolve);
  };
  try {
    const task: Task = {
      memory: port.memory as SharedArrayBuffer,
      mode,
      spin: options.spin ?? (processorCount() > 1 ? 50 : 0),
    };
    worker.postMessage(task);
    await hear(1);
    await run(port);
    await hear(2);
    return said[1]!;
  } finally {
    port.close(); // a worker that waits is freed by this, and only then ends
    worker.terminate();
  }
}

/** A seeded message: JSON, or bytes of one frame or of several. */
function message(next: () => number, most: number): unknown {
  switch (next() % 4) {
    case 0:
      return pattern(next() % most, next());
    case 1:
      return "é".repeat(next() % 30);
    default:
      return { id: next(), list: [1, null, "x".repeat(next() % 40)] };
  }
}

for (const mode of ["blocking", "async"] as const) {
  for (const capacity of [256, 4096]) {
    for (const spin of [50, 0]) {
      const name = `${mode} worker, ring of ${capacity}, spin ${spin}`;
      Deno.test(`blocking calls come back from a ${name}`, async () => {
        const start = 2 ** 32 - capacity;
        const said = await withWorker({ capacity, start, spin }, mode, (port) => {
          const next = random(capacity + spin);
          for (let round = 0; round < 150; round++) {
            const batch = Array.from({ length: 1 + next() % 8 }, () => message(next, capacity * 2));
            if (round % 2 === 0) writeMany(port, batch, WAIT);
            else for (const value of batch) port.write(value, WAIT);
            for (const value of batch) assertEquals(port.read(WAIT), value);
          }
          port.end();
          assertEquals([port.read(WAIT), port.ended], [undefined, true]);
        });
        assertEquals(said, "done");
      });
    }
  }

  Deno.test(`asynchronous calls come back from a worker, ${mode}`, async () => {
    const said = await withWorker({ capacity: 1024 }, mode, async (port) => {
      const next = random(7);
      for (let round = 0; round < 60; round++) {
        const batch = Array.from({ length: 1 + next() % 8 }, () => message(next, 2000));
        const writes = batch.map((value) => port.writeAsync(value, WAIT));
        for (const value of batch) assertEquals(await port.readAsync(WAIT), value);
        await Promise.all(writes);
      }
      port.end();
      assertEquals([await port.readAsync(WAIT), port.ended], [undefined, true]);
    });
    assertEquals(said, "done");
  });
}

Deno.test("frames are lent both ways between workers", async () => {
  const said = await withWorker({ capacity: 512, codec: "bytes" }, "lend", (port) => {
    for (let size = 0; size <= 240; size++) {
      port.write(pattern(size), WAIT);
      assertEquals(port.read(WAIT), pattern(size));
    }
    port.end();
    assertEquals(port.read(WAIT), undefined);
  });
  assertEquals(said, "done");
});

Deno.test("closing a blocked endpoint from another thread frees it", async () => {
  const said = await withWorker({}, "wait", async (port) => {
    await new Promise((resolve) => setTimeout(resolve, 20));
    closeEndpoint(port.segment, 1);
  });
  assertEquals(said, "pipe.closed");
});

Deno.test("failing a blocked endpoint, or its peer, frees it with the reason", async () => {
  for (const [index, code] of [[1, "pipe.failed"], [0, "peer.failed"]] as const) {
    const said = await withWorker({}, "wait", async (port) => {
      await new Promise((resolve) => setTimeout(resolve, 20));
      failEndpoint(port.segment, index, "peer.terminated");
    });
    assertEquals(said, code);
  }
});

Deno.test("a peer that closes frees a blocked endpoint", async () => {
  const said = await withWorker({}, "wait", async (port) => {
    await new Promise((resolve) => setTimeout(resolve, 20));
    port.close();
  });
  assertEquals(said, "peer.closed");
});
