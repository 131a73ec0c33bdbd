/**
 * Gives a worker of Node what those of the web have, for the script that is loaded after it.
 *
 * @module
 */

import { parentPort } from "node:worker_threads";
import { scope } from "../../../tools/worker_scope.ts";

scope.postMessage = (message) => parentPort!.postMessage(message);
parentPort!.on("message", (data) => scope.onmessage!({ data } as MessageEvent));
