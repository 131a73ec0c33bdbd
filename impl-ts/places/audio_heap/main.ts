/** Bytes move in an audio processor without allocating, so that nothing has to be collected. */
import { placeProcessor, timeOf } from "../audio.ts";
import { assertEquals, type Stage, within } from "../stage.ts";
import { BURST, VERBS } from "./processor.ts";

/** What the driver of the page tells: bytes on the heap of its audio worklets. */
const { heapUsed } = globalThis as unknown as { heapUsed(): Promise<number> };
/** Blocks behind which everything is compiled as it stays. */
const WARM_UP = 1_000;
/** Times that the heap is measured, so many blocks apart: a collection hides what was before. */
const LOOKS = 10;
const STEP = 100;
/** Bytes for each message, of a hundred thousand: far below an object, which has 12 at least. */
const MOST = 3;
const OBJECT = 12;

export default async function main(stage: Stage): Promise<void> {
  for (const verb of Object.keys(VERBS)) {
    const bytes = await measure(stage, verb);
    console.log(`${verb}: ${bytes.toFixed(3)} bytes a message`);
    const isCanary = verb.startsWith("canary");
    assertEquals([verb, bytes < MOST, bytes >= OBJECT], [verb, !isCanary, isCanary]);
  }
}

/** Bytes that a verb allocates for each message. */
async function measure(stage: Stage, verb: string): Promise<number> {
  const looks = Array.from({ length: LOOKS + 1 }, (_, look) => WARM_UP + look * STEP);
  const { context, result } = await placeProcessor(stage, { verb }, WARM_UP + LOOKS * STEP + 1);
  let [before, growth] = [Infinity, 0];
  for (const block of looks) {
    context.suspend(timeOf(block)).then(async () => {
      const after = await heapUsed();
      growth += Math.max(0, after - before);
      before = after;
      context.resume();
    });
  }
  // The processor has no end: what comes from it is an error.
  await within(Promise.race([context.startRendering(), result]));
  return growth / (LOOKS * STEP * BURST);
}
