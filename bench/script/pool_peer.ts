/**
 * What the peers of `pool` have in common: workers that stay from one repetition to the next, and
 * as many tasks under way as the scenario says.
 *
 * @module
 */
import type { Scenario } from "../contract.ts";
import { type Order, PATIENCE_MS, type Peer, type Report } from "./peer.ts";
import type { Place } from "./place.ts";
import { NUMBER_COUNT, taskOf } from "./pool_task.ts";

/** Workers of each peer, but for those that say how many they have. */
export const WORKER_COUNT = 2;

/** A pool that has been started. */
export interface RunningPool {
  run(task: number): PromiseLike<unknown>;
  close(): unknown;
}

/** The pools of the scenario that is being played, by their peers. */
const kept = new Map<string, RunningPool>();
let keptFor = "";

/** A peer of `pool`, by what starts its workers. `nodeOnly` says why it runs in Node alone. */
export function poolPeer(
  start: (place: Place) => Promise<RunningPool> | RunningPool,
  nodeOnly?: string,
): Peer {
  return {
    decline({ name }, place) {
      if (name !== "pool") return "only tasks for pools";
      return place.name === "node" ? undefined : nodeOnly;
    },
    prepare: () => ({ a: { value: undefined }, b: { value: undefined } }),
    open() {
      throw new Error("Cannot open: the workers belong to the library");
    },
    async play({ peer, scenario }: Order, place): Promise<Report> {
      await closeOthers(scenario);
      const pool = kept.get(peer) ?? await start(place);
      kept.set(peer, pool);
      await playFor(pool, scenario, scenario.warmup_ms);
      return await playFor(pool, scenario, scenario.duration_ms);
    },
    alone: true,
  };
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

/** Bounds the start of a pool. */
export const START = { startTimeout: PATIENCE_MS };
