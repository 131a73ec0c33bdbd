/** A side that closes without an end frees the other one, whichever way that one waits. */
import { Port } from "millrace";
import { assertEquals, assertFails, type Stage, WAIT } from "../stage.ts";

export default async function main(stage: Stage): Promise<void> {
  const worker = stage.start();
  const [first, second] = [Port.create(), Port.create()];
  worker.postMessage([first.memory, second.memory]);
  // The worker closes this one, after one message.
  assertEquals(await first.readAsync(WAIT), "bye");
  await assertFails("peer.closed", () => first.readAsync(WAIT));
  await assertFails("peer.closed", () => first.writeAsync("too late", WAIT));
  // The worker blocks on this one.
  assertEquals(await second.readAsync(WAIT), "waiting");
  second.close();
  assertEquals(await worker.result, "peer.closed");
  await assertFails("pipe.closed", () => second.readAsync(WAIT));
}
