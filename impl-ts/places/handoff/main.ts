/** One worker gets several ports at once, and tells them apart by what their handoffs say. */
import { Port, type PortHandoff } from "millrace";
import { assertEquals, type Stage, WAIT, within } from "../stage.ts";

/** What this scenario adds to a handoff. */
export interface Role {
  role: "echo" | "count";
}

export default async function main(stage: Stage): Promise<void> {
  const echo = Port.create<string>();
  // Made as side b: the worker then gets a.
  const count = Port.create<number, string>({ side: "b" });
  const handoffs: (PortHandoff & Role)[] = [
    count.handoff({ role: "count" }),
    echo.handoff({ role: "echo" }),
  ];
  assertEquals(handoffs.map(({ endpoint }) => endpoint), [0, 1]);
  // Sent before the other side is there.
  echo.postMessage("early");
  const worker = stage.start();
  // A port itself is refused, in place of arriving as something else.
  let refused = "";
  try {
    worker.postMessage(echo);
  } catch (error) {
    refused = (error as Error).name;
  }
  assertEquals(refused, "DataCloneError");
  worker.postMessage(handoffs);
  assertEquals(await echo.readAsync(WAIT), "early");
  for (const word of ["one", "two", "three"]) count.postMessage(word);
  count.end();
  assertEquals(await count.readAsync(WAIT), 3);
  echo.end();
  assertEquals(await echo.readAsync(WAIT), undefined);
  assertEquals(await within(worker.result), ["count", "echo"]);
  for (const port of [echo, count]) port.close();
}
