/** A worker of the driver in Node: it plays the role with which it was started. @module */
import process from "node:process";
import { parentPort, workerData } from "node:worker_threads";
import { nodePlace } from "./node_place.ts";
import { playRole } from "./role.ts";

parentPort!.postMessage(await playRole(workerData, nodePlace(import.meta.url)));
process.exit(0);
