/** A worker is a stage of a pipeline: streams go into a port, and come back out of it. */
import { Port } from "millrace";
import { readableOf, writableOf } from "millrace/streams";
import { assertEquals, assertFails, type Stage, within } from "../stage.ts";

const COUNT = 200;

export default async function main(stage: Stage): Promise<void> {
  const port = Port.create<string, number>({ capacity: 1024 });
  const worker = stage.start();
  worker.postMessage(port.handoff());
  let n = 0;
  const numbers = new ReadableStream<number>({
    pull(to) {
      if (n < COUNT) to.enqueue(n++);
      else to.close();
    },
  });
  const pair = { readable: readableOf(port), writable: writableOf(port) };
  const reader = numbers.pipeThrough(pair).getReader();
  for (let wanted = 0; wanted < COUNT; wanted++) {
    const { done, value } = await within(reader.read());
    assertEquals([done, value], [false, `<${wanted}>`]);
  }
  assertEquals((await within(reader.read())).done, true);
  assertEquals(await worker.result, "piped");
  port.close();
  await assertFails("pipe.closed", () => port.writeAsync(1));
}
