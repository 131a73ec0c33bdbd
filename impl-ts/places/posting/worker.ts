import { type Memory, Port } from "millrace";
import { assertEquals, WAIT } from "../stage.ts";

export default function worker(memory: Memory): number {
  using port = Port.attach<number, string>(memory);
  let count = 0;
  for (let n; (n = port.read(WAIT)) !== undefined;) {
    assertEquals(n, count++);
    if (count % 1000 === 0) port.postMessage(`${count} in order`);
  }
  return count;
}
