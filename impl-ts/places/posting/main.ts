/** Bursts are posted to a worker that blocks: more than the ring holds, and all in their order. */
import { Port } from "millrace";
import { assertEquals, type Stage, WAIT, within } from "../stage.ts";

const BURST_COUNT = 3;
const SIZE = 1000;

export default async function main(stage: Stage): Promise<void> {
  const port = Port.create<string, number>({ capacity: 4096 });
  const worker = stage.start();
  worker.postMessage(port.memory);
  for (let burst = 1; burst <= BURST_COUNT; burst++) {
    const posts = Array.from({ length: SIZE }, (_, n) => port.postMessage((burst - 1) * SIZE + n));
    // The worker posts as well, and blocks again at once: only its read can send that.
    assertEquals(await port.readAsync(WAIT), `${burst * SIZE} in order`);
    await within(Promise.all(posts));
  }
  // One that is taken back while it waits leaves no gap.
  const posts = Array.from({ length: SIZE }, (_, n) => port.postMessage(BURST_COUNT * SIZE + n));
  const ending = new AbortController();
  const taken = port.postMessage(-1, { signal: ending.signal });
  ending.abort("taken back");
  assertEquals(await taken.catch((reason) => reason), "taken back");
  port.end();
  await within(Promise.all(posts));
  assertEquals(await worker.result, (BURST_COUNT + 1) * SIZE);
  port.close();
}
