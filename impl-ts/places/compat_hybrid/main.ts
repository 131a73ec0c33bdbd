/** `MWChannel`: through shared memory to a worker that blocks, and back by the native port. */
import { MWChannel } from "millrace/sab-message-port";
import { assertEquals, type Stage } from "../stage.ts";

export default async function main(stage: Stage): Promise<void> {
  const worker = stage.start();
  const port = new MWChannel("m");
  port.postInit(worker, { channel: "events" });
  const heard: unknown[] = [];
  const all = new Promise<void>((resolve) => {
    port.onmessage = ({ data }) => {
      heard.push(data);
      if (data === "done") resolve();
    };
  });
  port.postMessage({ key: "a" });
  port.postMessage({ key: "b" });
  port.postMessage("done");
  await all;
  assertEquals(heard, ["events", { key: "a" }, { key: "b" }, "done"]);
  await worker.result;
  port.close();
}
