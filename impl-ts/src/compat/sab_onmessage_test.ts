import { assert, assertEquals, assertThrows } from "@std/assert";
import { messageOf, pipe, post, turn, until, WIRES, within } from "./sab_fixture.ts";

for (const wire of WIRES) {
  Deno.test(`onmessage: gets what comes, in order, one event each, ${wire}`, async () => {
    const { writer, reader } = pipe({ wire });
    const seen: unknown[] = [];
    const handler = (event: { data: unknown }) => seen.push(event);
    reader.onmessage = handler;
    assert(reader.onmessage === handler && reader._messageLoopActive);
    await post(writer, 1, { n: 2 });
    await post(writer, null);
    await until(() => seen.length === 3);
    assertEquals(seen, [{ data: 1 }, { data: { n: 2 } }, { data: null }]);
    reader.onmessage = null;
    assertEquals(reader.onmessage, null);
    await until(() => !reader._messageLoopActive);
  });

  Deno.test(`onmessage: excludes the reads, ${wire}`, async () => {
    const { writer, reader } = pipe({ wire });
    reader.onmessage = () => {};
    for (
      const call of [() => reader.read(0, false), () => reader.tryRead(), () => reader.tryPeek()]
    ) {
      assertThrows(call, Error, "onmessage is active");
    }
    assert((await messageOf(() => reader.asyncRead(0))).includes("onmessage is active"));
    reader.onmessage = null;
    await post(writer, 1);
    assertEquals(reader.tryRead(), 1);
  });

  Deno.test(`onmessage: null stops it inside a burst, losing nothing, ${wire}`, async () => {
    const { writer, reader } = pipe({ wire });
    const seen: unknown[] = [];
    reader.onmessage = ({ data }) => {
      seen.push(data);
      if (seen.length === 2) reader.onmessage = null;
    };
    await post(writer, 1, 2, 3, 4);
    await until(() => !reader._messageLoopActive);
    assertEquals([seen, reader.tryRead()], [[1, 2], 3]);
    // Queued messages are delivered while the handler is being set.
    reader.onmessage = ({ data }) => seen.push(data);
    assertEquals(seen, [1, 2, 4]);
    reader.onmessage = undefined as never;
    const next = reader.asyncRead();
    await post(writer, 5);
    assertEquals(await within(next), 5);
  });

  Deno.test(`onmessage: another handler takes over at once, ${wire}`, async () => {
    const { writer, reader } = pipe({ wire });
    const seen: string[] = [];
    reader.onmessage = ({ data }) => {
      seen.push(`first ${data}`);
      if (data === 2) reader.onmessage = ({ data }) => seen.push(`second ${data}`);
    };
    await post(writer, 1, 2, 3);
    await until(() => seen.length === 3);
    reader.onmessage = null;
    reader.onmessage = ({ data }) => seen.push(`third ${data}`);
    await post(writer, 4);
    await until(() => seen.length === 4);
    assertEquals(seen, ["first 1", "first 2", "second 3", "third 4"]);
    reader.onmessage = null;
  });

  Deno.test(`onmessage: a handler that throws misses nothing, ${wire}`, async () => {
    const { writer, reader } = pipe({ wire });
    const seen: unknown[] = [];
    reader.onmessage = ({ data }) => {
      seen.push(data);
      throw new Error("handler");
    };
    await post(writer, 1, 2);
    await post(writer, 3);
    await until(() => seen.length === 3);
    assertEquals(seen, [1, 2, 3]);
    reader.destroy();
  });

  Deno.test(`onmessage: set while an asyncRead waits, comes after it, ${wire}`, async () => {
    const { writer, reader } = pipe({ wire });
    const read = reader.asyncRead();
    const seen: unknown[] = [];
    reader.onmessage = ({ data }) => seen.push(data);
    await turn(); // the event loop still turns
    await post(writer, 1, 2);
    assertEquals(await within(read), 1);
    await until(() => seen.length === 1);
    assertEquals(seen, [2]);
    reader.onmessage = null;
  });

  Deno.test(`onmessage: must be a function, ${wire}`, () => {
    const { reader } = pipe({ wire });
    assertThrows(() => reader.onmessage = 5 as never, TypeError, "onmessage");
    assertEquals([reader.onmessage, reader._messageLoopActive], [null, false]);
  });
}
