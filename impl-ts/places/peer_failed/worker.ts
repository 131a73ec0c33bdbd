import { type Memory, Port } from "millrace";
import { WAIT } from "../stage.ts";

export default function worker(memory: Memory): void {
  const port = Port.attach(memory);
  port.write("blocked from now on", WAIT);
  port.read(WAIT);
}
