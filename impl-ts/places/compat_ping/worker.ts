import { SABMessagePort, type SABMessagePortInit } from "millrace/sab-message-port";
import { assertEquals } from "../stage.ts";

export default function worker(init: SABMessagePortInit): Promise<void> {
  assertEquals(init.type, "SABMessagePort");
  const port = SABMessagePort.from(init);
  return new Promise((resolve) => {
    port.onmessage = async (event) => {
      if (event.data.cmd !== "ping") return;
      await port.postMessage({ reply: "pong" });
      resolve();
    };
  });
}
