import { type Memory, Port } from "millrace";
import { readInto } from "millrace/raw";
import { WAIT } from "../stage.ts";

export default function worker(memory: Memory): number[] {
  const port = Port.attach<Uint8Array>(memory, { codec: "bytes" });
  const place = new Uint8Array(8192);
  const sizes: number[] = [];
  for (let size; (size = readInto(port, place, WAIT)) !== undefined;) {
    sizes.push(size);
    port.write(place.subarray(0, size), WAIT);
  }
  port.end();
  port.close();
  return sizes;
}
