/** The driver in Node: lines of JSON in and out. @module */
import process from "node:process";
import { createInterface } from "node:readline";
import type { Hello, Request } from "../contract.ts";
import { Stage } from "./driver.ts";
import { nodePlace } from "./node_place.ts";
import { PEER_NAMES } from "./peers.ts";

const place = nodePlace(import.meta.url);
const stage = new Stage(place);
const say = (line: unknown) => void process.stdout.write(`${JSON.stringify(line)}\n`);

const { name, version } = place;
say({ driver: { name, version, place: name, peers: PEER_NAMES } } satisfies Hello);
for await (const line of createInterface({ input: process.stdin })) {
  say(await stage.play(JSON.parse(line) as Request));
}
process.exit(0);
