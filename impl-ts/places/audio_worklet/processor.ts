import { type Memory, Port } from "millrace";
import { BLOCK } from "../audio.ts";
import { assertEquals } from "../stage.ts";

/** What the page hands to the processor. */
interface Given {
  source: unknown;
  sink: Memory;
}

export default function processor({ source, sink }: Given): (samples: Float32Array) => unknown {
  const from = Port.from<Uint8Array>(source);
  const to = Port.create<Uint8Array>({ memory: sink, codec: "bytes" });
  refuse();
  const block = new Uint8Array(BLOCK);
  let count = 0;
  return (samples) => {
    if (count % 2 === 0) {
      if (from.tryReadInto(block) === undefined) {
        assertEquals(from.ended, true);
        to.end();
        for (const port of [from, to]) port.close();
        return count;
      }
    } else {
      const { area, offset, size } = from.tryPeek()!;
      for (let i = 0; i < size; i++) block[i] = area[offset + i]!;
      from.release();
    }
    for (let i = 0; i < BLOCK; i++) samples[i] = block[i]! / 256;
    assertEquals(to.tryWrite(block), true);
    count++;
    return undefined;
  };
}

/** Where there is no room, and where there is nothing, the verbs say so. */
function refuse(): void {
  const here = Port.create<Uint8Array>({ capacity: 256, codec: "bytes" });
  const there = Port.attach<Uint8Array>(here.memory);
  const bytes = new Uint8Array(48);
  let [written, read] = [0, 0];
  while (here.tryWrite(bytes)) written++;
  while (there.tryReadInto(bytes) !== undefined) read++;
  assertEquals([written > 0, read, there.tryPeek()], [true, written, undefined]);
  for (const port of [here, there]) port.close();
}
