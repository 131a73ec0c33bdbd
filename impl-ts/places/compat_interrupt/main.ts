/**
 * The blocking reads with interrupt of `sab-message-port`: a loop that never yields is aborted, and
 * what it says meanwhile comes by events.
 */
import { SABMessagePort } from "millrace/sab-message-port";
import { assertEquals, type Stage, within } from "../stage.ts";

export default async function main(stage: Stage): Promise<void> {
  const worker = stage.start();
  const port = new SABMessagePort();
  port.postInit(worker);
  const said: unknown[] = [];
  const done = new Promise<void>((resolve) => {
    port.onmessage = ({ data }) => {
      said.push(data);
      if (said.length === 1) {
        port.postMessage({ cmd: "abort" });
        port.postMessage({ cmd: "run", task: "B", iterations: 1_000_001 });
      }
      if (data.task === "B" && data.progress === "99%") resolve();
    };
  });
  port.postMessage({ cmd: "run", task: "A", iterations: 1e15 });
  await within(done);
  assertEquals(said[0], { task: "A", progress: "0%" });
  assertEquals(said.slice(-4), [
    { task: "A", aborted: true },
    { task: "B", progress: "0%" },
    { task: "B", progress: "49%" },
    { task: "B", progress: "99%" },
  ]);
  port.close();
  assertEquals(await worker.result, ["A", "B"]);
}
