/** The page in Chromium: what hosts it calls `play` for each request. @module */
import type { Answer, Request } from "../contract.ts";
import { Stage } from "./driver.ts";
import { pagePlace } from "./page_place.ts";
import { PEER_NAMES } from "./peers.ts";

const place = pagePlace();
const stage = new Stage(place);

Object.assign(globalThis, {
  driver: { version: place.version, peers: PEER_NAMES },
  play: (request: Request): Promise<Answer> => stage.play(request),
});
