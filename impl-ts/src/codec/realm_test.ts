/**
 * Values of another realm, as a test framework, an iframe or a `vm` context makes them, are what
 * they are, not what `instanceof` of this realm says.
 */

import { assert, assertEquals, assertThrows } from "@std/assert";
import { runInNewContext } from "node:vm";
import { remote, serve } from "../call/call.ts";
import { cbor } from "./cbor.ts";
import type { Codec } from "./codec.ts";
import { json } from "./json.ts";
import { Sha1, sha256 } from "../digest/digest.ts";
import { FanoutReader, FanoutWriter } from "../fanout/fanout.ts";
import { pipe } from "../testing/fixture.ts";
import { MailboxWriter } from "../mailbox/mailbox.ts";
import { Port } from "../port/port.ts";
import { SharedProperties } from "../property/property.ts";
import { openStream } from "../stream/stream.ts";
import { Pool } from "../pool/pool.ts";
import { poolOf } from "../pool/fixture.ts";
import { writeMany } from "../more/many.ts";

/** What an expression gives in a realm of its own. */
// deno-lint-ignore no-explicit-any
function foreign(expression: string): any {
  return runInNewContext(`(${expression})`);
}

const bytes = (): Uint8Array => foreign("Uint8Array.of(1, 2, 3)");
const OWN = Uint8Array.of(1, 2, 3);

Deno.test("a realm of its own has other classes", () => {
  assert(!(bytes() instanceof Uint8Array) && ArrayBuffer.isView(bytes()));
});

Deno.test("ports: bytes of another realm are bytes", async () => {
  const own: Codec<number> = { code: 200, encode: bytes, decode: ([first]) => first! };
  for (const codec of ["json", "bytes", json({ strict: true }), cbor, own] as const) {
    const { writer, reader } = pipe({ codec: codec as Codec, capacity: 4096 });
    const expected = codec === own ? 1 : OWN;
    writer.write(bytes());
    writeMany(writer, [bytes(), bytes()]);
    await writer.writeAsync(bytes());
    for (let n = 0; n < 4; n++) assertEquals(reader.tryRead(), expected);
  }
  using here = Port.create<unknown>();
  using there = Port.attach<unknown>(here.memory);
  await here.postMessage(bytes());
  assertEquals(there.tryRead(), OWN);
});

Deno.test("fanouts, properties and mailboxes: bytes of another realm are bytes", () => {
  using writer = FanoutWriter.create<unknown>({ readers: 1, capacity: 1024 });
  using reader = FanoutReader.from(writer.handoff(0));
  writer.write(bytes());
  assertEquals(reader.tryRead(), OWN);
  using here = SharedProperties.create<{ p: unknown }>({ properties: { p: { writer: 0 } } });
  using there = SharedProperties.attach<{ p: unknown }>(here.memory, { endpoint: 1 });
  here.set("p", bytes());
  assertEquals(there.get("p"), OWN);
  using mailbox = MailboxWriter.attach(new SharedArrayBuffer(256));
  assertThrows(() => mailbox.write(bytes()), TypeError, "Cannot write bytes");
});

Deno.test("calls and pools: bytes and errors of another realm", async () => {
  using here = Port.create();
  using there = Port.attach(here.memory);
  const api = {
    echo: (value: Uint8Array) => [value instanceof Uint8Array, value.join()].join(" "),
    give: bytes,
    fail() {
      throw foreign("Object.assign(new RangeError('no'), { data: 7 })");
    },
  };
  serve(there, api);
  const far = remote<typeof api>(here);
  assertEquals(await far.echo(bytes()), "true 1,2,3");
  assertEquals(await far.give(), OWN);
  const error = await far.fail().catch((error) => error);
  assertEquals([error.remoteName, error.message, error.data], ["RangeError", "no", 7]);
  await using pool = poolOf();
  assertEquals(await pool.run(bytes(), { name: "echo" }), OWN);
});

Deno.test("a pool says what an error of another realm says, if no worker can be made", async () => {
  await using pool = new Pool(() => {
    throw foreign("new Error('no worker today')");
  });
  const error = await pool.run(1).catch((error) => error);
  assertEquals([error.code, error.message], [
    "pool.start",
    "Cannot start worker: no worker today (pool.start)",
  ]);
});

Deno.test("digests take bytes of another realm", () => {
  assertEquals(sha256(bytes()), sha256(OWN));
  assertEquals(new Sha1().update(bytes()).hex(), new Sha1().update(OWN).hex());
  const target = foreign("new Uint8Array(20)");
  new Sha1().digestInto(target);
  assertEquals(target[0], new Sha1().digest()[0]);
});

Deno.test("cbor carries every kind of value of another realm", () => {
  const values: Record<string, unknown> = {
    "new Map([[1, { a: [2] }]])": new Map([[1, { a: [2] }]]),
    "new Set(['a'])": new Set(["a"]),
    "new Date(5)": new Date(5),
    "/a/gi": /a/gi,
    "Uint8Array.of(1).buffer": Uint8Array.of(1).buffer,
    "new DataView(Uint8Array.of(1).buffer)": new DataView(Uint8Array.of(1).buffer),
    "Float64Array.of(0.5)": Float64Array.of(0.5),
    "{ list: [{ a: 1 }] }": { list: [{ a: 1 }] },
  };
  for (const [expression, expected] of Object.entries(values)) {
    assertEquals(cbor.decode(cbor.encode(foreign(expression)).slice()), expected, expression);
  }
  const errors = [
    ["new RangeError('no', { cause: 1 })", RangeError],
    ["new (class Own extends TypeError {})('no')", TypeError],
    ["new AggregateError([new Error('in')], 'no')", AggregateError],
  ] as const;
  for (const [expression, Class] of errors) {
    const error = cbor.decode(cbor.encode(foreign(expression)).slice());
    assertEquals([error.constructor, error.message], [Class, "no"], expression);
  }
  assertThrows(() => cbor.encode(foreign("new (class Point {})()")), TypeError, "Point");
  assertThrows(() => cbor.encode(foreign("new SharedArrayBuffer(1)")), TypeError);
});

Deno.test("a WebSocket may hand out buffers of another realm", async () => {
  class Socket extends EventTarget {
    readyState = WebSocket.OPEN;
    binaryType = "";
    other!: Socket;
    send(piece: Uint8Array): void {
      const data = foreign(`Uint8Array.of(${piece.join()}).buffer`);
      queueMicrotask(() => this.other.dispatchEvent(new MessageEvent("message", { data })));
    }
    close(): void {
      for (const each of [this, this.other]) {
        each.readyState = WebSocket.CLOSED;
        each.dispatchEvent(new Event("close"));
      }
    }
  }
  Object.defineProperty(Socket, Symbol.hasInstance, { value: () => true });
  const [a, b] = [new Socket(), new Socket()];
  [a.other, b.other] = [b, a];
  const [here, there] = await Promise.all(
    [a, b].map((socket) => openStream<string>(socket as unknown as WebSocket)),
  );
  void here!.postMessage("hello");
  assertEquals(await there!.readAsync({ timeout: 10_000 }), "hello");
  here!.close();
  there!.close();
});
