import { Port } from "millrace";
import { within } from "../stage.ts";

export default async function worker(handoff: unknown): Promise<string> {
  using port = Port.from<number, string>(handoff);
  const brackets = new TransformStream<number, string>({
    transform: (n, to) => to.enqueue(`<${n}>`),
  });
  await within(port.readable.pipeThrough(brackets).pipeTo(port.writable));
  return "piped";
}
