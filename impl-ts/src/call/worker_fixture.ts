/** The other threads of `worker_test.ts`. Every wait in them is bounded. */

import { remote, serve } from "./call.ts";
import { Port, type PortHandoff } from "../mod.ts";

/** What the other side of a test serves, and what it is served. */
export interface Pair {
  add(a: number, b: number): number;
  /** Calls down so many times: each side calls the other. */
  nest(depth: number): number;
  nestLater(depth: number): Promise<number>;
  stop(): void;
}

/** How a worker works: blocked in reads, or on its event loop. */
export interface Task {
  mode: "blocking" | "events";
}

const WAIT = { timeout: 60_000 };
const scope = globalThis as unknown as {
  onmessage: (event: MessageEvent<PortHandoff & Task>) => void;
  close(): void;
};

/** What both sides serve. */
export function pairOf(port: Port<unknown>): Omit<Pair, "stop"> {
  const far = remote<Pair>(port).with(WAIT);
  return {
    add: (a, b) => a + b,
    nest: (depth) => depth === 0 ? 0 : 1 + far.sync.nest(depth - 1),
    nestLater: async (depth) => depth === 0 ? 0 : 1 + await far.nestLater(depth - 1),
  };
}

scope.onmessage = ({ data }) => {
  const port = Port.from<unknown>(data);
  let isOver = false;
  serve(port, {
    ...pairOf(port),
    stop() {
      isOver = true;
    },
  });
  if (data.mode === "events") {
    port.closed.then(() => scope.close());
    return;
  }
  while (!isOver) if (port.read({ timeout: 100 }) === undefined && port.ended) break;
  port.close();
  scope.close();
};
