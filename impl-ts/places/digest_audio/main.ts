/** An audio processor, in whose scope there is next to nothing, takes digests of shared bytes. */
import { sha1 } from "millrace/digest";
import { placeProcessor } from "../audio.ts";
import { assertEquals, type Stage, within } from "../stage.ts";

const SIZE = 100_000;

export default async function main(stage: Stage): Promise<void> {
  const bytes = new Uint8Array(new SharedArrayBuffer(SIZE));
  for (let at = 0; at < SIZE; at++) bytes[at] = at * 7 + (at >> 8);
  const { context, result } = await placeProcessor(stage, { bytes }, 4);
  const [, digests] = await within(Promise.all([context.startRendering(), result]));
  assertEquals(digests, [100, SIZE, SIZE].map((size) => Array.from(sha1(bytes.subarray(0, size)))));
}
