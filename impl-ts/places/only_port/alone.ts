import { isPortHandoff, Port, receivePort } from "millrace";
import type { Way } from "./main.ts";

/** What Node and Bun have besides. */
interface Scope {
  process?: { getBuiltinModule?(name: string): { workerData: unknown } | undefined };
  Bun?: { gc(isNow: boolean): void };
}

const { process, Bun } = globalThis as Scope;
const data = process?.getBuiltinModule?.("node:worker_threads")?.workerData;
if (isPortHandoff(data)) void use(Port.from<number | Way, number>(data));
else void receivePort<number | Way, number>().then(use);

async function use(port: Port<number | Way, number>): Promise<void> {
  const way = await port.readAsync();
  if (way === "listener") {
    port.onmessage = ({ data }) => answer(port, data);
    port.onclose = () => port.close();
  } else {
    for await (const n of port) answer(port, n);
    port.close();
  }
}

function answer(port: Port<number | Way, number>, n: number | Way): void {
  port.postMessage(Number(n));
  Bun?.gc(true); // Bun ends the worker only once what should keep it is collected
}
