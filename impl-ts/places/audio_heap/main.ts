/** Bytes move in an audio processor without allocating, so that nothing has to be collected. */
import { placeProcessor, timeOf } from "../audio.ts";
import { assertEquals, type Stage, within } from "../stage.ts";
import { BURST, VERBS } from "./processor.ts";

/** What the driver of the page tells: bytes on the heap of its audio worklets. */
const { heapUsed } = globalThis as unknown as { heapUsed(): Promise<number> };
/** Blocks after which everything is compiled as it stays. */
const WARM_UP = 1_000;
/** Times that the heap is measured, so many blocks apart: what they make fits in any nursery. */
const LOOKS = 25;
const STEP = 20;
/** Bytes for each message: far below an object, which has 12 at least. */
const MOST = 1;
const OBJECT = 12;
/** Where cursors begin: at first; and after hours, when V8 does not keep them as small integers. */
const STARTS = [0, 2 ** 32 - 2 ** 30];

export default async function main(stage: Stage): Promise<void> {
  for (const start of STARTS) {
    for (const verb of Object.keys(VERBS)) {
      const bytes = await measure(stage, verb, start);
      console.log(`${verb}, from ${start}: ${bytes} bytes a message`);
      const isCanary = verb.startsWith("canary");
      assertEquals([verb, bytes < MOST, bytes >= OBJECT], [verb, !isCanary, isCanary]);
    }
  }
}

/**
 * Bytes that a verb allocates for each message, between most looks: between two of them something
 * may be compiled, or collected.
 */
async function measure(stage: Stage, verb: string, start: number): Promise<number> {
  const blocks = WARM_UP + LOOKS * STEP + 1;
  const { context, result } = await placeProcessor(stage, { verb, start }, blocks);
  const used: number[] = [];
  for (let look = 0; look <= LOOKS; look++) {
    context.suspend(timeOf(WARM_UP + look * STEP)).then(async () => {
      used.push(await heapUsed());
      context.resume();
    });
  }
  // The processor has no end: what comes from it is an error.
  await within(Promise.race([context.startRendering(), result]));
  const growth = used.slice(1).map((after, look) => after - used[look]!).sort((a, b) => a - b);
  assertEquals(growth.length, LOOKS);
  return growth[LOOKS >> 1]! / (STEP * BURST);
}
