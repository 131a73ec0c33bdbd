/** Our pool, of two workers. @module */
import { Pool } from "../../../impl-ts/src/pool/pool.ts";
import type { Place } from "../place.ts";
import { poolPeer, type RunningPool, START, WORKER_COUNT } from "../pool_peer.ts";

export default poolPeer((place) => startPool(place, WORKER_COUNT));

/** Starts our pool with so many workers. */
export function startPool(place: Place, count: number): RunningPool {
  const url = new URL(place.moduleUrl("pool_worker"));
  return new Pool(url, { least: count, most: count, ...START });
}
