/** `piscina`: a pool of Node's workers, made with no option but their number. @module */
import { Piscina } from "piscina";
import { fileURLToPath } from "node:url";
import type { Place } from "../place.ts";
import { poolPeer, type RunningPool, WORKER_COUNT } from "../pool_peer.ts";

export default poolPeer((place) => startPiscina(place, 1), "needs the workers of Node");

/** Starts it; a worker has so many tasks at a time. */
export function startPiscina(place: Place, concurrentTasksPerWorker: number): RunningPool {
  const pool = new Piscina({
    filename: fileURLToPath(place.moduleUrl("piscina_worker")),
    minThreads: WORKER_COUNT,
    maxThreads: WORKER_COUNT,
    concurrentTasksPerWorker,
  });
  return { run: (task) => pool.run(task), close: () => pool.destroy() };
}
