/** The other threads of `supervise_test.ts`. Every wait in them is bounded. */

import { PeerFailedError } from "../error.ts";
import { unsliced } from "../testing/fixture.ts";
import { Port } from "../port/port.ts";
import type { Side } from "../port/options.ts";
import { holdLife } from "./supervise.ts";

/** What a worker is asked to do. */
export interface SuperviseTask {
  memory: SharedArrayBuffer;
  side: Side;
  lock?: string | undefined;
  /** Blocks in a read, throws an uncaught error when told to, ends itself, or stays. */
  then: "read" | "throw" | "close" | "stay";
}

const scope = globalThis as unknown as {
  onmessage: (event: MessageEvent<SuperviseTask>) => void;
  postMessage(value: unknown): void;
  close(): void;
};

scope.onmessage = async ({ data }) => {
  const { memory, side, lock, then } = data;
  if (lock !== undefined) await holdLife(lock);
  // Only a ring can end its read.
  const port = Port.attach(memory, { side, spin: 0, mechanism: unsliced() });
  scope.postMessage("attached");
  if (then === "throw") scope.onmessage = fail;
  if (then === "close") scope.close();
  if (then !== "read") return;
  try {
    port.read({ timeout: 10_000 });
  } catch (error) {
    const { code, reason } = error as PeerFailedError;
    scope.postMessage({ code, reason, at: performance.timeOrigin + performance.now() });
  }
  scope.close();
};

function fail(): never {
  throw new Error("broken");
}
