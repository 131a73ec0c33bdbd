import { assert, assertEquals, assertThrows } from "@std/assert";
import { messageOf, pipe, post, turn, until, WIRES, within } from "./sab_fixture.ts";
import { SABPipe } from "./sab_message_port.ts";

const DISPOSED = "SABPipe disposed";

for (const wire of WIRES) {
  Deno.test(`SABPipe: destroy ends the pipe for both sides, ${wire}`, async () => {
    for (const first of ["writer", "reader"] as const) {
      const ends = pipe({ wire });
      const { writer, reader } = ends;
      await post(writer, "lost");
      const { buffer } = writer;
      assertEquals([writer.isDisposed(), reader.isDisposed()], [false, false]);
      if (first === "writer") writer.destroy();
      else reader.close();
      assertEquals([writer.isDisposed(), reader.isDisposed()], [true, true]);
      const { i32, u8, _sab } = ends[first];
      assertEquals([i32, u8, _sab, ends[first].buffer === buffer], [null, null, null, true]);
      for (
        const call of [
          () => writer.postMessage(1),
          () => reader.read(),
          () => reader.tryRead(),
          () => reader.tryPeek(),
          () => reader.read(0, false, 5),
        ]
      ) assertThrows(call, Error, DISPOSED);
      assertEquals(await messageOf(() => reader.asyncRead()), DISPOSED);
      assertEquals([writer.i32, reader.i32], [null, null]); // both ends have noticed it
      writer.destroy();
      reader.destroy();
      writer.close();
    }
  });

  Deno.test(`SABPipe: what is made on a destroyed pipe is disposed, ${wire}`, async () => {
    const { writer, reader } = pipe({ wire });
    writer.destroy();
    const lateWriter = new SABPipe("w", writer.buffer, 0, null, null, { wire });
    assertEquals(lateWriter.isDisposed(), true);
    assertThrows(() => lateWriter.postMessage(1), Error, DISPOSED);
    reader.destroy();
    const lateReader = new SABPipe("r", writer.buffer, 0, null, null, { wire });
    assertEquals(lateReader.isDisposed(), true);
    lateReader.onmessage = () => {};
    await until(() => !lateReader._messageLoopActive);
    lateReader.onmessage = null;
    assertThrows(() => lateReader.tryRead(), Error, DISPOSED);
    lateReader.destroy();
  });

  Deno.test(`SABPipe: destroy ends every asyncRead, ${wire}`, async () => {
    for (const first of ["writer", "reader"] as const) {
      const ends = pipe({ wire });
      const reads = [1, 5].map((most) => messageOf(() => ends.reader.asyncRead(Infinity, most)));
      await turn();
      ends[first].destroy();
      assertEquals(await Promise.all(reads), [DISPOSED, DISPOSED]);
    }
  });

  Deno.test(`SABPipe: destroy settles every promise of postMessage, ${wire}`, async () => {
    for (const first of ["writer", "reader"] as const) {
      const ends = pipe({ wire });
      const { writer } = ends;
      await post(writer, "in the pipe");
      // The first message is too large for any pipe, so it waits half-written; the others queue up.
      const waiting = [writer.postMessage("x".repeat(10_000))];
      await turn();
      waiting.push(writer.postMessage(1));
      await turn();
      waiting.push(writer.postMessage(2));
      ends[first].destroy();
      for (const promise of waiting) assertEquals(await messageOf(() => promise), DISPOSED);
    }
  });

  Deno.test(`SABPipe: destroy right after a post, which nobody awaits, ${wire}`, async () => {
    const { writer, reader } = pipe({ wire });
    const promise = writer.postMessage(1);
    writer.destroy();
    await turn(); // an unhandled rejection would end this test
    assertEquals(await messageOf(() => promise), DISPOSED);
    assertThrows(() => reader.tryRead(), Error, DISPOSED);
  });

  Deno.test(`SABPipe: destroy in the middle of a large message, ${wire}`, async () => {
    for (const first of ["writer", "reader"] as const) {
      const ends = pipe({ wire });
      ends.writer.postMessage("x".repeat(10_000));
      await turn();
      assertEquals(ends.reader.tryRead(), null);
      const read = ends.reader.asyncRead(1);
      ends[first].destroy();
      assertEquals(await messageOf(() => read), DISPOSED);
    }
  });

  Deno.test(`SABPipe: destroy ends the delivery, also from a handler, ${wire}`, async () => {
    for (const first of ["writer", "reader"] as const) {
      const ends = pipe({ wire });
      ends.reader.onmessage = () => {};
      await turn();
      assert(ends.reader._messageLoopActive);
      ends[first].destroy();
      await until(() => !ends.reader._messageLoopActive);
    }
    const { writer, reader } = pipe({ wire });
    const seen: unknown[] = [];
    reader.onmessage = ({ data }) => {
      seen.push(data);
      reader.destroy();
    };
    await post(writer, 1);
    await until(() => !reader._messageLoopActive);
    assertEquals([seen, writer.isDisposed()], [[1], true]);
  });

  Deno.test(`SABPipe: destroy frees who waits for a turn, ${wire}`, async () => {
    const { writer, reader } = pipe({ wire });
    const read = reader.asyncRead();
    reader.onmessage = () => {}; // its delivery waits for the read above
    await turn();
    writer.destroy();
    assertEquals(await messageOf(() => read), DISPOSED);
    await until(() => !reader._messageLoopActive);
    await within(Promise.resolve());
  });
}

for (const wire of WIRES) {
  Deno.test(`SABPipe: destroy from a toJSON, in the middle of a burst, ${wire}`, async () => {
    const { writer, reader } = pipe({ wire, size: 8192 });
    let encoded = 0;
    const toJSON = () => {
      if (++encoded === 500) writer.destroy();
      return "x".repeat(100);
    };
    const written = Array.from({ length: 1000 }, () => writer.postMessage({ toJSON }));
    const seen: unknown[] = [];
    reader.onmessage = ({ data }) => seen.push(data);
    assertEquals(await messageOf(() => written[0]), DISPOSED);
    await until(() => !reader._messageLoopActive);
    await turn();
    // The mailbox encodes a burst as a whole.
    assert(encoded < 600 || wire === "mailbox", `${encoded}`);
    assert(seen.every((data) => data === "x".repeat(100)));
    assertEquals([writer.isDisposed(), reader.isDisposed()], [true, true]);
  });
}
