/** The driver in Deno: lines of JSON in and out. @module */
import { type Hello, readLines, type Request, say } from "../contract.ts";
import { denoPlace } from "./deno_place.ts";
import { Stage } from "./driver.ts";
import { PEER_NAMES } from "./peers.ts";

const place = denoPlace(Deno.env.get("MILLRACE_SAB_MESSAGE_PORT"));
const stage = new Stage(place);

const { name, version } = place;
say({ driver: { name, version, place: name, peers: PEER_NAMES } } satisfies Hello);
for await (const line of readLines(Deno.stdin.readable)) {
  say(await stage.play(JSON.parse(line) as Request));
}
// A worker that still blocks would keep the process.
Deno.exit(0);
