/** A port without shared memory: its bytes travel in messages of the platform, both ways. */
import { PeerFailedError } from "millrace";
import { openStream } from "millrace/stream";
import { assertEquals, assertFails, type Stage, WAIT, within } from "../stage.ts";
import { streamsOver } from "./carrier.ts";

export default async function main(stage: Stage): Promise<void> {
  const { port1, port2 } = new MessageChannel();
  const worker = stage.start();
  worker.postMessage({ carrier: port2 }, [port2]);
  const port = await openStream<string, number>(streamsOver(port1), WAIT);
  for (let n = 0; n < 100; n++) port.postMessage(n);
  port.end();
  for (let n = 0; n < 100; n++) assertEquals(await port.readAsync(WAIT), `<${n}>`);
  // Longer than what either side takes in at once.
  assertEquals((await port.readAsync(WAIT))?.length, 1_000_000);
  assertEquals([await port.readAsync(WAIT), port.ended], [undefined, true]);
  port.close();
  assertEquals(await within(worker.result), "ended");
  port1.close();
  await assertFails("pipe.closed", () => port.writeAsync(1));

  // What is no such stream fails as one error class of the whole package.
  const readable = new ReadableStream<Uint8Array>({
    start: (to) => to.enqueue(new Uint8Array(64)),
  });
  const other = { readable, writable: new WritableStream<Uint8Array>() };
  const error = await assertFails("peer.failed", () => openStream(other, WAIT));
  assertEquals(error instanceof PeerFailedError, true);
}
