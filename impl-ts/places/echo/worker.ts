import { type Memory, Port } from "millrace";
import { WAIT } from "../stage.ts";

export default function worker(memory: Memory): number {
  const port = Port.attach(memory);
  let count = 0;
  for (let value; (value = port.read(WAIT)) !== undefined; count++) port.write(value, WAIT);
  port.end();
  port.close();
  return count;
}
