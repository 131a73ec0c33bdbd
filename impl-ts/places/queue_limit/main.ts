/** A queue with a limit: what is posted beyond it is refused, and what was taken all arrives. */
import { OverflowError, Port } from "millrace";
import { assertEquals, assertFails, type Stage, WAIT, within } from "../stage.ts";

const LIMIT = 4;
/** As large as two of them fill the ring. */
const TEXT = "x".repeat(400);

export default async function main(stage: Stage): Promise<void> {
  const port = Port.create<string[], string>({
    capacity: 1024,
    queueLimit: LIMIT,
    overflow: "reject",
  });
  for (const text of [TEXT, "x"]) while (port.tryWrite(text));
  const posts = Array.from({ length: LIMIT }, (_, n) => port.postMessage(`post ${n}`));
  const error = await assertFails("port.overflow", () => port.postMessage("one too many"));
  assertEquals(error instanceof OverflowError, true);

  const worker = stage.start();
  worker.postMessage(port.memory);
  await within(Promise.all(posts));
  await within(port.postMessage("there is room again"));
  port.end();
  const wanted = [...posts.map((_, n) => `post ${n}`), "there is room again"];
  assertEquals(await port.readAsync(WAIT), wanted);
  await worker.result;
  port.close();
}
