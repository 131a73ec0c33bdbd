/** Bytes that are made and read where they lie, in the ring, both ways. */
import { Port } from "millrace";
import { abandon, claim, publish, tryClaim } from "millrace/lend";
import { assertEquals, assertFails, type Stage, WAIT } from "../stage.ts";

const SIZES = [0, 1, 16, 200, 496];

export default async function main(stage: Stage): Promise<void> {
  const port = Port.create<Uint8Array>({ capacity: 1024, codec: "bytes" });
  const worker = stage.start();
  worker.postMessage(port.memory);
  for (const [tag, size] of SIZES.entries()) {
    let place;
    while ((place = tryClaim(port, 496, { tag })) === undefined) await pause();
    assertEquals([place.size, place.offset % 16, place.area.buffer === port.memory], [
      496,
      0,
      true,
    ]);
    place.payload.subarray(0, size).fill(tag + 1);
    publish(port, size); // less than was claimed
    assertEquals(await port.readAsync(WAIT), new Uint8Array(size).fill(2 * tag + 2));
  }
  // Half the ring, less a header, is the most that one place can have.
  const refused = await Promise.resolve().then(() => tryClaim(port, 497)).catch((error) => error);
  assertEquals(refused instanceof RangeError, true);
  // A place that is not used leaves no message.
  claim(port, 100);
  abandon(port);
  port.end();
  assertEquals(await port.readAsync(WAIT), undefined);
  assertEquals(await worker.result, SIZES);
  port.close();
  await assertFails("pipe.closed", () => tryClaim(port, 1));
}

function pause(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve));
}
