/** Bytes go both ways, on one side into memory that the reader gives. */
import { Port } from "millrace";
import { assertEquals, type Stage, WAIT } from "../stage.ts";

export default async function main(stage: Stage): Promise<void> {
  const port = Port.create<Uint8Array>({ capacity: 512, codec: "bytes" });
  const worker = stage.start();
  worker.postMessage(port.memory);
  // Empty, odd, as large as one frame can be, and in parts.
  for (const size of [0, 1, 15, 16, 240, 241, 5000]) {
    const bytes = Uint8Array.from({ length: size }, (_, index) => index * 7);
    await port.writeAsync(bytes, WAIT);
    assertEquals(await port.readAsync(WAIT), bytes);
  }
  port.end();
  assertEquals(await port.readAsync(WAIT), undefined);
  assertEquals(await worker.result, [0, 1, 15, 16, 240, 241, 5000]);
  port.close();
}
