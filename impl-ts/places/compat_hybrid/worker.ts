import { MWChannel, type MWChannelInit } from "millrace/sab-message-port";
import { WAIT } from "../stage.ts";

export default function worker(init: MWChannelInit): void {
  const port = MWChannel.from(init);
  port.postMessage(init.channel);
  for (let value; (value = port.read(WAIT.timeout)) !== null;) {
    port.postMessage(value);
    if (value === "done") return;
  }
  throw new Error("Nothing came in time");
}
