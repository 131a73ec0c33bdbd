/** The writer of `property_worker_test.ts`, in another thread. It ends when it is told to. */

import { PropertyWriter } from "./property.ts";
import { Segment } from "./segment.ts";

/** What the worker is asked to do. */
export interface PropertyTask {
  memory: SharedArrayBuffer;
  /** Its first word is 0 for as long as the worker is to go on. */
  stop: SharedArrayBuffer;
  /** Sets without a pause, or lets its event loop turn now and then. */
  mode: "flood" | "bursts";
}

const scope = globalThis as unknown as {
  onmessage: (event: MessageEvent<PropertyTask>) => void;
  postMessage(value: unknown): void;
};

/** Every word of the value is its number; it has between one and so many words. */
const WORDS = 60;

scope.onmessage = async ({ data }) => {
  const { memory, stop, mode } = data;
  const writer = PropertyWriter.attach(Segment.attach(memory));
  const word = new Int32Array(stop);
  const values = Array.from({ length: WORDS }, (_, index) => new Int32Array(index + 1));
  scope.postMessage("attached");
  let n = 0;
  while (Atomics.load(word, 0) === 0) {
    for (let burst = 0; burst < 1000; burst++) {
      n = n + 1 | 0;
      const value = values[(n >>> 0) % WORDS]!;
      value.fill(n);
      writer.set(value);
    }
    if (mode === "bursts") await new Promise((resolve) => setTimeout(resolve, 1));
  }
  scope.postMessage(n);
};
