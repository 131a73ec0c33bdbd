import { Port } from "millrace";
import { readableOf, writableOf } from "millrace/streams";
import { within } from "../stage.ts";

export default async function worker(handoff: unknown): Promise<string> {
  using port = Port.from<number, string>(handoff);
  const brackets = new TransformStream<number, string>({
    transform: (n, to) => to.enqueue(`<${n}>`),
  });
  await within(readableOf(port).pipeThrough(brackets).pipeTo(writableOf(port)));
  return "piped";
}
