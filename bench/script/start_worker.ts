/** A worker of the web that has just started. @module */
import { scope } from "../../tools/worker_scope.ts";
import { runStart, type StartOrder, type StartReport } from "./start_program.ts";

/** What such a worker says: what it has measured, or what went wrong. */
export type StartNote = StartReport | { readonly error: string };

const { postMessage } = globalThis as unknown as {
  postMessage(note: StartNote, transfer: readonly Transferable[]): void;
};

scope.onmessage = async ({ data }: MessageEvent<StartOrder>) => {
  try {
    const report = await runStart(data);
    const { times, handoff } = report;
    postMessage({ times, handoff }, [...report.transfer ?? []]);
  } catch (error) {
    postMessage({ error: String(error) }, []);
  }
};
