/** A loop over a port: leaving it leaves the port as it is, and the next one goes on. */
import { PeerClosedError, Port } from "millrace";
import { assertEquals, type Stage, WAIT, within } from "../stage.ts";

export default async function main(stage: Stage): Promise<void> {
  const port = Port.create<number, string>();
  const worker = stage.start();
  worker.postMessage(port.handoff());
  const heard: unknown[] = [];
  const listen = async (last: number) => {
    for await (const n of port) {
      heard.push(n);
      if (n === last) break;
    }
  };
  await within(listen(2));
  heard.push("left");
  assertEquals(await port.readAsync(WAIT), 3);
  await within(listen(5));
  assertEquals(heard, [1, 2, "left", 4, 5]);

  // The worker closes without an end, which a loop reports, after the last message.
  port.write("close");
  const error = await within(listen(7)).catch((error) => error);
  assertEquals([heard.at(-1), error instanceof PeerClosedError], [6, true]);
  assertEquals(await worker.result, "close");
  port.close();
}
