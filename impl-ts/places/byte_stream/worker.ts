import { openStream } from "millrace/stream";
import { WAIT } from "../stage.ts";
import { streamsOver } from "./carrier.ts";

export default async function worker({ carrier }: { carrier: MessagePort }): Promise<string> {
  const streams = streamsOver(carrier);
  const port = await openStream<number, string>(streams, WAIT);
  for (let n; (n = await port.readAsync(WAIT)) !== undefined;) port.postMessage(`<${n}>`);
  port.postMessage("x".repeat(1_000_000));
  await port.endAsync(WAIT);
  port.close();
  // After `close`, the rest is still sent, but not if the thread ends first.
  await streams.over;
  return "ended";
}
