/** A worker that has just started, of the web or of Node. @module */
import { scope } from "../../tools/worker_scope.ts";
import { runStart, type StartOrder, type StartReport } from "./start_program.ts";

/** What such a worker says: what it has measured, or what went wrong. */
export type StartNote = StartReport | { readonly error: string };

/** How messages come and go: those of Node wait for who listens. */
const { listen, post } = "process" in globalThis && !("Deno" in globalThis)
  ? await ofNode()
  : ofWeb();

interface Ways {
  listen(take: (order: StartOrder) => void): void;
  post(note: StartNote, transfer: readonly Transferable[]): void;
}

async function ofNode(): Promise<Ways> {
  const { parentPort } = await import("node:worker_threads");
  return {
    listen: (take) => void parentPort!.on("message", take),
    post: (note, transfer) => parentPort!.postMessage(note, transfer as never),
  };
}

function ofWeb(): Ways {
  return {
    listen: (take) => scope.onmessage = ({ data }) => take(data),
    post: (note, transfer) =>
      (scope.postMessage as (note: StartNote, transfer: readonly Transferable[]) => void)
        .call(globalThis, note, transfer),
  };
}

listen(async (order) => {
  try {
    const { times, handoff, transfer = [] } = await runStart(order);
    post({ times, handoff }, transfer);
  } catch (error) {
    post({ error: String(error) }, []);
  }
});
