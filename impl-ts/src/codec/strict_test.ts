import { assertEquals, assertRejects, assertStrictEquals, assertThrows } from "@std/assert";
import { json } from "./json.ts";
import { Port, Segment, Writer } from "../mod.ts";
import { CallError, remote, serve } from "../call/call.ts";
import { Hub } from "../more/hub.ts";
import { readMany, writeMany } from "../more/many.ts";

class Point {
  x = 1;
}

/** Values that JSON cannot carry, and what the error says of each. */
const LOST: [unknown, string][] = [
  [{ users: [0, 1, 2, { born: new Date(0) }] }, "$.users[3].born, an instance of Date"],
  [new Map([[1, 2]]), "$, an instance of Map"],
  [[new Set()], "$[0], an instance of Set"],
  [{ a: { b: new ArrayBuffer(1) } }, "$.a.b, an instance of ArrayBuffer"],
  [{ bytes: Uint8Array.of(1) }, "$.bytes, an instance of Uint8Array"],
  [[1, NaN], "$[1], NaN"],
  [{ x: -Infinity }, "$.x, -Infinity"],
  [[undefined], "$[0], undefined"],
  // deno-lint-ignore no-sparse-arrays
  [[1, , 2], "$[1], undefined"],
  [{ f() {} }, "$.f, a function"],
  [[Symbol()], "$[0], a symbol"],
  [{ n: [1n] }, "$.n[0], a bigint"],
  [{ p: new Point() }, "$.p, an instance of Point"],
  [{ r: /x/ }, "$.r, an instance of RegExp"],
  [{ e: new Error("x") }, "$.e, an instance of Error"],
  [Object(1), "$, an instance of Number"],
  [{ a: { toJSON: () => 1 } }, "$.a, which has a toJSON"],
  [{ a: Object.create({ b: 1 }) }, "$.a, an instance of Object"],
];

/** Values that JSON carries. */
const KEPT: unknown[] = [
  null,
  0.5,
  "\ud800",
  [],
  [[], {}, [{ a: null, b: [true, "x"] }]],
  { "": 1, "a b": { 7: [] } },
];

Deno.test("strict: what JSON cannot carry is refused, with its key", async () => {
  using here = Port.create<unknown>({ codec: json({ strict: true }) });
  for (const [value, must] of LOST) {
    const text = `Cannot write message: JSON cannot carry ${must}`;
    assertEquals(assertThrows(() => here.write(value), TypeError).message, text);
    assertEquals(assertThrows(() => here.tryWrite(value), TypeError).message, text);
    assertEquals(assertThrows(() => here.postMessage(value), TypeError).message, text);
    assertEquals(assertThrows(() => writeMany(here, [1, value]), TypeError).message, text);
    assertEquals((await assertRejects(() => here.writeAsync(value), TypeError)).message, text);
  }
  using there = Port.attach<unknown>(here.memory);
  for (let count = LOST.length; count > 0; count--) assertEquals(there.read(), 1);
  assertStrictEquals(there.tryRead(), undefined);
});

Deno.test("strict: arguments, results, items and data of errors are refused as well", async () => {
  const codec = json({ strict: true });
  using here = Port.create({ codec });
  using there = Port.attach(here.memory, { codec });
  const api = {
    ask: (index: number) => LOST[index]![0],
    *list(index: number) {
      yield LOST[index]![0];
    },
    fail(index: number) {
      throw Object.assign(new Error("told"), { data: LOST[index]![0] });
    },
    same: (value: unknown) => value,
  };
  serve(there, api);
  const far = remote<typeof api>(here);
  for (const [index, [value, must]] of LOST.entries()) {
    const text = `Cannot write message: JSON cannot carry ${must}`;
    assertEquals((await assertRejects(() => far.same(value), TypeError)).message, text);
    assertEquals(assertThrows(() => far.notify.same(value), TypeError).message, text);
    const result = await assertRejects(() => far.ask(index), CallError);
    assertEquals([result.code, result.message], ["call.result", text]);
    const item = await assertRejects(() => far.iterate.list(index).next(), CallError);
    assertEquals([item.code, item.message], ["call.result", text]);
    const failure = await assertRejects(() => far.fail(index), CallError);
    assertEquals([failure.message, failure.data], ["told", undefined]);
  }
  for (const value of KEPT) assertEquals(await far.same(value), value);
  for (const value of ["text", undefined, Uint8Array.of(1)]) {
    assertEquals(await far.same(value), value);
  }
});

Deno.test("strict: what comes back as it was is written", () => {
  using here = Port.create<unknown>({ codec: json({ strict: true }) });
  using there = Port.attach<unknown>(here.memory, { codec: json({ strict: true }) });
  const shared = { a: 1 };
  const values = [...KEPT, [shared, shared], Object.assign(Object.create(null), { a: 1 })];
  for (const value of values) {
    here.write(value);
    assertEquals(there.read(), JSON.parse(JSON.stringify(value)));
  }
  writeMany(here, KEPT);
  assertEquals(readMany(there, 9), KEPT);
  here.write(Uint8Array.of(1)); // bytes are written as bytes
  assertEquals(there.read(), Uint8Array.of(1));
  here.write({ left: undefined }); // a property that is left out reads as undefined, too
  assertEquals(there.read(), {});
  const cycle: unknown[] = [];
  cycle.push([cycle]);
  assertThrows(() => here.write(cycle), TypeError, "circular");
});

Deno.test("strict: writers and hubs have it too, and without it little is refused", () => {
  const channels = [{ writer: 0, reader: 1, capacity: 256 }];
  using writer = Writer.attach<unknown>(Segment.allocate({ endpoints: 2, channels }), {
    codec: json({ strict: true }),
  });
  assertThrows(() => writer.write([NaN]), TypeError, "$[0], NaN");
  using hub = Hub.create<unknown>(1, { codec: json({ strict: true }) });
  assertThrows(() => hub.ports[0]!.write([NaN]), TypeError, "$[0], NaN");
  using here = Port.create<unknown>();
  using there = Port.attach<unknown>(here.memory);
  here.write([NaN, new WeakMap(), /a/]);
  assertEquals(there.read(), [null, {}, {}]);
});

Deno.test("postMessage: a transfer list is refused, and helps", () => {
  using here = Port.create<unknown>();
  const bytes = new Uint8Array(4);
  for (const options of [[bytes.buffer], [], { transfer: [bytes.buffer] }]) {
    const { message } = assertThrows(() => here.postMessage(bytes, options as never), TypeError);
    assertEquals(
      message,
      "Cannot post message: nothing is transferred, values are copied; write a Uint8Array as it is",
    );
  }
  assertEquals(bytes.length, 4);
});
