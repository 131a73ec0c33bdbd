/** `piscina` with 16 tasks of a worker at a time, so that it never waits for the next. @module */
import { poolPeer } from "../pool_peer.ts";
import { startPiscina } from "./piscina.ts";

export default poolPeer((place) => startPiscina(place, 16), "needs the workers of Node");
