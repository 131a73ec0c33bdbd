import { Port } from "millrace";
import { assertEquals, within } from "../stage.ts";

export default async function worker(handoff: unknown): Promise<unknown[]> {
  const port = Port.from<number>(handoff);
  const heard: unknown[] = [];
  port.onmessage = ({ data }) => {
    heard.push(data);
    port.postMessage(10 * data);
  };
  port.addEventListener("close", ({ type }) => heard.push(type));
  assertEquals(await within(port.closed), undefined);
  await within(port[Symbol.asyncDispose]());
  return heard;
}
