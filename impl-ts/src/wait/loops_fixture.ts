/** The other threads of `loops_worker_test.ts`, and what both ends do. */

import { random } from "../testing/fixture.ts";
import { MillraceError, Port, type PortHandoff } from "../mod.ts";
import { nextTask } from "./loop.ts";
import { statsOf } from "../pipe/ends.ts";

/** What a worker is asked to do with a port that it is handed. */
export interface Task {
  readonly seed: number;
  /** Messages each way. */
  readonly count: number;
}

/** What an end has seen. */
export interface Seen {
  /** How often it has slept. */
  readonly parks: number;
  /** How often a slice has ended with something there: each is a wake that was lost. */
  readonly late: number;
}

/** Sleeps in each wait. */
export const OPTIONS = { spin: 0 };

/**
 * Sends and gets so many numbers, by events: nearly each one that comes is answered at once, some
 * after a turn of the loop, some twice, and some not before nothing has come for a while; some are
 * read by a blocking call. It ends early where the port does.
 */
export async function converse(port: Port<number>, { seed, count }: Task): Promise<Seen> {
  const next = random(seed);
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
    if (how < 16) nextTask(post);
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
  const { parks, lateWakes: late } = statsOf(port);
  return { parks, late };
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
