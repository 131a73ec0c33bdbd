/** What the guide's table says of a port where nothing arrives, as far as it is so everywhere. */
import { Port } from "millrace";
import { assertEquals, assertFails, type Stage, WAIT } from "../stage.ts";

export default async function main(stage: Stage): Promise<void> {
  const port = Port.create<string>();
  const worker = stage.start();
  // In browsers and Bun the words are their own, since a port is an event target.
  assertEquals(nameOf(() => worker.postMessage(port)), "DataCloneError");
  worker.postMessage(port.memory);
  // Posted in the last job of the worker, which closes its port and ends.
  assertEquals(await port.readAsync(WAIT), "one of the last posts");
  assertEquals(await port.readAsync(WAIT), "the last");
  await worker.result;
  port.close();

  const here = Port.create<string>();
  const there = Port.attach<string>(here.memory);
  const third = await assertFails("segment.endpoint", () => Port.attach(here.memory));
  if (!third.message.includes("it is taken")) throw new Error(`Not taken: ${third.message}`);
  for (const end of [here, there]) end.close();
}

function nameOf(call: () => unknown): string {
  try {
    call();
  } catch (error) {
    return (error as Error).name;
  }
  return "no error at all";
}
