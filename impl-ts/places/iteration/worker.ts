import { Port } from "millrace";
import { writeMany } from "millrace/many";
import { WAIT } from "../stage.ts";

export default function worker(handoff: unknown): string | undefined {
  using port = Port.from<string, number>(handoff);
  writeMany(port, [1, 2, 3, 4, 5], WAIT);
  const told = port.read(WAIT);
  port.write(6, WAIT);
  return told;
}
