/**
 * Posts message after message while others wait, and prints how many payloads of sent messages
 * are still held. Run with `--v8-flags=--expose-gc`.
 *
 * @module
 */
import { Port } from "./port.ts";

const SIZE = 512 * 1024;
const { gc } = globalThis as unknown as { gc(): void };

using a = Port.create<Uint8Array>({ capacity: SIZE });
using b = Port.attach<Uint8Array>(a.memory);
const post = () => a.postMessage(new Uint8Array(SIZE));
for (let i = 0; i < 3; i++) post();
const before = await externalSize();
for (let i = 0; i < 400; i++) {
  post();
  await b.readAsync();
}
console.log((await externalSize() - before) / SIZE);

/** Bytes of external memory after garbage collections; it is given back a while after one. */
async function externalSize(): Promise<number> {
  for (let i = 0; i < 10; i++) {
    gc();
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  return Deno.memoryUsage().external;
}
