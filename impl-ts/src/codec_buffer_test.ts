/** The `slice` of Node's `Buffer` copies nothing: whoever hands one in keeps its bytes. */

import { Buffer } from "node:buffer";
import { assertEquals } from "@std/assert";
import { pattern, pipe } from "./fixture.ts";
import { ports } from "./port_fixture.ts";

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
  assertEquals(reader.tryReadInto(target), undefined);
  for (let size; size === undefined; size = reader.tryReadInto(target)) {
    target.fill(0);
    await new Promise((resolve) => setTimeout(resolve, 1));
  }
  await sent;
  assertEquals(new Uint8Array(target), message);
});
