import { type Memory, Port } from "millrace";
import { WAIT } from "../stage.ts";
import { POINTS } from "./points.ts";

export default function worker(memory: Memory): number {
  using port = Port.attach(memory, { codec: POINTS });
  let count = 0;
  for (let numbers; (numbers = port.read(WAIT)) !== undefined; count++) {
    port.write(numbers.reverse(), WAIT);
  }
  port.end();
  return count;
}
