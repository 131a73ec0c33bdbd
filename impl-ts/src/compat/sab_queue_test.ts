import { assertEquals, assertThrows } from "@std/assert";
import { pipe, ports, post, turn, until, WIRES, within } from "./sab_fixture.ts";

for (const wire of WIRES) {
  Deno.test(`queueLimit: a writer discards the oldest of a burst, ${wire}`, async () => {
    const { writer, reader } = pipe({ wire, queueLimit: 3 });
    assertEquals(writer.queueLimit, 3);
    await post(writer, 1, 2, 3, 4, 5);
    assertEquals(reader.tryRead(9), [5, 4, 3]);
    writer.queueLimit = null;
    await post(writer, 1, 2, 3, 4, 5);
    assertEquals(reader.tryRead(9), [5, 4, 3, 2, 1]);
  });

  Deno.test(`queueLimit: setting it cuts what is queued, ${wire}`, async () => {
    const { writer, reader } = pipe({ wire });
    const written = [1, 2, 3, 4].map((n) => writer.postMessage(n));
    writer.queueLimit = 2;
    await within(Promise.all(written));
    assertEquals(reader.tryPeek(), 3);
    writer.queueLimit = null;
    await post(writer, 5, 6, 7);
    assertEquals(reader.tryRead(9), [7, 6, 5, 4, 3]);
    await post(writer, 1, 2, 3, 4);
    assertEquals(reader.tryPeek(), 1);
    reader.queueLimit = 2;
    assertEquals([reader.queueLimit, reader.read(), reader.read(), reader.tryRead()], [
      2,
      3,
      4,
      null,
    ]);
  });

  Deno.test(`queueLimit: a reader discards the oldest of each burst, ${wire}`, async () => {
    const { writer, reader } = pipe({ wire });
    reader.queueLimit = 2;
    await post(writer, 1, 2, 3, 4, 5);
    assertEquals([await reader.asyncRead(), reader.read()], [4, 5]);
    // Each of these is a burst of its own, so the queue never holds two of them.
    const single: unknown[] = [];
    for (let n = 0; n < 6; n++) {
      const written = writer.postMessage(n);
      await turn();
      if (n % 2 === 0) single.push(reader.tryRead());
      else single.push(...reader.tryRead(9));
      await within(written);
    }
    assertEquals(single, [0, 1, 2, 3, 4, 5]);
  });

  Deno.test(`queueLimit: 0 discards everything, and every promise settles, ${wire}`, async () => {
    const { writer, reader } = pipe({ wire, queueLimit: 0 });
    await post(writer, 1, 2);
    await post(writer, 3);
    assertEquals(reader.tryRead(), null);
    writer.queueLimit = null;
    await post(writer, 4);
    reader.queueLimit = 0;
    assertEquals([reader.tryRead(), reader.tryRead(5)], [null, []]);
    await post(writer, 5);
    reader.queueLimit = null;
    assertEquals(reader.tryRead(), 5);
  });

  Deno.test(`onQueueOverflow: sees the queue itself, in its order, ${wire}`, async () => {
    const { writer, reader } = pipe({ wire, queueLimit: 2 });
    const seen: unknown[] = [];
    assertEquals(writer.onQueueOverflow, null);
    writer.onQueueOverflow = (queue) => seen.push([...queue]);
    await post(writer, 1, 2, 3, 4);
    assertEquals(seen.splice(0), [[1, 2, 3], [2, 3, 4]]);
    assertEquals(reader.tryRead(9), [4, 3]);
    writer.onQueueOverflow = (queue) => queue.splice(0, queue.length, "kept");
    await post(writer, 5, 6, 7);
    assertEquals(reader.tryRead(9), ["kept"]);
    writer.onQueueOverflow = null;
    writer.queueLimit = null;
    reader.queueLimit = 1;
    reader.onQueueOverflow = (queue) => seen.push([...queue]);
    await post(writer, 1, 2, 3);
    assertEquals([reader.tryRead(), reader.tryRead(), seen], [3, null, [[3, 2, 1]]]);
    reader.onQueueOverflow = undefined as never;
    assertEquals(reader.onQueueOverflow, null);
  });

  Deno.test(`onQueueOverflow: a handler that throws changes nothing else, ${wire}`, async () => {
    const { writer, reader } = pipe({ wire, queueLimit: 1 });
    const fail = () => {
      throw new Error("handler");
    };
    writer.onQueueOverflow = fail;
    writer.postMessage(1);
    assertThrows(() => writer.postMessage(2), Error, "handler");
    await turn();
    assertEquals(reader.tryRead(9), [2]);
    writer.queueLimit = writer.onQueueOverflow = null;
    reader.queueLimit = 1;
    reader.onQueueOverflow = fail;
    await post(writer, 3, 4);
    assertThrows(() => reader.tryRead(), Error, "handler");
    assertEquals(reader.tryRead(9), [4]);
    const delivered: unknown[] = [];
    reader.onmessage = ({ data }) => delivered.push(data);
    await post(writer, 5, 6);
    await until(() => delivered.length === 1);
    await post(writer, 7);
    await until(() => delivered.length === 2);
    assertEquals(delivered, [6, 7]);
    reader.onmessage = null;
  });

  Deno.test(`queueLimit: a port has it in both queues, ${wire}`, async () => {
    const { a, b } = ports(wire);
    const handler = () => {};
    a.queueLimit = 2;
    a.onQueueOverflow = handler;
    assertEquals([a.queueLimit, a._writer.queueLimit, a._reader.queueLimit], [2, 2, 2]);
    assertEquals([a._writer.onQueueOverflow, a._reader.onQueueOverflow], [handler, handler]);
    await post(b._writer, 1, 2, 3);
    assertEquals(a.tryRead(9), [3, 2]);
    await post(a._writer, 1, 2, 3);
    assertEquals(b.tryRead(9), [3, 2]);
    assertThrows(() => a.queueLimit = -1, Error, "queueLimit");
    assertEquals(a.onQueueOverflow, handler);
    a.close();
  });
}

Deno.test("queueLimit: on the ring, bursts in the pipe do not push one another out", async () => {
  const { writer, reader } = pipe({ wire: "ring" });
  for (let n = 0; n < 6; n++) await post(writer, n);
  assertEquals(reader.tryRead(2), [1, 0]); // without a limit, as many as have arrived
  reader.queueLimit = 2;
  assertEquals([reader.tryRead(9), reader.tryRead(9), reader.tryRead()], [[2], [3], 4]);
  reader.queueLimit = null;
  assertEquals(reader.tryRead(9), [5]);
});

Deno.test("queueLimit: on the mailbox, what waits for the reader is in the queue", async () => {
  const { writer, reader } = pipe({ wire: "mailbox", queueLimit: 2 });
  await post(writer, "first");
  const posted: Promise<void>[] = [];
  for (let n = 0; n < 5; n++) {
    posted.push(writer.postMessage(n));
    await turn();
  }
  assertEquals(reader.tryRead(), "first");
  await within(Promise.all(posted));
  assertEquals(reader.tryRead(9), [4, 3]); // one burst, cut to the limit
});
