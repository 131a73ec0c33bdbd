/** Bytes in the fields of what calls and tasks carry; and what those refuse at any depth. */

import { writeMessage } from "../more/raw.ts";
import { cbor } from "../codec/cbor.ts";
import { poolOf } from "../pool/fixture.ts";
import { Port } from "../port/port.ts";
import { CallError, remote, serve } from "./call.ts";
import { CALL, list, RETURN, THROW, withRaw } from "./fixture.ts";
import { assert, assertEquals, assertRejects } from "@std/assert";

/** How deep JSON and CBOR nest in these tests. */
function nested(inner: unknown, depth: number): unknown {
  for (; depth > 0; depth--) inner = depth % 2 === 0 ? [inner] : { a: inner };
  return inner;
}

const own = { toJSON: (key: string) => `of ${key}` };
/** Values, each with what JSON makes of it, except that bytes stay bytes. */
const VALUES: [unknown, unknown?][] = [
  [{ strip: 3, pixels: Uint8Array.of(0, 1, 255) }],
  [[Uint8Array.of(1), new Uint8Array(0), "text", "äöü 😀", "", true, false, null]],
  [[new Uint8Array(1), 0, 23, 24, 255, 256, 65535, 65536, 2 ** 32 - 1, 2 ** 32, 2 ** 53, 1.5]],
  [[new Uint8Array(1), -1, -24, -25, -256, -257, -65537, -(2 ** 32), -(2 ** 32) - 1, -0.25]],
  [[new Uint8Array(1), NaN, Infinity, -0], [new Uint8Array(1), null, null, 0]],
  [{ b: new Uint8Array(1), u: undefined, f() {}, s: Symbol() }, { b: new Uint8Array(1) }],
  [[new Uint8Array(1), undefined, () => 1], [new Uint8Array(1), null, null]],
  [{ b: new Uint8Array(1), d: new Date(0) }, {
    b: new Uint8Array(1),
    d: "1970-01-01T00:00:00.000Z",
  }],
  [{ b: new Uint8Array(1), own, list: [own] }, {
    b: new Uint8Array(1),
    own: "of own",
    list: ["of 0"],
  }],
  [{ b: new Uint8Array(1), n: Object(1), t: Object("t"), o: Object(false) }, {
    b: new Uint8Array(1),
    n: 1,
    t: "t",
    o: false,
  }],
  [{ long: new Uint8Array(70_000).fill(7), text: "x".repeat(300) }],
  [Object.fromEntries(Array.from({ length: 300 }, (_, n) => [`k${n}`, Uint8Array.of(n)]))],
  [{ b: new Uint8Array(1), ["k".repeat(30)]: "v", empty: {}, none: [] }],
  [nested(Uint8Array.of(9), 900)],
  [{
    file: new (class Buffer extends Uint8Array {
      toJSON() {
        return "no";
      }
    })(2),
  }, { file: new Uint8Array(2) }],
];

Deno.test("calls: bytes in arguments, results, items and errors come as bytes", async () => {
  using here = Port.create();
  using there = Port.attach(here.memory);
  const api = {
    echo: (...values: unknown[]) => values,
    *items(value: unknown) {
      yield value;
    },
    fail(data: unknown) {
      throw Object.assign(new Error("no"), { data });
    },
  };
  serve(there, api);
  const far = remote<typeof api>(here);
  for (const [value, expected = value] of VALUES) {
    assertEquals(await far.echo(1, value), [1, expected]);
    for await (const item of far.iterate.items(value)) assertEquals(item, expected);
    const error = await far.fail(value).catch((error) => error);
    assertEquals([error.code, error.data], ["call.thrown", expected]);
  }
});

Deno.test("pools: bytes in fields of values and results come as bytes", async () => {
  await using pool = poolOf();
  for (const [value, expected = value] of VALUES) {
    assertEquals(await pool.run(value, { name: "echo" }), expected);
  }
  const strips = VALUES.map(([value]) => value);
  const results = [];
  for await (const result of pool.map(strips, { name: "echo" })) results.push(result);
  assertEquals(results, VALUES.map(([value, expected = value]) => expected));
});

Deno.test("calls and pools refuse at any depth what they cannot carry, with its path", async () => {
  using here = Port.create();
  using there = Port.attach(here.memory);
  const api = { take: (_: unknown) => 1, give: (): unknown => ({ a: [[[new Set()]]] }) };
  serve(there, api);
  const far = remote<typeof api>(here);
  await using pool = poolOf();
  const cases: [unknown, string][] = [
    [{ a: { b: { c: [new Map()] } } }, "$.a.b.c[0], an instance of Map"],
    [{ b: new Uint8Array(1), c: [[[new Float32Array(1)]]] }, "$.c[0][0][0]"],
    [nested(new ArrayBuffer(1), 900), "an instance of ArrayBuffer"],
    [new Set(), "$, an instance of Set"],
    [{ b: new Uint8Array(1), n: 1n }, "BigInt"],
    [{ b: new Uint8Array(1), t: "\ud800" }, "lone surrogate"],
    [JSON.parse('[{"__proto__": 1}]').concat([new Uint8Array(1)]), "__proto__"],
    [nested(new Uint8Array(1), 1100), "nested too deeply"],
  ];
  const cycle: unknown[] = [new Uint8Array(1)];
  cycle.push(cycle);
  for (const [value, text] of [...cases, [cycle, "nested too deeply"] as const]) {
    await assertRejects(() => far.take(value), TypeError, text);
    await assertRejects(() => pool.run(value, { name: "echo" }), TypeError, text);
  }
  const error = await far.give().catch((error) => error);
  assert(error instanceof CallError && error.code === "call.result");
  assert(error.message.includes("$.a[0][0][0], an instance of Set"), error.message);
});

Deno.test("a port with the codec cbor reads what one without it writes", async () => {
  using here = Port.create<unknown>();
  using there = Port.attach(here.memory, { codec: cbor });
  const api = { echo: (value: unknown) => value };
  serve(there, api);
  for (const [value, expected = value] of VALUES) {
    // What it answers in CBOR has a date or a set in no case, and is read in turn.
    assertEquals(await remote<typeof api>(here).echo(value), expected);
  }
});

Deno.test("a value without bytes is written as JSON, also beside a hidden map", () => {
  const [port, raw] = withRaw();
  const own = { inside: new Map(), toJSON: () => "own" };
  remote<{ take(value: unknown): void }>(port).take({ own, list: [1] }).catch(() => {});
  const [message] = raw.take();
  assertEquals(message!.slice(3), [{ own: "own", list: [1] }]);
  port.close();
});

Deno.test("a value that is deeper than a search can reach is JSON as before", async () => {
  const [port, raw] = withRaw({ capacity: 1 << 20 });
  const deep = nested(1, 20_000);
  let isJson = true;
  try {
    JSON.stringify(deep);
  } catch {
    isJson = false; // on this engine it is none
  }
  const call = remote<{ take(value: unknown): void }>(port).take(deep);
  const outcome = await Promise.race([call.catch((error) => error.name), Promise.resolve()]);
  assertEquals(outcome, isJson ? undefined : "RangeError");
  if (isJson) assertEquals(raw.take().length, 1);
  call.catch(() => {});
  port.close();
});

/** A list of a name and a value of CBOR. */
function listOf(item: Uint8Array): Uint8Array {
  const bytes = list(["take", item]);
  bytes[8 + 8 + 4] = 5; // the codec of the second entry
  return bytes;
}

Deno.test("CBOR that is not JSON with bytes costs that call, whatever it claims", () => {
  const [port, raw] = withRaw();
  serve(port, { take: (value: unknown) => JSON.stringify(value) });
  const good = [
    "82 01 41 07",
    "a1 61 61 f6",
    "9a 00 00 00 01 20",
    "b8 01 61 61 fb 3ff8000000000000",
  ];
  const bad = [
    "", // nothing
    "01 02", // something after it
    "82 01", // ends too early
    "42 01",
    "62 61",
    "9a ff ff ff ff 01", // more items than there are bytes
    "ba ff ff ff ff 01",
    "5a ff ff ff ff 01",
    "1b 00 00 00 00 00 00 00 01", // longer than it can be
    "9f 01 ff", // without a count
    "c0 61 61", // a tag
    "d8 1c 80",
    "a1 01 02", // a key that is no text
    "a1 69 5f5f70726f746f5f5f 01", // __proto__
    "61 ff", // no UTF-8
    "f7", // undefined
    "f9 3c 00", // a short float
    "1c", // not well-formed
    "81".repeat(1025) + "01", // too deep
  ];
  const bytesOf = (hex: string) => Uint8Array.fromHex(hex.replaceAll(" ", ""));
  let id = 0;
  for (const hex of [...good, ...bad]) {
    writeMessage(raw.port, { kind: CALL, tag: ++id, codec: 4, payload: listOf(bytesOf(hex)) });
    port.tryRead();
    const [[kind, tag, name] = []] = raw.take();
    const expected = bad.includes(hex) ? [THROW, id, "message.codec"] : [RETURN, id];
    assertEquals(bad.includes(hex) ? [kind, tag, name] : [kind, tag], expected, hex);
  }
  port.close();
});

Deno.test("CBOR of many small bytes is refused before it takes much memory", () => {
  const [port, raw] = withRaw({ capacity: 8 << 20 });
  serve(port, { take: () => 1 });
  const count = 2 << 20;
  const item = new Uint8Array(5 + count).fill(0x40);
  item.set([0x9a, 0, count >> 16, 0, 0]);
  writeMessage(raw.port, { kind: CALL, tag: 1, codec: 4, payload: listOf(item) });
  port.tryRead();
  assertEquals(raw.take().map(([kind, , name]) => [kind, name]), [[THROW, "message.codec"]]);
  port.close();
});
