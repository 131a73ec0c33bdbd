import { type Memory, Port } from "millrace";
import { assertEquals, WAIT } from "../stage.ts";

const SHORT = { timeout: 20 };

export default function worker(memory: Memory): void {
  const port = Port.attach<string>(memory);
  let value;
  while ((value = port.read(WAIT)) === "full");
  assertEquals(value, "last");
  // The main thread waits for a word from here: only the timeout can end this.
  assertEquals([port.read(SHORT), port.ended], [undefined, false]);
  port.write("nothing came in time", WAIT);
  assertEquals([port.read(WAIT), port.ended], [undefined, true]);
  port.close();
}
