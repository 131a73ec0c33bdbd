/**
 * The peers of `pool`: workers that stay from one repetition to the next, and as many tasks under
 * way as the scenario says.
 *
 * @module
 */
import { fileURLToPath } from "node:url";
import { Pool } from "../../../impl-ts/src/pool/pool.ts";
import type { Scenario } from "../../contract.ts";
import { lonePeer, PATIENCE_MS, type Peer, type Report } from "../peer.ts";
import type { Place } from "../place.ts";
import { NUMBER_COUNT, taskOf } from "../pool_task.ts";

/** Workers of each peer, except of `millrace-pool-one`. */
const WORKER_COUNT = 2;

/** A pool that has been started. */
interface RunningPool {
  run(task: number): PromiseLike<unknown>;
  close(): unknown;
}

/** The pools of the scenario that is being played, by their peers. */
const kept = new Map<string, RunningPool>();
let keptFor = "";

/** A peer of `pool`, by what starts its workers; those of some libraries are Node's. */
function poolPeer(
  start: (place: Place) => Promise<RunningPool> | RunningPool,
  nodeOnly?: "needs the workers of Node",
): Peer {
  return lonePeer(
    ({ name }, place) => {
      if (name !== "pool") return "only tasks for pools";
      return place.name === "node" ? undefined : nodeOnly;
    },
    async ({ peer, scenario }, place) => {
      await closeOthers(scenario);
      const pool = kept.get(peer) ?? await start(place);
      kept.set(peer, pool);
      await playFor(pool, scenario, scenario.warmup_ms);
      return await playFor(pool, scenario, scenario.duration_ms);
    },
  );
}

/** Ends the pools of another scenario. */
async function closeOthers({ name, task_us }: Scenario): Promise<void> {
  const wanted = `${name} ${task_us}`;
  if (wanted === keptFor) return;
  keptFor = wanted;
  const pools = [...kept.values()];
  kept.clear();
  for (const pool of pools) await pool.close();
}

/** Has tasks under way for so many milliseconds, and waits until the last of them is done. */
async function playFor(
  pool: RunningPool,
  { task_us = 0, window = 1 }: Scenario,
  ms: number,
): Promise<Report> {
  let count = 0;
  const began = performance.now();
  const end = began + ms;
  const runOneByOne = async () => {
    do {
      const number = count++;
      const result = await pool.run(taskOf(task_us, number));
      if (result !== number % NUMBER_COUNT) throw new Error(`Task ${number} gave ${result}`);
    } while (performance.now() < end);
  };
  await Promise.all(Array.from({ length: window }, runOneByOne));
  return { count, elapsed_ns: Math.round((performance.now() - began) * 1e6) };
}

function startPool(place: Place, count: number): RunningPool {
  const url = new URL(place.moduleUrl("pool_worker"));
  return new Pool(url, { least: count, most: count, startTimeout: PATIENCE_MS });
}

/** With no option but the number of workers, each of which has so many tasks at a time. */
async function startPiscina(place: Place, concurrentTasksPerWorker: number): Promise<RunningPool> {
  const { Piscina } = await import("piscina");
  const pool = new Piscina({
    filename: fileURLToPath(place.moduleUrl("pool_task")),
    minThreads: WORKER_COUNT,
    maxThreads: WORKER_COUNT,
    concurrentTasksPerWorker,
  });
  return { run: (task) => pool.run(task), close: () => pool.destroy() };
}

async function startWorkerpool(place: Place): Promise<RunningPool> {
  const { pool: makePool } = await import("workerpool");
  const pool = makePool(fileURLToPath(place.moduleUrl("workerpool_worker")), {
    minWorkers: WORKER_COUNT,
    maxWorkers: WORKER_COUNT,
    workerType: "thread",
  });
  return {
    run: (task) => pool.exec("handleTask", [task]) as PromiseLike<unknown>,
    close: () => pool.terminate(),
  };
}

const NODE = "needs the workers of Node";

/** The peers of this file. */
export const peers = {
  "millrace-pool": poolPeer((place) => startPool(place, WORKER_COUNT)),
  "millrace-pool-one": poolPeer((place) => startPool(place, 1)),
  "piscina": poolPeer((place) => startPiscina(place, 1), NODE),
  // So that a worker never waits for the next.
  "piscina-many": poolPeer((place) => startPiscina(place, 16), NODE),
  "workerpool": poolPeer(startWorkerpool, NODE),
};
