/**
 * A worker has nothing but a port: no listener to its parent's messages, no timer. The port keeps
 * it alive, whether it has come as the worker's data or by a message, and however it is read.
 */
import { Port } from "millrace";
import { assertEquals, type Stage, WAIT, within } from "../stage.ts";

/** How the worker reads. */
export type Way = "listener" | "loop";

const COUNT = 200;

export default async function main(stage: Stage): Promise<void> {
  for (const way of ["listener", "loop"] satisfies Way[]) {
    for (const isData of [false, true]) {
      const port = Port.create<number, number | Way>();
      const worker = stage.startAlone(isData ? port.handoff() : undefined);
      if (worker === undefined) continue;
      if (!isData) worker.postMessage(port.handoff());
      port.postMessage(way);
      for (let n = 0; n < COUNT; n++) {
        port.postMessage(n);
        assertEquals(await port.readAsync(WAIT), n);
        await pause();
      }
      port.end();
      assertEquals((await within(port.closed))?.code, "peer.closed"); // by its own last call
      port.close();
      worker.terminate();
    }
  }
}

/** Lets the worker fall asleep. */
function pause(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, 1));
}
