/** A worker of Node that has just started. @module */
import { parentPort, type Transferable } from "node:worker_threads";
import { runStart, type StartOrder } from "./start_program.ts";

parentPort!.on("message", async (order: StartOrder) => {
  try {
    const { times, handoff, transfer = [] } = await runStart(order);
    parentPort!.postMessage({ times, handoff }, transfer as unknown as Transferable[]);
  } catch (error) {
    parentPort!.postMessage({ error: String(error) });
  }
});
