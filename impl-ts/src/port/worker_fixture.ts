/** The other threads of `handoff_test.ts`. Every wait in them is bounded. */

import { Port, type PortHandoff } from "../mod.ts";
import { readableOf, writableOf } from "../more/streams.ts";
import { isPortHandoff } from "./options.ts";

const WAIT = { timeout: 60_000 };

/** What a worker is asked to do with a port that it is handed. */
export interface Task {
  mode: "events" | "blocking" | "streams" | "early";
}

const scope = globalThis as unknown as {
  onmessage: (event: MessageEvent<unknown[]>) => void;
  postMessage(value: unknown): void;
  close(): void;
};

scope.onmessage = ({ data }) => {
  Promise.all(data.map(serve)).then(() => scope.close());
};

async function serve(handoff: unknown): Promise<void> {
  if (!isPortHandoff<Task>(handoff)) throw new TypeError("no handoff");
  const port: Port<unknown> = Port.from(handoff);
  if (handoff.mode === "events") {
    port.onmessage = ({ data }) => port.postMessage(data);
    await port.closed;
  } else if (handoff.mode === "streams") {
    await readableOf(port).pipeTo(writableOf(port));
  } else if (handoff.mode === "early") {
    port.postMessage("first");
    scope.postMessage("posted");
    port.onmessage = ({ data }) => port.postMessage(data);
    await port.closed;
  } else {
    for (let value; (value = port.read(WAIT)) !== undefined;) port.write(value, WAIT);
  }
  await port[Symbol.asyncDispose]();
}

/** A handoff with its task, as it arrives. */
export type Handed = PortHandoff & Task;
