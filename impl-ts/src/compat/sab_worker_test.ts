import { assertEquals } from "@std/assert";
import { random } from "../testing/fixture.ts";
import { WAIT_MS, WIRES, within } from "./sab_fixture.ts";
import { MWChannel, SABMessagePort, SABPipe } from "./sab_message_port.ts";
import type { Task } from "./sab_worker_fixture.ts";

/** Starts the other thread, and ends it in any case. Returns its last message. */
async function withWorker(
  post: (worker: Worker) => void,
  run: () => void | Promise<void>,
  close: () => void,
): Promise<string> {
  const url = new URL("./sab_worker_fixture.ts", import.meta.url);
  const worker = new Worker(url, { type: "module" });
  const said: ((text: string) => void)[] = [];
  const [started, last] = [0, 1].map(() => new Promise<string>((resolve) => said.push(resolve)));
  worker.onmessage = ({ data }) => said.shift()!(data);
  try {
    post(worker);
    assertEquals(await within(started!), "started");
    await run();
    close(); // ends the waits of the worker, which then ends by itself
    return await within(last!);
  } finally {
    close();
    worker.terminate();
  }
}

function message(next: () => number, n: number): unknown {
  if (next() % 3 === 0) return "é€😀".repeat(next() % 20);
  return { n, list: [1, null, "x".repeat(next() % 3_000)] };
}

for (const wire of WIRES) {
  for (const task of ["echo", "echo async", "echo events"] as const) {
    Deno.test(`a worker sends everything back, ${task}, ${wire}`, async () => {
      const port = new SABMessagePort("a", 8, null, { wire });
      const next = random(7);
      const last = await withWorker(
        (worker) => port.postInit(worker, { task }),
        async () => {
          for (let n = 0; n < 50; n++) {
            const burst = Array.from({ length: 1 + n % 4 }, () => message(next, n));
            const written = burst.map((value) => port.postMessage(value));
            const read: unknown[] = [];
            while (read.length < burst.length) {
              // Also blocking reads: the main thread may block in this runtime.
              if (n % 3 === 0) read.push(port.read(WAIT_MS));
              else read.push(...(await port.asyncRead(WAIT_MS, 9)).reverse());
            }
            assertEquals(read, burst);
            await within(Promise.all(written));
          }
          port.postMessage("stop");
          assertEquals(await port.asyncRead(WAIT_MS), "stopped");
        },
        () => port.close(),
      );
      assertEquals(last, task === "echo events" ? "done" : "SABPipe disposed");
    });
  }

  Deno.test(`a worker reads what is posted at its own pace, ${wire}`, async () => {
    const writer = new SABPipe("w", 2048, 0, null, null, { wire });
    const last = await withWorker(
      (worker) => worker.postMessage({ task: "pipe", wire, buffer: writer.buffer } satisfies Task),
      async () => {
        for (let n = 0; n < 3_000;) {
          const burst: Promise<void>[] = [];
          for (let left = n % 5; left >= 0; left--) burst.push(writer.postMessage({ n: n++ }));
          if (n % 2 === 0) await within(Promise.all(burst));
        }
        const last = writer.postMessage({ n: 3_000 });
        await within(last);
      },
      () => writer.destroy(),
    );
    assertEquals(last, "SABPipe disposed");
  });

  Deno.test(`a worker that blocks is freed by a destroy, ${wire}`, async () => {
    const writer = new SABPipe("w", 2048, 0, null, null, { wire });
    const { buffer } = writer;
    const last = await withWorker(
      (worker) => worker.postMessage({ task: "silent", wire, buffer } satisfies Task),
      () => new Promise((resolve) => setTimeout(resolve, 20)),
      () => writer.destroy(),
    );
    assertEquals(last, "SABPipe disposed");
  });

  Deno.test(`MWChannel: a worker in both modes, ${wire}`, async () => {
    const channel = new MWChannel("m", 4, null, { wire });
    const inbox: unknown[] = [];
    let arrived = () => {};
    channel.onmessage = ({ data }) => {
      inbox.push(data);
      arrived();
    };
    const take = async (count: number) => {
      while (inbox.length < count) await within(new Promise<void>((resolve) => arrived = resolve));
      return inbox.splice(0, count);
    };
    const last = await withWorker(
      (worker) => channel.postInit(worker, { task: "channel" }),
      async () => {
        for (const value of [1, "two", { three: 3 }]) channel.postMessage(value);
        assertEquals(await take(3), [{ read: 1 }, { read: "two" }, { read: { three: 3 } }]);
        assertEquals(await take(1), ["nonblocking"]);
        channel.setMode("nonblocking");
        channel.postMessage("first");
        channel.postMessage("last");
        assertEquals(await take(3), [{ event: "first" }, { event: "last" }, "blocking"]);
        channel.setMode("blocking");
        await within(channel.postMessage("again")!);
        assertEquals(await take(1), [{ read: "again" }]);
      },
      () => channel.close(),
    );
    assertEquals(last, "SABPipe disposed");
  });
}

for (const wire of WIRES) {
  Deno.test(`what a worker posts and awaits before it closes itself arrives, ${wire}`, async () => {
    const port = new SABMessagePort("a", 8, null, { wire });
    const url = new URL("./sab_worker_fixture.ts", import.meta.url);
    const worker = new Worker(url, { type: "module" });
    try {
      port.postInit(worker, { task: "leave" });
      assertEquals(await port.asyncRead(WAIT_MS, 9), ["words", "last"]);
    } finally {
      port.close();
      worker.terminate();
    }
  });
}
