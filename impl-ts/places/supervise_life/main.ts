/**
 * A worker that holds its life is ended from outside by a bare `terminate`, which says nothing to
 * anybody: the lock that it lets go, or Node's `exit` event, tells.
 */
import { Port } from "millrace";
import { supervise } from "millrace/supervise";
import { assertEquals, assertFails, type Stage, WAIT, within } from "../stage.ts";
import type { Life } from "./worker.ts";

export default async function main(stage: Stage): Promise<void> {
  const port = Port.create<boolean>();
  const lock = `life ${Math.random()}`;
  const worker = stage.start();
  worker.result.catch(() => {}); // it never comes to one
  using supervision = supervise(worker.worker, port, { lock });
  worker.postMessage({ memory: port.memory, lock } satisfies Life);
  const hasLocks = await port.readAsync(WAIT);
  const failing = assertFails("peer.failed", () => port.readAsync(WAIT));
  worker.terminate();
  const { signal, marked } = await within(supervision.failed);
  // Node says by itself that a worker has ended, before or after the lock, if it has locks at all.
  if (signal !== "exit") assertEquals([signal, hasLocks], ["lock", true]);
  else assertEquals("on" in worker.worker, true);
  assertEquals(marked, true);
  await failing;
  port.close();
}
