/**
 * The stage where workers are those of the web: in browsers, and in Deno.
 *
 * @module
 */
import type { Actor, MainPart, Stage, WorkerPart } from "./stage.ts";

/** What a worker says when its function is done. */
type Report = { value: unknown } | { error: string };

/** The half of a worker's global scope that is used here; its types and a page's do not mix. */
interface WorkerScope {
  onmessage: ((event: MessageEvent) => void) | null;
  postMessage(message: Report): void;
  close(): void;
}

/** Where the other parts of a scenario are. */
export interface Parts {
  worker: string | URL;
  alone: string | URL;
  options?: WorkerOptions;
  processor?: string;
}

/** Plays the main part, and says what went wrong, or `"played"`. */
export async function playMain(
  main: MainPart,
  { worker, alone, options, processor }: Parts,
): Promise<string> {
  const stage: Stage = {
    start: () => startWorker(new Worker(worker, options)),
    startAlone: (data) => data === undefined ? new Worker(alone, options) : undefined,
    ...(processor !== undefined && { processor }),
  };
  try {
    await main(stage);
    return "played";
  } catch (error) {
    return textOf(error);
  }
}

/**
 * Plays the worker's part in the worker that imports this. It listens at once, while the part may
 * still be on its way: a worker of Deno loses what comes before it listens.
 */
export function playWorker<Given>(part: WorkerPart<Given> | Promise<WorkerPart<Given>>): void {
  const scope = globalThis as unknown as WorkerScope;
  scope.onmessage = async ({ data }) => {
    scope.onmessage = null;
    try {
      scope.postMessage({ value: await (await part)(data) });
    } catch (error) {
      scope.postMessage({ error: textOf(error) });
    }
    scope.close();
  };
}

function startWorker(worker: Worker): Actor {
  const result = new Promise((resolve, reject) => {
    worker.onmessage = ({ data }: MessageEvent<Report>) => {
      if ("error" in data) reject(new Error(`In the worker: ${data.error}`));
      else resolve(data.value);
    };
    worker.onerror = (event) => {
      event.preventDefault();
      reject(new Error(`The worker failed: ${event.message}`));
    };
  });
  return {
    result,
    postMessage: (message, transfer = []) => worker.postMessage(message, transfer),
    terminate: () => worker.terminate(),
    worker,
  };
}

function textOf(error: unknown): string {
  return error instanceof Error ? error.stack ?? String(error) : String(error);
}
