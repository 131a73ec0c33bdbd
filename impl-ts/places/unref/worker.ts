import { Port } from "millrace";
import { WAIT } from "../stage.ts";

export default function worker(handoff: { count: number }): number {
  using port = Port.from<never, number>(handoff);
  for (let n = 0; n < handoff.count; n++) port.write(n, WAIT);
  port.end();
  return handoff.count;
}
