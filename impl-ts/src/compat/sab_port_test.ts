import { assert, assertEquals, assertThrows } from "@std/assert";
import { messageOf, ports, post, SMALL, turn, until, WIRES, within } from "./sab_fixture.ts";
import { SABMessagePort } from "./sab_message_port.ts";

Deno.test("SABMessagePort: its defaults", () => {
  const port = new SABMessagePort();
  assertEquals(port.buffer.byteLength, 262_144);
  assert(port._sab === port.buffer);
  assertEquals([port.queueLimit, port.onQueueOverflow, port.onmessage], [null, null, null]);
  assertEquals([port._writer.wire, port._reader.wire], ["ring", "ring"]);
  assertEquals([port._writer.isWriter, port._reader.isReader], [true, true]);
  assertEquals(new SABMessagePort("a", 512).buffer.byteLength, 524_288);
  assertEquals(new SABMessagePort("b", 64, 5).queueLimit, 5);
  const sab = new SharedArrayBuffer(65_536);
  assert(new SABMessagePort("a", sab).buffer === sab);
  assertThrows(() => new SABMessagePort("c" as "a"), Error, "side");
  assertThrows(() => new SABMessagePort("a", sab, -1), Error, "queueLimit");
});

Deno.test("SABMessagePort: postInit returns what it would send", () => {
  const port = new SABMessagePort();
  const [init, transfer] = port.postInit(null, { channel: "rpc" });
  assertEquals(init, { type: "SABMessagePort", buffer: port.buffer, channel: "rpc" });
  assertEquals([transfer.length, transfer[0] === port.buffer], [1, true]);
  assertEquals(port.postInit(), port.postInit(null, {}));
  const mailbox = new SABMessagePort("a", 64, null, { wire: "mailbox" });
  assertEquals(mailbox.postInit()[0].wire, "mailbox");
});

Deno.test("SABMessagePort: postInit sends, whatever the target makes of the list", () => {
  const port = new SABMessagePort();
  const sent: unknown[][] = [];
  const target = { postMessage: (...args: unknown[]) => void sent.push(args) };
  assertEquals(port.postInit(target, { channel: "rpc" }), undefined);
  assertEquals(sent.splice(0), [port.postInit(null, { channel: "rpc" })]);
  const strict = {
    postMessage(...args: unknown[]) {
      if (args.length > 1) throw new DOMException("not transferable", "DataCloneError");
      sent.push(args);
    },
  };
  port.postInit(strict);
  assertEquals(sent, [[{ type: "SABMessagePort", buffer: port.buffer }]]);
});

Deno.test("SABMessagePort: from takes an init message and nothing else", () => {
  const port = new SABMessagePort();
  const other = SABMessagePort.from(port.postInit()[0], 7);
  assert(other instanceof SABMessagePort && other.buffer === port.buffer);
  assertEquals([other.queueLimit, other._reader.queueLimit], [7, 7]);
  for (const wrong of [null, undefined, 5, {}, { type: "MWChannel", buffer: port.buffer }]) {
    assertThrows(() => SABMessagePort.from(wrong), Error, "Not a SABMessagePort init message");
  }
  assertThrows(() => SABMessagePort.from({ type: "SABMessagePort" }), Error, "no buffer");
  // `from` of a subclass creates an object of that subclass.
  class Own extends SABMessagePort {}
  assert(Own.from(new SABMessagePort().postInit()[0]) instanceof Own);
});

Deno.test("SABMessagePort: from learns the wire from the message, unless it is told", () => {
  const mailbox = new SABMessagePort("a", 64, null, { wire: "mailbox" });
  const [init] = mailbox.postInit();
  assertEquals(SABMessagePort.from(init)._reader.wire, "mailbox");
  const { wire: _, ...bare } = init;
  assertEquals(SABMessagePort.from(bare, null, { wire: "mailbox" })._reader.wire, "mailbox");
});

for (const wire of WIRES) {
  Deno.test(`SABMessagePort: both directions, with every read, ${wire}`, async () => {
    const { a, b } = ports(wire);
    await within(Promise.all([a.postMessage("to b"), b.postMessage("to a")]));
    assertEquals([a.tryPeek(), a.read(), b.tryPeek(), b.tryRead()], [
      "to a",
      "to a",
      "to b",
      "to b",
    ]);
    assertEquals([a.tryRead(), a.tryRead(3), a.read(1), a.tryPeek()], [null, [], null, null]);
    assertEquals([await a.asyncRead(0), await a.asyncRead(0, 2)], [null, []]);
    await post(a._writer, 1, 2, 3);
    assertEquals([await b.asyncRead(), b.read(0, true, 5)], [1, [3, 2]]);
    b.onmessage = ({ data }) => b.postMessage({ echo: data });
    assertThrows(() => b.tryRead(), Error, "onmessage");
    await within(a.postMessage("again"));
    assertEquals(await within(a.asyncRead()), { echo: "again" });
    assert(b.onmessage !== null);
    b.onmessage = null;
    a.close();
  });

  Deno.test(`SABMessagePort: a blocking read first writes what was posted, ${wire}`, () => {
    const { a, b } = ports(wire);
    a.postMessage(1);
    a.postMessage(2);
    assertEquals(b.tryRead(), null);
    assertEquals(a.tryRead(), null); // no microtask has run yet
    assertEquals(b.tryRead(9), [2, 1]);
    a.postMessage(3);
    assertEquals([a.tryPeek(), b.read()], [null, 3]);
    a.postMessage(4);
    assertEquals([a.read(1), b.read()], [null, 4]);
    a.close();
  });

  Deno.test(`SABMessagePort: a toJSON may read, ${wire}`, async () => {
    const { a, b } = ports(wire);
    const toJSON = () => {
      a.tryRead();
      return "x".repeat(8000);
    };
    const sent = Array.from({ length: 40 }, () => a.postMessage({ toJSON }));
    let count = 0;
    for (; count < sent.length; count++) assertEquals(await b.asyncRead(2000), toJSON());
    await within(Promise.all(sent));
    a.close();
  });

  Deno.test(`SABMessagePort: what a read has written settles its promise, ${wire}`, async () => {
    const { a, b } = ports(wire);
    const written = [a.postMessage(1), a.postMessage(2)];
    a.tryRead();
    written.push(a.postMessage(3));
    assertEquals(b.tryRead(9), [2, 1]);
    await within(Promise.all(written));
    assertEquals(b.tryRead(9), [3]);
    // More messages than there is room for: the rest is written when the thread yields.
    const many = Array.from({ length: 200 }, (_, n) => "x".repeat(100) + n);
    const all = Promise.all(many.map((text) => a.postMessage(text)));
    a.tryRead();
    const seen: unknown[] = [];
    while (seen.length < many.length) seen.push(await within(b.asyncRead()));
    await within(all);
    assertEquals(seen, many);
    const circle: unknown[] = [];
    circle.push(circle);
    const bad = a.postMessage(circle);
    assertEquals(a.tryRead(), null); // the error is reported by the promise
    assert((await messageOf(() => bad)).includes("circular"));
    a.close();
  });

  Deno.test(`SABMessagePort: close ends both directions, any time, ${wire}`, async () => {
    for (const first of ["a", "b"] as const) {
      const both = ports(wire);
      const reads = [both.a, both.b].map((port) => messageOf(() => port.asyncRead()));
      both.a.postMessage("lost");
      both[first].close();
      both[first].close();
      assertEquals(await Promise.all(reads), ["SABPipe disposed", "SABPipe disposed"]);
      for (const port of [both.a, both.b]) {
        for (const call of [() => port.postMessage(1), () => port.read(), () => port.tryRead()]) {
          assertThrows(call, Error, "SABPipe disposed");
        }
        assertEquals(port.buffer.byteLength, 2 * SMALL);
        port.close();
      }
    }
  });

  Deno.test(`SABMessagePort: the example of a task that is aborted, ${wire}`, async () => {
    const { a, b } = ports(wire);
    const seen: unknown[] = [];
    a.onmessage = ({ data }) => seen.push(data);
    await within(a.postMessage({ cmd: "run", task: "A" }));
    assertEquals(b.read().cmd, "run");
    b.postMessage({ progress: 1 });
    assertEquals(b.tryRead(), null);
    await until(() => seen.length === 1);
    a.postMessage({ cmd: "abort" });
    a.postMessage({ cmd: "run", task: "B" });
    await turn();
    assertEquals([b.tryRead()?.cmd, b.read().task], ["abort", "B"]);
    a.close();
  });
}
