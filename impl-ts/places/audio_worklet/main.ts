/** An audio processor takes bytes from one port, and hands them to a worker by another. */
import { Port, portMemory } from "millrace";
import { BLOCK, placeProcessor } from "../audio.ts";
import { assertEquals, type Stage, within } from "../stage.ts";

const COUNT = 300;

export default async function main(stage: Stage): Promise<void> {
  const source = Port.create<Uint8Array>({ codec: "bytes" });
  const sink = portMemory();
  const worker = stage.start();
  worker.postMessage(sink);
  for (let n = 0; n < COUNT; n++) source.write(new Uint8Array(BLOCK).fill(n));
  source.end();
  const given = { source: source.handoff(), sink };
  const { context, result } = await placeProcessor(stage, given, COUNT + 1);
  const [rendered, count] = await within(Promise.all([context.startRendering(), result]));
  assertEquals(count, COUNT);
  const samples = rendered.getChannelData(0);
  for (let n = 0; n < COUNT; n++) {
    for (const i of [0, BLOCK - 1]) assertEquals(samples[n * BLOCK + i], (n % 256) / 256);
  }
  assertEquals(samples[COUNT * BLOCK], 0);
  assertEquals(await worker.result, COUNT);
  source.close();
}
