import { SABMessagePort, type SABMessagePortInit } from "millrace/sab-message-port";
import { WAIT } from "../stage.ts";

/** Blocks until it is told to end, and says what the reads have answered. */
export default async function worker(init: SABMessagePortInit): Promise<string> {
  const port = SABMessagePort.from(init);
  // Awaited: the original writes nothing while its thread blocks.
  await port.postMessage([port.read(1), port.read(1, true, 2)]);
  const first = port.read(WAIT.timeout);
  await port.postMessage([first, port.tryRead(9)]);
  try {
    return `read ${port.read(WAIT.timeout)}`;
  } catch (error) {
    return String(error).includes("disposed") ? "disposed" : String(error);
  }
}
