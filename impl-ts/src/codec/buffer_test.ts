/** The `slice` of Node's `Buffer` copies nothing. A caller that passes one in keeps its bytes. */

import { Buffer } from "node:buffer";
import { assertEquals } from "@std/assert";
import { pattern, pipe } from "../testing/fixture.ts";
import { Port } from "../port/port.ts";
import { ports } from "../port/fixture.ts";
import { claim, publish } from "../more/lend.ts";
import { readInto, tryReadInto } from "../more/raw.ts";

Deno.test("a Buffer that is posted may change at once", async () => {
  const [a, b] = ports();
  const bytes = Buffer.from([1, 2, 3]);
  const sent = a.postMessage(bytes);
  bytes.fill(9);
  await sent;
  assertEquals(b.tryRead(), Uint8Array.of(1, 2, 3));
  a.close();
});

Deno.test("a codec may make all its payloads in one Buffer", async () => {
  const scratch = Buffer.alloc(100);
  const codec = {
    code: 200,
    encode: (value: number) => scratch.fill(value),
    decode: (payload: Uint8Array) => payload[0]!,
  };
  const { writer, reader } = pipe({ codec });
  const sent = [1, 2, 3, 4, 5, 6].map((value) => writer.writeAsync(value));
  const seen: unknown[] = [];
  while (seen.length < sent.length) seen.push(await reader.readAsync({ timeout: 5000 }));
  await Promise.all(sent);
  assertEquals(seen, [1, 2, 3, 4, 5, 6]);
});

Deno.test("a Buffer that is read into is the caller's between two calls", async () => {
  const { writer, reader } = pipe({ codec: "bytes" });
  const message = pattern(400);
  const sent = writer.writeAsync(message);
  const target = Buffer.alloc(message.length);
  assertEquals(tryReadInto(reader, target), undefined);
  for (let size; size === undefined; size = tryReadInto(reader, target)) {
    target.fill(0);
    await new Promise((resolve) => setTimeout(resolve, 1));
  }
  await sent;
  assertEquals(new Uint8Array(target), message);
});

Deno.test("short bytes pass whole, through arrays used once, again, and in turns", () => {
  using here = Port.create<Uint8Array>({ codec: "bytes", capacity: 1024 });
  using there = Port.attach<Uint8Array>(here.memory, { codec: "bytes" });
  const area = new ArrayBuffer(96);
  const sources = [new Uint8Array(area, 1, 31), new Uint8Array(area, 32, 31)];
  const targets = [new Uint8Array(33), new Uint8Array(new ArrayBuffer(40), 3, 35)];
  const resizable = new ArrayBuffer(36, { maxByteLength: 64 });
  targets.push(new Uint8Array(resizable));
  const order = [0, 0, 0, 1, 1, 1, 0, 1, 0, 2, 2, 2];
  for (const [round, index] of order.entries()) {
    const source = sources[index % 2]!;
    for (let i = 0; i < source.length; i++) source[i] = 7 * round + i;
    const target = targets[index]!;
    target.fill(255);
    here.write(source);
    assertEquals(readInto(there, target), 31);
    assertEquals(target.slice(0, 31), source.slice());
    assertEquals(target.slice(31).every((byte) => byte === 255), true);
  }
});

Deno.test("a read that waits leaves an open claim as it is", () => {
  using here = Port.create<Uint8Array>({ codec: "bytes" });
  using there = Port.attach<Uint8Array>(here.memory, { codec: "bytes" });
  here.write(new Uint8Array(64));
  claim(here, 64).payload.fill(9);
  assertEquals(here.read({ timeout: 1 }), undefined);
  publish(here);
  assertEquals(there.read(), new Uint8Array(64));
  assertEquals(there.read(), new Uint8Array(64).fill(9));
});
