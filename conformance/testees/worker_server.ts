/**
 * Speaks the testee's side in a worker: commands and replies as objects, and memory beside them.
 *
 * @module
 */

import { scope } from "../../tools/worker_scope.ts";
import { type Adapter, Server, type Shared } from "./server.ts";

/** Answers what the worker is told. What it is told before, `{ setup }`, goes to `prepare`. */
export function serveWorker(adapter: Adapter, prepare?: (setup: unknown) => void): void {
  const server = new Server(adapter);
  scope.onmessage = ({ data }) => {
    if ("setup" in data) return prepare?.(data.setup);
    if ("buffer" in data) return server.share(data as Shared);
    server.answer(data).then((reply) => scope.postMessage(reply), (error) => {
      // An error in a promise would not end the worker's turn in every host; this does.
      setTimeout(() => {
        throw error;
      });
    });
  };
  scope.postMessage({ ready: true });
}
