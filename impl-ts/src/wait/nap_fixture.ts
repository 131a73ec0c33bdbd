/** The other threads of `nap_worker_test.ts`, and what both ends do. */

import { random } from "../testing/fixture.ts";
import { agentMechanism, MillraceError, Port, type PortHandoff } from "../mod.ts";
import { nextTask } from "./task.ts";

/** What a worker is asked to do with a port that it is handed. */
export interface Task {
  readonly seed: number;
  /** Messages each way. */
  readonly count: number;
}

/** What an end has seen. */
export interface Seen {
  /** Naps that it has taken. */
  readonly naps: number;
  /** How often a slice has ended with something there: each is a wake that was lost. */
  readonly late: number;
}

let naps = 0;
const agent = agentMechanism();
/** Longer than a busy machine keeps an answerer waiting, mostly. */
const NAP_MS = 20;
/** Naps on any number of processors, and counts the naps of the thread. */
export const OPTIONS = {
  spin: 0,
  nap: NAP_MS,
  mechanism: {
    ...agent,
    blocks: true,
    sleep(words: Int32Array, index: number, expected: number, ms: number): boolean | void {
      if (ms === NAP_MS) naps++;
      return agent.sleep(words, index, expected, ms);
    },
  },
};

/**
 * Sends and gets so many numbers, by events: nearly each one that comes is answered at once, some
 * behind a turn of the loop, some twice, and some not before nothing has come for a while; some are
 * read by a blocking call. It ends early where the port does.
 */
export async function converse(port: Port<number>, { seed, count }: Task): Promise<Seen> {
  const next = random(seed);
  const before = naps;
  let sent = 0;
  let got = 0;
  const take = (value: number | undefined) => {
    if (value === undefined) return;
    if (value !== got++) throw new Error(`Expected ${got - 1}, got ${value}`);
  };
  const post = () => {
    if (sent < count) port.postMessage(sent++);
  };
  port.onmessage = ({ data }) => {
    take(data);
    const how = next() % 1024;
    if (how === 0) return;
    if (how < 16) nextTask(true).then(post);
    else post();
    if (how >= 1016) post();
    if (how >= 1008) take(read(port, how % 2));
  };
  let isOver = false;
  port.closed.then(() => isOver = true);
  while ((sent < count || got < count) && !isOver) {
    const so = got;
    await new Promise((resolve) => setTimeout(resolve, next() % 8));
    if (got === so) post();
  }
  return { naps: naps - before, late: port.stats.lateWakes };
}

/** Reads by a blocking call; that the port has ended is found by others. */
function read(port: Port<number>, timeout: number): number | undefined {
  try {
    return port.read({ timeout });
  } catch (error) {
    if (error instanceof MillraceError) return undefined;
    throw error;
  }
}

const scope = globalThis as unknown as {
  WorkerGlobalScope?: unknown;
  onmessage: (event: MessageEvent<PortHandoff & Task>) => void;
  postMessage(value: unknown): void;
};

if (scope.WorkerGlobalScope !== undefined) {
  scope.onmessage = async ({ data }) => {
    const port = Port.from<number>(data, OPTIONS);
    scope.postMessage(await converse(port, data));
  };
}
