/** A worker that blocks sends back whatever comes, in order. */
import { Port } from "millrace";
import { assertEquals, type Stage, WAIT } from "../stage.ts";

const VALUES = [
  { n: 1 },
  null,
  "grüße, 世界",
  [1.5, true, { deep: [[]] }],
  "x".repeat(10_000), // Several times the ring: it goes in parts.
];

export default async function main(stage: Stage): Promise<void> {
  const port = Port.create({ capacity: 1024 });
  const worker = stage.start();
  worker.postMessage(port.memory);
  for (const value of VALUES) {
    await port.writeAsync(value, WAIT);
    assertEquals(await port.readAsync(WAIT), value);
  }
  // Many at once: they wait in the ring and in the inboxes.
  const batch = Array.from({ length: 100 }, (_, n) => ({ n, text: "é".repeat(n) }));
  const writes = batch.map((value) => port.writeAsync(value, WAIT));
  for (const value of batch) assertEquals(await port.readAsync(WAIT), value);
  await Promise.all(writes);

  port.end();
  assertEquals(await port.readAsync(WAIT), undefined);
  assertEquals(port.ended, true);
  assertEquals(await worker.result, VALUES.length + batch.length);
  port.close();
}
