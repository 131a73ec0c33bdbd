/**
 * The thread of `racer.ts`.
 *
 * @module
 */

import { scope } from "../../../tools/worker_scope.ts";
import { CannotHalt } from "./halter.ts";
import { carryOut } from "./orders.ts";
import type { RaceJob, RaceMemory } from "./racer.ts";

function wordsOf(memory: RaceMemory): Int32Array {
  if ("buffer" in memory) {
    const { buffer, offset, size } = memory;
    return new Int32Array(buffer, offset, size >> 2);
  }
  const pointer = Deno.UnsafePointer.create(memory.address)!;
  return new Int32Array(Deno.UnsafePointerView.getArrayBuffer(pointer, memory.size));
}

scope.onmessage = ({ data }: MessageEvent<RaceJob>) => {
  const words = wordsOf(data.memory);
  const begun = () => scope.postMessage({});
  try {
    scope.postMessage({ found: carryOut(data.order, words, data.stop, begun) });
  } catch (error) {
    if (!(error instanceof CannotHalt)) throw error;
    scope.postMessage({ cannot: error.message });
  }
};
