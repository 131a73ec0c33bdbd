import { type Memory, Port } from "millrace";
import { WAIT } from "../stage.ts";

export default function worker(memory: Memory): void {
  using port = Port.attach<string, string[]>(memory);
  const read: string[] = [];
  for (let text; (text = port.read(WAIT)) !== undefined;) {
    if (text[0] !== "x") read.push(text);
  }
  port.write(read, WAIT);
  port.end();
}
