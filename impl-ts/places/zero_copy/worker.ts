import { type Memory, Port } from "millrace";
import { claim, peek, publish, release } from "millrace/lend";
import { assertEquals, WAIT } from "../stage.ts";

export default function worker(memory: Memory): number[] {
  using port = Port.attach<Uint8Array>(memory, { codec: "bytes" });
  const sizes: number[] = [];
  for (let lent; (lent = peek(port, WAIT)) !== undefined; release(port)) {
    const { payload, size, tag, first, last } = lent;
    assertEquals([payload.buffer === memory, tag, first && last], [true, sizes.length, true]);
    sizes.push(size);
    const place = claim(port, size, WAIT);
    for (let i = 0; i < size; i++) place.area[place.offset + i] = 2 * payload[i]!;
    publish(port);
  }
  port.end();
  return sizes;
}
