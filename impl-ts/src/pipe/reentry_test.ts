/** Code that runs while a value is encoded, a `toJSON` or a codec, may call anything. */

import { assertEquals, assertRejects, assertThrows } from "@std/assert";
import type { Codec } from "../codec/codec.ts";
import { assertCode, codeOf, pipe } from "../testing/fixture.ts";
import { ports } from "../port/fixture.ts";
import type { Writer } from "./ends.ts";
import { claim } from "../more/lend.ts";
import { writeMany } from "../more/many.ts";

const BUSY = "a value is being encoded";

/** A value that does something when it is encoded, as JSON or by `codec`. */
function doing(act: () => void): { toJSON(): string } {
  return {
    toJSON() {
      act();
      return "outer";
    },
  };
}

const codec: Codec<string, { toJSON(): string }> = {
  code: 130,
  encode: (value) => new TextEncoder().encode(value.toJSON()),
  decode: (payload) => new TextDecoder().decode(payload),
};

for (const [name, options] of [["json", {}], ["a codec", { codec }]] as const) {
  Deno.test(`a write within a write is refused, and breaks nothing: ${name}`, async () => {
    const large = doing(() => {});
    large.toJSON = () => "y".repeat(500);
    const inner: ((writer: Writer) => unknown)[] = [
      (writer) => writer.write(large),
      (writer) => writer.tryWrite(large),
      (writer) => writeMany(writer, [large, large]),
      (writer) => claim(writer, 1),
      (writer) => writer.end(),
    ];
    for (const act of inner) {
      const { writer, reader } = pipe({ capacity: 1024, ...options });
      const outer = doing(() => assertThrows(() => act(writer), TypeError, BUSY));
      writer.write(outer);
      writeMany(writer, [outer, outer]);
      assertEquals(writer.tryWrite(outer), true);
      await writer.writeAsync(outer);
      assertEquals(Array.from({ length: 5 }, () => reader.tryRead()), Array(5).fill("outer"));
      assertEquals([reader.tryRead(), writer.ended], [undefined, false]);
    }
  });

  Deno.test(`an asynchronous write within any other is refused: ${name}`, async () => {
    const [a, b] = ports({ capacity: 256, ...options });
    const large = doing(() => {});
    large.toJSON = () => "y".repeat(500);
    const refused: Promise<unknown>[] = [];
    const outer = doing(() => refused.push(assertRejects(() => a.writeAsync(large), TypeError)));
    a.write(outer);
    writeMany(a, [outer, outer]);
    await a.writeAsync(outer);
    assertEquals(refused.length >= 4, true);
    await Promise.all(refused);
    assertEquals(Array.from({ length: 4 }, () => b.tryRead()), Array(4).fill("outer"));
    assertEquals(b.tryRead(), undefined);
    a.close();
  });

  Deno.test(`[pipe.close] a close while a value is encoded: ${name}`, async () => {
    const writes: ((writer: Writer, value: unknown) => unknown)[] = [
      (writer, value) => writer.write(value),
      (writer, value) => writer.tryWrite(value),
      (writer, value) => writeMany(writer, [value]),
      (writer, value) => writer.writeAsync(value),
    ];
    for (const write of writes) {
      const { segment, writer, reader } = pipe(options);
      const bytes = segment.bytes(512, 512 + 256);
      const before = bytes.slice();
      const act = async () => await write(writer, doing(() => writer.close()));
      assertEquals(await codeOf(act()), "pipe.closed");
      assertEquals(bytes, before);
      assertCode(() => reader.tryRead(), "peer.closed");
    }
  });
}

Deno.test("a write within the encoding of a post is refused", async () => {
  for (const options of [{}, { codec }]) {
    const [a, b] = ports(options);
    const outer = doing(() => {
      assertThrows(() => a.postMessage(outer), TypeError, BUSY);
      assertThrows(() => a.tryWrite(outer), TypeError, BUSY);
    });
    await a.postMessage(outer);
    assertEquals([b.tryRead(), b.tryRead()], ["outer", undefined]);
    a.close();
  }
});
