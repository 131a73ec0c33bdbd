/** The quick start of `sab-message-port`, with the import changed and nothing else. */
import { SABMessagePort } from "millrace/sab-message-port";
import { assertEquals, type Stage } from "../stage.ts";

export default async function main(stage: Stage): Promise<void> {
  const worker = stage.start();
  const port = new SABMessagePort();
  port.postInit(worker);
  const heard = new Promise((resolve) => port.onmessage = (event) => resolve(event.data));
  port.postMessage({ cmd: "ping" });
  assertEquals(await heard, { reply: "pong" });
  await worker.result;
  port.close();
}
