import { isPortHandoff, Port } from "millrace";
import { within } from "../stage.ts";
import type { Role } from "./main.ts";

export default async function worker(handoffs: unknown[]): Promise<string[]> {
  return await Promise.all(handoffs.map((handoff) => within(serve(handoff))));
}

async function serve(handoff: unknown): Promise<string> {
  if (!isPortHandoff<Role>(handoff)) throw new TypeError("This is no handoff");
  const { role } = handoff;
  await using port = Port.from<unknown>(handoff);
  let count = 0;
  for await (const value of port) {
    if (role === "echo") port.postMessage(value);
    count++;
  }
  if (role === "count") port.postMessage(count);
  return role;
}
