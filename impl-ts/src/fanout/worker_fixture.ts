/** The writer of `worker_test.ts`. Each of its waits has a limit. */

import { MillraceError } from "../error.ts";
import { FanoutWriter } from "./fanout.ts";
import { random } from "../testing/fixture.ts";
import { Segment } from "../memory/segment.ts";

/** What the worker does. */
export interface FanoutTask {
  memory: SharedArrayBuffer;
  count: number;
  /** The largest size of a message in bytes. */
  largest: number;
}

const WAIT = { timeout: 60_000 };
const scope = globalThis as unknown as {
  onmessage: (event: MessageEvent<FanoutTask>) => void;
  postMessage(value: unknown): void;
  close(): void;
};

scope.onmessage = ({ data: { memory, count, largest } }) => {
  try {
    using writer = FanoutWriter.attach<Uint8Array>(Segment.attach(memory), { codec: "bytes" });
    const next = random(7);
    const bytes = new Uint8Array(largest);
    for (let n = 0; n < count; n++) {
      const payload = bytes.subarray(0, 4 + next() % (largest - 3)).fill(n);
      new DataView(bytes.buffer).setUint32(0, n);
      writer.writeMessage({ payload, tag: n }, WAIT);
    }
    writer.end();
    scope.postMessage("done");
  } catch (error) {
    scope.postMessage(error instanceof MillraceError ? error.code : String(error));
  }
  scope.close();
};
