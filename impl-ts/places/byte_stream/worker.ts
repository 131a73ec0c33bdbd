import { openStream } from "millrace/stream";
import { WAIT } from "../stage.ts";
import { streamsOver } from "./carrier.ts";

export default async function worker({ carrier }: { carrier: MessagePort }): Promise<string> {
  const port = await openStream<number, string>(streamsOver(carrier), WAIT);
  for (let n; (n = await port.readAsync(WAIT)) !== undefined;) port.postMessage(`<${n}>`);
  port.postMessage("x".repeat(1_000_000));
  await port.endAsync(WAIT);
  port.close();
  return "ended";
}
