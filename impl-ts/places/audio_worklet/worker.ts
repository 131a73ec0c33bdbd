import { type Memory, Port } from "millrace";
import { readInto } from "millrace/raw";
import { BLOCK } from "../audio.ts";
import { assertEquals, WAIT } from "../stage.ts";

/** Sleeps until the processor wakes it, and fails where what it sent is not what it got. */
export default function worker(memory: Memory): number {
  using port = Port.attach<Uint8Array>(memory, WAIT);
  const block = new Uint8Array(BLOCK);
  let count = 0;
  for (; readInto(port, block, WAIT) !== undefined; count++) {
    assertEquals(block, new Uint8Array(BLOCK).fill(count));
  }
  assertEquals(port.ended, true);
  return count;
}
