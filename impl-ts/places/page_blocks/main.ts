/** A browser's main thread must not block: what would have to says so, and the rest works. */
import { ForbiddenError, Port } from "millrace";
import { assertEquals, assertFails, WAIT } from "../stage.ts";

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
}
