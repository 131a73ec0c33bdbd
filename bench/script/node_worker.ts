/** A worker of the driver in Node: it plays the roles that are posted to it. @module */
import { parentPort } from "node:worker_threads";
import { nodePlace } from "./node_place.ts";
import type { Order } from "./peer.ts";
import { playRole } from "./role.ts";
import type { Note } from "./web_worker.ts";

const place = nodePlace(import.meta.url);

parentPort!.on("message", async (order: Order) => {
  let note: Note;
  try {
    note = { report: await playRole(order, place) };
  } catch (error) {
    note = { error: error instanceof Error ? error.stack ?? error.message : String(error) };
  }
  parentPort!.postMessage(note);
});
