/** The main thread ends a worker that blocks, and tells whoever waits for it. */
import { failEndpoint, PeerFailedError, Port } from "millrace";
import { assertEquals, assertFails, type Stage, WAIT } from "../stage.ts";

export default async function main(stage: Stage): Promise<void> {
  const port = Port.create();
  const worker = stage.start();
  worker.postMessage(port.memory);
  assertEquals(await port.readAsync(WAIT), "blocked from now on");
  const failing = assertFails("peer.failed", () => port.readAsync(WAIT));
  worker.terminate();
  failEndpoint(port.segment, 1, "peer.terminated");
  const error = await failing;
  assertEquals(error instanceof PeerFailedError && error.reason, "peer.terminated");
  await assertFails("peer.failed", () => port.writeAsync("nobody reads", WAIT));
  port.close();
}
