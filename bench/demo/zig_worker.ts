// Hosts the Zig side of the demo: one WebAssembly instance that blocks in `serve` until the stream
// ends. Afterwards this worker echoes over the runtime's own channel, for comparison.

import { scope } from "../../tools/worker_scope.ts";
import type { Note, ServeOrder } from "./protocol.ts";

/** A waiting worker may keep a processor busy only where the other side has one of its own. */
const SPIN_US = navigator.hardwareConcurrency > 1 ? 50 : 0;

/** What `worker.zig` exports. */
interface Exports {
  heap_base(): number;
  serve(address: number, size: number, spin_us: number): number;
  wakes(): number;
  wakes_elided(): number;
}

scope.onmessage = async ({ data }: MessageEvent<ServeOrder>) => {
  let note: Note;
  try {
    note = await serve(data);
  } catch (error) {
    note = { kind: "failed", message: (error as Error).message, usage: false };
  }
  data.rival.onmessage = (event) => data.rival.postMessage(event.data);
  scope.postMessage(note);
};

async function serve(order: ServeOrder): Promise<Note> {
  const { memory, module, segmentOffset, segmentSize } = order;
  const instance = await WebAssembly.instantiate(module, {
    env: { memory },
    millrace: { now_us: () => performance.now() * 1000 },
  });
  const exports = instance.exports as unknown as Exports;
  if (exports.heap_base() > segmentOffset) {
    throw new Error(`The Zig worker needs the memory up to ${exports.heap_base()}`);
  }
  const reason = exports.serve(segmentOffset, segmentSize, SPIN_US);
  if (reason !== 0) throw new Error(`The Zig worker stopped with reason ${reason}`);
  return { kind: "served", wakes: exports.wakes(), wakesElided: exports.wakes_elided() };
}
