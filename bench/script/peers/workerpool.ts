/** `workerpool`: a pool of Node's workers. @module */
import { pool as makePool } from "workerpool";
import { fileURLToPath } from "node:url";
import { poolPeer, WORKER_COUNT } from "../pool_peer.ts";

export default poolPeer((place) => {
  const pool = makePool(fileURLToPath(place.moduleUrl("workerpool_worker")), {
    minWorkers: WORKER_COUNT,
    maxWorkers: WORKER_COUNT,
    workerType: "thread",
  });
  return {
    run: (task) => pool.exec("handleTask", [task]) as PromiseLike<unknown>,
    close: () => pool.terminate(),
  };
}, "needs the workers of Node");
