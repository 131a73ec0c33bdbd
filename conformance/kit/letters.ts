/**
 * The payloads of a workload for a mailbox, which carries JSON: letters in place of bytes.
 *
 * @module
 */

import type { Message } from "./workload.ts";

const A = "a".charCodeAt(0);

/** Fills the first `size` bytes of `into` with the letters of a message, and returns them. */
export function letters({ size, first }: Message, into: Uint8Array): Uint8Array {
  for (let index = 0; index < size; index++) into[index] = A + (first + index) % 26;
  return into.subarray(0, size);
}
