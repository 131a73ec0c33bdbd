/** A browser's main thread must not block: what would have to says so, and the rest works. */
import { ForbiddenError, Port } from "millrace";
import { assertEquals, assertFails, WAIT, within } from "../stage.ts";

export default async function main(): Promise<void> {
  const here = Port.create<string>({ capacity: 256 });
  const error = await assertFails("wait.forbidden", () => here.read(WAIT));
  assertEquals(error instanceof ForbiddenError, true);
  while (here.tryWrite("full"));
  await assertFails("wait.forbidden", () => here.write("too much", WAIT));

  const there = Port.attach<string>(here.memory);
  assertEquals(there.read(WAIT), "full"); // There is one: no need to block.
  there.write("back", WAIT);
  assertEquals(here.read(WAIT), "back");

  // What waits for the event loop is allowed: promises, and events.
  while (there.tryRead() === "full");
  const reading = here.readAsync(WAIT);
  there.postMessage("by a promise");
  assertEquals(await reading, "by a promise");
  const hearing = new Promise((resolve) => here.onmessage = ({ data }) => resolve(data));
  there.postMessage("by an event");
  assertEquals(await within(hearing), "by an event");
  for (const port of [here, there]) port.close();
}
