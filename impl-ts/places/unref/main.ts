/** A port that keeps no process alive is served at full speed while something else does. */
import { Port } from "millrace";
import { assertEquals, type Stage, within } from "../stage.ts";

/** At one turn of 256 messages for each second it would take far longer than a scenario may. */
const COUNT = 20_000;

export default async function main(stage: Stage): Promise<void> {
  const port = Port.create<number>();
  const worker = stage.start();
  worker.postMessage(port.handoff({ count: COUNT }));
  let heard = 0;
  port.unref();
  port.onmessage = ({ data }) => {
    assertEquals(data, heard);
    heard++;
  };
  // What bounds this is the one thing for which the process lives, and wakes it only at the end.
  assertEquals(await within(port.closed), undefined);
  assertEquals(heard, COUNT);
  assertEquals(await worker.result, COUNT);
  port.close();
}
