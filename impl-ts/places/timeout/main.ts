/** Nobody is there in time: every kind of wait comes back, and nothing is lost. */
import { Port, TimeoutError } from "millrace";
import { assertEquals, assertFails, type Stage, WAIT } from "../stage.ts";

const SHORT = { timeout: 20 };

export default async function main(stage: Stage): Promise<void> {
  const port = Port.create<string>({ capacity: 256 });
  assertEquals([port.tryRead(), await port.readAsync(SHORT), port.ended], [
    undefined,
    undefined,
    false,
  ]);
  while (port.tryWrite("full"));
  const error = await assertFails("wait.timeout", () => port.writeAsync("too much", SHORT));
  assertEquals(error instanceof TimeoutError, true);

  const worker = stage.start();
  worker.postMessage(port.memory);
  await port.writeAsync("last", WAIT);
  assertEquals(await port.readAsync(WAIT), "nothing came in time");
  port.end();
  await worker.result;
  port.close();
}
