/** Our pool, of one worker. @module */
import { poolPeer } from "../pool_peer.ts";
import { startPool } from "./millrace_pool.ts";

export default poolPeer((place) => startPool(place, 1));
