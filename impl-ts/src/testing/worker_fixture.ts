/** The other thread of `worker_test.ts`. Every wait in it is bounded. */

import { MillraceError } from "../error.ts";
import { claim, peek, publish, release } from "../more/lend.ts";
import { Port } from "../port/port.ts";

const WAIT = { timeout: 60_000 };

/** What the worker is asked to do with its port. */
export interface Task {
  memory: SharedArrayBuffer;
  mode: "blocking" | "async" | "lend" | "wait";
  spin: number;
}

const scope = globalThis as unknown as {
  onmessage: (event: MessageEvent<Task>) => void;
  postMessage(value: unknown): void;
  close(): void;
};

scope.onmessage = async ({ data }) => {
  const { memory, mode, spin } = data;
  const port = Port.attach(memory, { spin });
  try {
    scope.postMessage("attached");
    if (mode === "async") await echoAsync(port);
    else if (mode === "lend") echoLent(port);
    else if (mode === "wait") port.read(WAIT);
    else echo(port);
    scope.postMessage("done");
  } catch (error) {
    scope.postMessage(error instanceof MillraceError ? error.code : String(error));
  }
  port.close();
  scope.close();
};

function echo(port: Port): void {
  for (let value; (value = port.read(WAIT)) !== undefined;) port.write(value, WAIT);
  port.end();
}

async function echoAsync(port: Port): Promise<void> {
  for (let value; (value = await port.readAsync(WAIT)) !== undefined;) {
    await port.writeAsync(value, WAIT);
  }
  port.end();
}

/** Chunks come back as messages of their own. */
function echoLent(port: Port): void {
  for (let lent; (lent = peek(port, WAIT)) !== undefined;) {
    const place = claim(port, lent.size, { ...WAIT, codec: lent.codec, tag: lent.tag });
    for (let i = 0; i < lent.size; i++) {
      place.area[place.offset + i] = lent.area[lent.offset + i]!;
    }
    release(port);
    publish(port);
  }
  port.end();
}
