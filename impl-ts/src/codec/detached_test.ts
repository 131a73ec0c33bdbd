/** Bytes whose memory is gone are refused, as `structuredClone` refuses them. */

import { assertEquals, assertRejects, assertThrows } from "@std/assert";
import { remote, serve } from "../call/call.ts";
import { cbor } from "./cbor.ts";
import { sha1, Sha256 } from "../digest/digest.ts";
import { FanoutReader, FanoutWriter } from "../fanout/fanout.ts";
import { pipe } from "../testing/fixture.ts";
import { Port } from "../port/port.ts";
import { SharedProperties } from "../property/property.ts";
import { poolOf } from "../pool/fixture.ts";
import { writeMany } from "../more/many.ts";
import { writeMessage } from "../more/raw.ts";

/** Views that have lost their memory, by what has happened to it. */
function gone(): Record<string, Uint8Array> {
  const transferred = Uint8Array.of(1, 2, 3);
  structuredClone(transferred.buffer, { transfer: [transferred.buffer] });
  const shrunk = new ArrayBuffer(64, { maxByteLength: 64 });
  const views = {
    "a fixed view beyond the end": new Uint8Array(shrunk, 16, 32),
    "a tracking view that begins beyond the end": new Uint8Array(shrunk, 40),
  };
  shrunk.resize(20);
  return { "a transferred buffer": transferred, ...views };
}

for (const [name, bytes] of Object.entries(gone())) {
  const refuses = (what: string, call: () => unknown) => assertThrows(call, TypeError, "", what);

  Deno.test(`${name} is refused wherever bytes are written`, async () => {
    assertThrows(() => structuredClone(bytes), DOMException);
    for (const codec of ["json", "bytes", cbor] as const) {
      const { writer, reader } = pipe({ codec, capacity: 1024 });
      refuses("write", () => writer.write(bytes));
      refuses("tryWrite", () => writer.tryWrite(bytes));
      refuses("writeMany", () => writeMany(writer, [bytes]));
      refuses("writeMessage", () => writeMessage(writer, { payload: bytes }));
      await assertRejects(async () => await writer.writeAsync(bytes), TypeError);
      assertEquals(reader.tryRead(), undefined, "nothing was written");
      writer.write(new Uint8Array(0));
      assertEquals(reader.tryRead(), new Uint8Array(0), "and the next message comes");
    }
    using port = Port.create<unknown>();
    await assertRejects(async () => await port.postMessage(bytes), TypeError);
    using fanout = FanoutWriter.create<unknown>({ readers: 1, capacity: 1024 });
    using reader = FanoutReader.from(fanout.handoff(0));
    refuses("fanout", () => fanout.write(bytes));
    assertEquals(reader.tryRead(), undefined);
    using properties = SharedProperties.create<{ p: unknown }>({
      properties: { p: { writer: 0 } },
    });
    properties.set("p", 1);
    refuses("property", () => properties.set("p", bytes));
    assertEquals(properties.get("p"), 1);
  });

  Deno.test(`${name} is refused in a value of CBOR, with its path`, () => {
    assertThrows(() => cbor.encode({ a: [bytes] }), TypeError, "$.a[0]");
  });

  Deno.test(`${name} is refused by digests`, () => {
    refuses("sha1", () => sha1(bytes));
    const digest = new Sha256();
    refuses("update", () => digest.update(bytes));
    assertEquals(digest.length, 0);
  });

  Deno.test(`${name} is refused by calls and pools`, async () => {
    using here = Port.create();
    using there = Port.attach(here.memory);
    const api = { sizeOf: (value: Uint8Array) => value.length, give: () => bytes };
    serve(there, api);
    const far = remote<typeof api>(here);
    await assertRejects(() => far.sizeOf(bytes), TypeError);
    assertEquals((await far.give().catch((error) => error)).code, "call.result");
    await using pool = poolOf();
    await assertRejects(() => pool.run(bytes, { name: "echo" }), TypeError);
    assertEquals(await pool.run(new Uint8Array(0), { name: "echo" }), new Uint8Array(0));
  });
}

Deno.test("a property whose array was set before is refused once its memory is gone", () => {
  using properties = SharedProperties.create<{ p: unknown }>({ properties: { p: { writer: 0 } } });
  const array = Float32Array.of(1, 2);
  properties.set("p", array);
  properties.set("p", array);
  structuredClone(array.buffer, { transfer: [array.buffer] });
  assertThrows(() => properties.set("p", array), TypeError);
  assertEquals((properties.get("p") as Uint8Array).length, 8);
});
