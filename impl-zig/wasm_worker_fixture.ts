// The worker of `wasm_test.ts`: it sends back what comes, until the stream ends.

import { scope } from "../tools/worker_scope.ts";
import { loadMillrace, type Region, WasmError } from "./wasm.ts";

/** What the worker needs. Everything is posted as it is. */
export interface Order {
  readonly module: WebAssembly.Module;
  readonly memory: WebAssembly.Memory;
  readonly segment: Region;
  readonly spinUs: number;
  readonly timeout: number;
}

scope.onmessage = async ({ data }: MessageEvent<Order>) => {
  const { module, memory, segment, spinUs, timeout } = data;
  try {
    const millrace = await loadMillrace(module, { memory });
    using port = millrace.attachPort(segment, { endpoint: 1, spinUs });
    for (let message; (message = port.read({ timeout })) !== undefined;) {
      port.write(message.payload, { ...message, timeout });
    }
    if (port.ended) port.end();
    scope.postMessage(port.ended ? "ended" : "nothing came in time");
  } catch (error) {
    scope.postMessage(error instanceof WasmError ? error.code : String(error));
  }
};
