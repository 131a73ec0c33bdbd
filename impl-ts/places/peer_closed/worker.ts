import { type Memory, Port } from "millrace";
import { assertFails, WAIT } from "../stage.ts";

export default async function worker([first, second]: [Memory, Memory]): Promise<string> {
  const closing = Port.attach(first);
  closing.write("bye", WAIT);
  closing.close();
  const waiting = Port.attach(second);
  waiting.write("waiting", WAIT);
  const { code } = await assertFails("peer.closed", () => waiting.read(WAIT));
  return code;
}
