/** The blocking reads with interrupt of `sab-message-port`: a loop that never yields is aborted. */
import { SABMessagePort } from "millrace/sab-message-port";
import { assertEquals, type Stage, WAIT } from "../stage.ts";

export default async function main(stage: Stage): Promise<void> {
  const worker = stage.start();
  const port = new SABMessagePort();
  port.postInit(worker);
  port.postMessage({ cmd: "run", task: "A", iterations: 1e15 });
  assertEquals(await port.asyncRead(WAIT.timeout), { task: "A", progress: "0%" });
  port.postMessage({ cmd: "abort" });
  port.postMessage({ cmd: "run", task: "B", iterations: 1 });
  const said = [];
  for (let note; (note = await port.asyncRead(WAIT.timeout))?.task === "A";) said.push(note);
  assertEquals(said.at(-1), { task: "A", aborted: true });
  port.close();
  assertEquals(await worker.result, ["A", "B"]);
}
