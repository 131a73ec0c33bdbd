/** A worker that is terminated, or throws what nobody catches: whoever waits for it hears of it. */
import { PeerFailedError, Port } from "millrace";
import { supervise } from "millrace/supervise";
import { assertEquals, assertFails, type Stage, WAIT, within } from "../stage.ts";
import type { Task } from "./worker.ts";

export default async function main(stage: Stage): Promise<void> {
  for (const mode of ["block", "throw"] as const) {
    const port = Port.create<string>();
    const worker = stage.start();
    worker.result.catch(() => {}); // it never comes to one
    using supervision = supervise(worker.worker, port);
    worker.postMessage({ memory: port.memory, mode } satisfies Task);
    assertEquals(await port.readAsync(WAIT), mode);
    const failing = assertFails("peer.failed", () => port.readAsync(WAIT));
    const closed = port.closed;
    if (mode === "block") supervision.terminate();
    else port.write("now");
    const { signal, marked } = await within(supervision.failed);
    assertEquals([signal, marked], [mode === "block" ? "terminate" : "error", true]);
    const error = await failing;
    assertEquals(error instanceof PeerFailedError && error.reason, "peer.terminated");
    assertEquals(await within(closed) instanceof PeerFailedError, true);
    await assertFails("peer.failed", () => port.writeAsync("nobody reads", WAIT));
    port.close();
    worker.terminate();
  }
}
