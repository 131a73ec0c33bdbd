/**
 * Node, from the bundles that the runner has made in one folder.
 *
 * @module
 */
import { readFile } from "node:fs/promises";
import process from "node:process";
import { type Transferable, Worker } from "node:worker_threads";
import type { Gear, Order, Report } from "./peer.ts";
import type { Place } from "./place.ts";

/** What the runner says to a driver in Node, by the environment. */
export const NODE_ENVIRONMENT = {
  wasm: "MILLRACE_BENCH_WASM",
  sabMessagePort: "MILLRACE_SAB_MESSAGE_PORT_ENTRY",
} as const;

/** Makes the place. `here` is the address of the bundle that calls. */
export function nodePlace(here: string): Place {
  const sabMessagePort = process.env[NODE_ENVIRONMENT.sabMessagePort];
  return {
    name: "node",
    version: process.versions.node,
    sabMessagePort,
    startWorker: (order, gear) => startWorker(new URL("./node_worker.mjs", here), order, gear),
    moduleUrl: (name) =>
      name === "sab-message-port" ? sabMessagePort as string : new URL(`./${name}.mjs`, here).href,
    readWasm: async (name) =>
      new Uint8Array(await readFile(`${process.env[NODE_ENVIRONMENT.wasm]}/${name}.wasm`)),
    heapUsed: () => process.memoryUsage().heapUsed,
    processorTime: () => {
      const { user, system } = process.cpuUsage();
      return (user + system) / 1000;
    },
  };
}

function startWorker(url: URL, order: Order, { transfer = [] }: Gear): Promise<Report> {
  const worker = new Worker(url, {
    workerData: order,
    transferList: transfer as unknown as Transferable[],
  });
  return new Promise((resolve, reject) => {
    worker.once("message", resolve);
    worker.once("error", (error) => reject(new Error(`In role ${order.role}: ${error}`)));
    worker.once("exit", (code) => reject(new Error(`Role ${order.role} ended with ${code}`)));
  });
}
