import { assert, assertEquals, assertThrows } from "@std/assert";
import { messageOf, pipe, ports, post, turn, WIRES, within } from "./sab_fixture.ts";
import { SABPipe } from "./sab_message_port.ts";

const DISPOSED = "SABPipe disposed";

Deno.test("SABPipe: its defaults", () => {
  const writer = new SABPipe("w");
  assertEquals(writer.buffer.byteLength, 131_072);
  assertEquals([writer.isWriter, writer.isReader, writer.wire], [true, false, "ring"]);
  assertEquals([writer.queueLimit, writer.onQueueOverflow], [null, null]);
  assert(writer._sab === writer.buffer);
  assertEquals(writer.i32?.length, 32_768);
  assertEquals([writer.u8?.length, writer.maxChunk], [131_072, 131_040]);
  const reader = new SABPipe("r", writer.buffer);
  assertEquals([reader.isWriter, reader.isReader, reader.onmessage], [false, true, null]);
  assertEquals(reader._messageLoopActive, false);
});

Deno.test("SABPipe: the words of the mailbox have their names", () => {
  const { STATUS, RW_SIGNAL, W_DATA_LEN, NUM_PARTS, PART_INDEX } = SABPipe;
  assertEquals([STATUS, RW_SIGNAL, W_DATA_LEN, NUM_PARTS, PART_INDEX], [0, 1, 2, 3, 4]);
  const { RESERVED_1, RESERVED_2, RESERVED_3, CONTROL_TOP, DATA_OFFSET } = SABPipe;
  assertEquals([RESERVED_1, RESERVED_2, RESERVED_3, CONTROL_TOP, DATA_OFFSET], [5, 6, 7, 8, 32]);
  const { STATUS_ACTIVE, STATUS_DISPOSED, RW_CAN_WRITE, RW_CAN_READ } = SABPipe;
  assertEquals([STATUS_ACTIVE, STATUS_DISPOSED, RW_CAN_WRITE, RW_CAN_READ], [0, -1, 0, 1]);
});

Deno.test("SABPipe: a wrong argument throws", () => {
  assertThrows(() => new SABPipe("x" as "w"), Error, "role");
  assertThrows(() => new SABPipe("w", "1024" as unknown as number), TypeError, "Shared");
  assertThrows(() => new SABPipe("w", new ArrayBuffer(1024) as never), TypeError, "Shared");
  assertThrows(() => new SABPipe("w", 64, 2), RangeError);
  assertThrows(() => new SABPipe("w", 64, 0, 128), RangeError);
  assertThrows(() => new SABPipe("w", 32), Error, "mailbox.size");
  assertEquals(new SABPipe("w", 33).maxChunk, 1);
  for (const limit of [-1, 1.5, NaN, "1" as unknown as number]) {
    assertThrows(() => new SABPipe("w", 1024, 0, null, limit), Error, "queueLimit");
    const reader = new SABPipe("r", 1024);
    assertThrows(() => reader.queueLimit = limit, Error, "queueLimit");
    assertEquals(reader.queueLimit, null);
  }
  const options = { wire: "tape" as "ring" };
  assertThrows(() => new SABPipe("w", 1024, 0, null, null, options), TypeError, "wire");
});

Deno.test("SABPipe: what a read returns has a type of its own", async () => {
  const { writer, reader } = pipe<number>({ wire: "ring" });
  await post(writer, 1, 2, 3, 4, 5);
  const most: number = 1;
  const one: number | null = reader.tryRead();
  const same: number | null = await reader.asyncRead(0, 1);
  const many: number[] = reader.read(0, true, 2);
  const either: number | null | number[] = reader.tryRead(most);
  assertEquals([one, same, many, either], [1, 2, [4, 3], 5]);
});

Deno.test("SABPipe: one writer and one reader on a ring", () => {
  const { writer, reader } = pipe({ wire: "ring" });
  assertThrows(() => new SABPipe("w", writer.buffer), Error, "segment.endpoint");
  assertThrows(() => new SABPipe("r", writer.buffer), Error, "segment.endpoint");
  reader.destroy();
  assertEquals([writer.isDisposed(), new SABPipe("r", writer.buffer).isDisposed()], [true, true]);
});

for (const wire of WIRES) {
  Deno.test(`SABPipe: each role has its methods, ${wire}`, async () => {
    const { writer, reader } = pipe({ wire });
    for (
      const call of [
        () => writer.read(),
        () => writer.tryRead(),
        () => writer.tryPeek(),
        () => writer.onmessage = () => {},
        () => writer.onmessage = null,
        () => reader.postMessage(1),
      ]
    ) assertThrows(call, Error, "only the");
    assert((await messageOf(() => writer.asyncRead())).includes("only the reader"));
    assertEquals(writer.onmessage, null);
  });

  Deno.test(`SABPipe: a burst is one, and is read oldest first, ${wire}`, async () => {
    const { writer, reader } = pipe({ wire });
    const promises = [1, 2, 3, 4, 5].map((n) => writer.postMessage(n));
    assertEquals(reader.tryRead(), null); // the burst is written in a microtask
    await within(Promise.all(promises));
    assert(promises.every((promise) => promise === promises[0]));
    assertEquals([reader.read(), reader.read(0), reader.tryRead()], [1, 2, 3]);
    assertEquals([reader.tryRead(), await reader.asyncRead()], [4, 5]);
    assertEquals([reader.tryRead(), reader.read(0, false), reader.read(1)], [null, null, null]);
    assertEquals([await reader.asyncRead(0), await reader.asyncRead(1)], [null, null]);
  });

  Deno.test(`SABPipe: more than one message is an array, newest first, ${wire}`, async () => {
    const { writer, reader } = pipe({ wire });
    for (
      const empty of [reader.tryRead(2), reader.read(1, true, 2), await reader.asyncRead(0, 2)]
    ) {
      assertEquals(empty, []);
    }
    assertEquals([reader.tryRead(0), reader.tryRead(-1)], [[], []]);
    await post(writer, 1, 2, 3, 4, 5, 6, 7);
    assertEquals(reader.read(Infinity, true, 2), [2, 1]);
    assertEquals(await reader.asyncRead(Infinity, 2), [4, 3]);
    assertEquals([reader.tryRead(0), reader.tryRead(-1), reader.tryRead(1)], [[], [], 5]);
    assertEquals(reader.read(0, false, 10), [7, 6]);
  });

  Deno.test(`SABPipe: tryPeek takes nothing, ${wire}`, async () => {
    const { writer, reader } = pipe({ wire });
    assertEquals(reader.tryPeek(), null);
    await post(writer, "a", "b");
    assertEquals([reader.tryPeek(), reader.tryPeek(), reader.read()], ["a", "a", "a"]);
    assertEquals([reader.tryPeek(), reader.tryRead(2), reader.tryPeek()], ["b", ["b"], null]);
  });

  Deno.test(`SABPipe: messages are what JSON makes of them in an array, ${wire}`, async () => {
    const { writer, reader } = pipe({ wire });
    const values = [null, undefined, () => 1, Symbol("s"), 1.5, "é😀", [1, [2]], {
      a: { b: null },
    }];
    const bytes = [new Uint8Array([7, 8]), new Date(0), NaN];
    const expected = JSON.parse(JSON.stringify([...values, ...bytes]));
    await post(writer, ...values, ...bytes);
    assertEquals(reader.read(0, true, 20).reverse(), expected);
    for (const [i, value] of [...values, ...bytes].entries()) {
      await post(writer, value);
      assertEquals(reader.read(0), expected[i]);
    }
  });

  Deno.test(`SABPipe: what is no JSON is rejected, the rest is written, ${wire}`, async () => {
    const { writer, reader } = pipe({ wire });
    const circle: unknown[] = [];
    circle.push(circle);
    const promises = ["a", circle, 2n, "b"].map((value) => writer.postMessage(value));
    assert((await messageOf(() => promises[0])).includes("circular"));
    assertEquals(reader.tryRead(10), ["b", "a"]);
    assert((await messageOf(() => writer.postMessage(1n))).includes("BigInt"));
    assertEquals(reader.tryRead(), null);
    await post(writer, "c");
    assertEquals(reader.tryRead(), "c");
  });

  Deno.test(`SABPipe: a message larger than the section comes whole, ${wire}`, async () => {
    const { writer, reader } = pipe({ wire });
    const large = { text: "é€😀".repeat(1_000), bytes: Array.from(new Uint8Array(99)) };
    const posted = [large, new Uint8Array(900), "end"].map((value) => writer.postMessage(value));
    await turn();
    const read: unknown[] = [];
    while (read.length < 3) {
      read.push(...(await within(reader.asyncRead(Infinity, 9))).reverse());
    }
    await within(Promise.all(posted));
    assertEquals(read, [large, { ...new Uint8Array(900) }, "end"]);
  });

  Deno.test(`SABPipe: tries keep the parts of a large message, ${wire}`, async () => {
    const { writer, reader } = pipe({ wire });
    const large = "x".repeat(5_000);
    const written = writer.postMessage(large);
    let found = null;
    for (let left = 1_000; found === null && left > 0; left--) {
      found = left % 2 === 0 ? reader.tryRead() : reader.tryPeek();
      await Promise.resolve();
      if (left % 10 === 0) await turn();
    }
    await within(written);
    assertEquals(found, large);
  });

  Deno.test(`SABPipe: asyncRead in vain takes nothing from the next, ${wire}`, async () => {
    const { writer, reader } = pipe({ wire });
    assertEquals(await reader.asyncRead(5), null);
    const next = reader.asyncRead();
    const third = reader.asyncRead();
    const inVain = reader.asyncRead(5);
    assertEquals(await within(inVain), null);
    await post(writer, 1);
    assertEquals(await within(next), 1);
    await post(writer, 2);
    assertEquals(await within(third), 2);
  });

  Deno.test(`SABPipe: asyncReads share a burst, also with read, ${wire}`, async () => {
    const { writer, reader } = pipe({ wire });
    const reads = [reader.asyncRead(), reader.asyncRead(), reader.asyncRead(Infinity, 9)];
    await post(writer, 1, 2, 3, 4);
    assertEquals(await within(Promise.all(reads)), [1, 2, [4, 3]]);
    const { a, b } = ports(wire);
    const waiting = b.asyncRead();
    await turn();
    const written = [a.postMessage(5), a.postMessage(6)];
    a.tryRead(); // writes both messages at once
    assertEquals(b.read(0), 5);
    assertEquals(await within(waiting), 6);
    await within(Promise.all(written));
    a.close();
  });

  Deno.test(`SABPipe: the memory carries other pipes beside it, ${wire}`, async () => {
    const sab = new SharedArrayBuffer(4096 * 3);
    const pipes = [0, 1, 2].map((i) => ({
      writer: new SABPipe("w", sab, i * 4096, 4096, null, { wire }),
      reader: new SABPipe("r", sab, i * 4096, 4096, null, { wire }),
    }));
    for (const [i, { writer }] of pipes.entries()) await post(writer, i);
    pipes[0]!.writer.destroy();
    assertThrows(() => pipes[0]!.reader.read(), Error, DISPOSED);
    assertEquals(pipes.slice(1).map(({ reader }) => reader.read(0)), [1, 2]);
  });
}
