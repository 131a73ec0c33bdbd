/**
 * The stage in Node, whose workers are those of `node:worker_threads`.
 *
 * @module
 */
import { parentPort, type Transferable, Worker } from "node:worker_threads";
import process from "node:process";
import type { Actor, MainPart, Stage, WorkerPart } from "./stage.ts";

/** Plays the main part, prints `played`, and ends the process: with 1 if it failed. */
export async function playMain(
  main: MainPart,
  workerPath: string,
  alonePath: string,
): Promise<void> {
  const stage: Stage = {
    start: () => startWorker(new Worker(workerPath)),
    startAlone: (workerData) => new Worker(alonePath, { workerData }),
  };
  try {
    await main(stage);
  } catch (error) {
    console.error(error);
    process.exit(1);
  }
  // Said, because a process whose loop has run empty ends with 0 too, in the middle of an await.
  console.log("played");
  process.exit(0);
}

/** Plays the worker's part in the worker that imports this. What it throws ends the worker. */
export function playWorker<Given>(part: WorkerPart<Given>): void {
  parentPort!.once("message", async (given) => parentPort!.postMessage(await part(given)));
}

function startWorker(worker: Worker): Actor {
  const result = new Promise((resolve, reject) => {
    worker.once("message", resolve);
    worker.once("error", reject);
  });
  return {
    result,
    postMessage: (message, transfer = []) =>
      worker.postMessage(message, transfer as unknown as Transferable[]),
    terminate: () => void worker.terminate(),
    worker,
  };
}
