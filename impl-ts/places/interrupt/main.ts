/** A worker in a long loop that never yields to its event loop hears that it shall stop. */
import { Port } from "millrace";
import { assertEquals, type Stage, WAIT } from "../stage.ts";
import type { Command, Note } from "./worker.ts";

export default async function main(stage: Stage): Promise<void> {
  const port = Port.create<Note, Command>();
  const worker = stage.start();
  worker.postMessage(port.memory);
  port.write({ run: "A", rounds: Infinity });
  assertEquals(await port.readAsync(WAIT), { started: "A" });
  port.write({ abort: "A" });
  port.write({ run: "B", rounds: 3 });
  port.end();
  assertEquals(await port.readAsync(WAIT), { aborted: "A" });
  assertEquals(await port.readAsync(WAIT), { started: "B" });
  assertEquals(await port.readAsync(WAIT), { finished: "B" });
  assertEquals(await port.readAsync(WAIT), undefined);
  await worker.result;
  port.close();
}
