/** A page without the two headers has no shared memory, and is told what it lacks. */
import { Port, portMemory } from "millrace";
import { assertEquals } from "../stage.ts";

export default function main(): void {
  assertEquals(typeof globalThis.SharedArrayBuffer, "undefined");
  for (const make of [() => Port.create(), () => portMemory()]) {
    const text = messageOf(make);
    for (const header of ["Cross-Origin-Opener-Policy", "Cross-Origin-Embedder-Policy"]) {
      if (!text.includes(header)) throw new Error(`No word of ${header} in: ${text}`);
    }
  }
}

function messageOf(call: () => unknown): string {
  try {
    call();
  } catch (error) {
    return String(error);
  }
  return "no error at all";
}
