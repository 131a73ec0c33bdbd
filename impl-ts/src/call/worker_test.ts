/** Calls between two threads, of which one blocks or both do. */

import { assertEquals } from "@std/assert";
import { remote, serve } from "./call.ts";
import { type Pair, pairOf, type Task } from "./worker_fixture.ts";
import { Port, type PortCreateOptions } from "../mod.ts";

const WAIT = { timeout: 30_000 };

/** A port whose other end a worker has. */
function begin(
  mode: Task["mode"],
  options: PortCreateOptions<unknown, unknown> = {},
): [Port<unknown>, Worker] {
  const port = Port.create<unknown>(options);
  const url = new URL("./worker_fixture.ts", import.meta.url);
  const worker = new Worker(url, { type: "module" });
  worker.postMessage({ ...port.handoff(), mode });
  return [port, worker];
}

for (const mode of ["blocking", "events"] as const) {
  Deno.test(`a call blocks until the answer of a peer that works by ${mode}`, () => {
    const [port, worker] = begin(mode);
    const far = remote<Pair>(port).with(WAIT);
    for (let n = 0; n < 1000; n++) assertEquals(far.sync.add(n, 1), n + 1);
    far.sync.stop();
    port.close();
    worker.terminate();
  });

  Deno.test(`calls nest 64 deep on both sides, which block, towards one by ${mode}`, () => {
    for (const capacity of [256, 65536]) {
      const [port, worker] = begin(mode, { capacity });
      serve(port, pairOf(port));
      const far = remote<Pair>(port).with(WAIT);
      assertEquals(far.sync.nest(64), 64);
      assertEquals(far.sync.nest(3), 3);
      far.sync.stop();
      port.close();
      worker.terminate();
    }
  });
}

Deno.test("calls nest 64 deep as promises", async () => {
  const [port, worker] = begin("events");
  serve(port, pairOf(port));
  const far = remote<Pair>(port).with(WAIT);
  assertEquals(await Promise.all([far.nestLater(64), far.nestLater(63)]), [64, 63]);
  port.close();
  worker.terminate();
});

Deno.test("[call.depth] a call beyond the limit is refused", () => {
  const [port, worker] = begin("blocking");
  serve(port, pairOf(port));
  const far = remote<Pair>(port).with(WAIT);
  let code = "none";
  try {
    far.sync.nest(400);
  } catch (error) {
    code = (error as { code: string }).code;
  }
  assertEquals(code, "call.depth");
  far.sync.stop();
  port.close();
  worker.terminate();
});
