/**
 * Node, from the bundles that the runner has made in one folder.
 *
 * @module
 */
import { execFile } from "node:child_process";
import { readFile } from "node:fs/promises";
import process from "node:process";
import { fileURLToPath } from "node:url";
import { type Transferable, Worker } from "node:worker_threads";
import type { Gear, Order, Report } from "./peer.ts";
import type { Place, Player, Starter } from "./place.ts";
import type { StartOrder } from "./start_program.ts";
import type { StartNote } from "./start_worker.ts";
import type { Note } from "./web_worker.ts";

/** What the runner says to a driver in Node, by the environment. */
export const NODE_ENVIRONMENT = {
  wasm: "MILLRACE_BENCH_WASM",
  package: "MILLRACE_BENCH_PACKAGE",
  sabMessagePort: "MILLRACE_SAB_MESSAGE_PORT_ENTRY",
} as const;

/** Makes the place. `here` is the address of the bundle that calls. */
export function nodePlace(here: string): Place {
  const sabMessagePort = process.env[NODE_ENVIRONMENT.sabMessagePort];
  return {
    name: "node",
    version: process.versions.node,
    sabMessagePort,
    startPlayer: () => startPlayer(new URL("./node_worker.mjs", here)),
    startStarter: () => startStarter(new URL("./start_worker.mjs", here)),
    startProcess: (order, ms) => startProcess(new URL("./start_main.mjs", here), order, ms),
    packageUrl: (file) => new URL(file, `file://${process.env[NODE_ENVIRONMENT.package]}/`).href,
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

function startPlayer(url: URL): Player {
  const worker = new Worker(url);
  let fail = (_why: string) => {};
  worker.on("error", (error) => fail(String(error)));
  worker.on("exit", (code) => fail(`it ended with ${code}`));
  return {
    play: (order: Order, { transfer = [] }: Gear) =>
      new Promise<Report>((resolve, reject) => {
        fail = (why) => reject(new Error(`In role ${order.role}: ${why}`));
        worker.once("message", (note: Note) => {
          if ("report" in note) resolve(note.report);
          else fail(note.error);
        });
        worker.postMessage(order, transfer as unknown as Transferable[]);
      }),
    close: () => void worker.terminate(),
  };
}

function startStarter(url: URL): Starter {
  const worker = new Worker(url);
  return {
    run: (order, transfer, ms) =>
      new Promise((resolve, reject) => {
        const fail = (why: string) => reject(new Error(`In ${order.what}: ${why}`));
        const timer = setTimeout(() => fail(`nothing came for ${ms} ms`), ms);
        worker.on("error", (error) => fail(String(error)));
        worker.once("message", (note: StartNote) => {
          clearTimeout(timer);
          if ("error" in note) fail(note.error);
          else resolve(note);
        });
        worker.postMessage(order, transfer as unknown as Transferable[]);
      }),
    close: () => void worker.terminate(),
  };
}

function startProcess(url: URL, order: StartOrder, ms: number): Promise<Record<string, number>> {
  const args = [fileURLToPath(url), JSON.stringify(order)];
  return new Promise((resolve, reject) => {
    execFile(process.execPath, args, { timeout: ms }, (error, stdout) => {
      if (error === null) resolve(JSON.parse(stdout));
      else reject(new Error(`In ${order.what}: ${error.message}`));
    });
  });
}
