/**
 * The script of a worker comes without the two headers, into a page that has them: the browser does
 * not start it, and whoever supervises it hears of that.
 */
import { MillraceError, PeerFailedError, Port } from "millrace";
import { supervise } from "millrace/supervise";
import { assertEquals, assertFails, type Stage, WAIT, within } from "../stage.ts";

export default async function main(stage: Stage): Promise<void> {
  assertEquals(typeof globalThis.SharedArrayBuffer, "function"); // the page has the headers
  const port = Port.create<string>();
  const worker = stage.start();
  worker.result.catch(() => {}); // it never comes to one
  using supervision = supervise(worker.worker, port);
  worker.postMessage(port.memory);
  const error = await assertFails("peer.failed", () => port.readAsync(WAIT));
  assertEquals(error instanceof PeerFailedError && error.reason, "peer.terminated");
  const cause = String((error as MillraceError).cause);
  if (!cause.includes("could not be loaded")) throw new Error(`Another cause: ${cause}`);
  assertEquals((await within(supervision.failed)).signal, "error");
  port.close();
}
