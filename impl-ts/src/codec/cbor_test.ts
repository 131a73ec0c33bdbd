import { assert, assertEquals, assertInstanceOf, assertStrictEquals } from "@std/assert";
import { assertStringIncludes, assertThrows } from "@std/assert";
import { cbor } from "./cbor.ts";
import { MessageError, Port } from "../mod.ts";
import { writeMany } from "../more/many.ts";
import { lastRead } from "../more/raw.ts";

/** Sends a value through a port, and returns what is read. */
function across<T>(value: T): T {
  using here = Port.create<T>({ codec: cbor });
  using there = Port.attach<T>(here.memory, { codec: cbor });
  here.write(value);
  const read = there.read({ timeout: 1000 });
  assertEquals(lastRead(there).codec, 5);
  return read as T;
}

/** Encodes a value, copies the bytes, and decodes them. */
function again<T>(value: T): T {
  return cbor.decode(cbor.encode(value).slice());
}

/** Decodes bytes that were written by hand, following RFC 8949. */
function read(hex: string): unknown {
  return cbor.decode(
    Uint8Array.from(hex.match(/[0-9a-f]{2}/g) ?? [], (pair) => parseInt(pair, 16)),
  );
}

Deno.test("cbor: numbers come back as they were, at the edges of every length", () => {
  const numbers = [0, 23, 24, 255, 256, 65535, 65536, 2 ** 32 - 1, 2 ** 32, 2 ** 53 - 1, 2 ** 53];
  const others = [-0, 0.5, 1.1, 1e300, 5e-324, NaN, Infinity, 2 ** 64, 3.4028234663852886e38];
  for (const number of [...numbers, ...others, ...[...numbers, ...others].map((each) => -each)]) {
    assert(Object.is(across(number), number), String(number));
    if (Number.isInteger(number)) {
      assertStrictEquals(again(BigInt(number)), BigInt(number));
      assertStrictEquals(again(BigInt(number) - 1n), BigInt(number) - 1n);
    }
  }
  assertStrictEquals(again(-(2n ** 2000n)), -(2n ** 2000n));
});

Deno.test("cbor: texts come back as they were, at the edges of every length and way", () => {
  for (const unit of ["a", "ü", "€", "\u{1f600}", "\ufeff", "\0"]) {
    for (const count of [0, 1, 22, 23, 24, 25, 39, 40, 41, 254, 255, 256, 65535, 65536]) {
      const text = unit.repeat(count);
      assertStrictEquals(again(text), text);
      assertEquals(again({ [text]: 1 }), { [text]: 1 });
    }
  }
  assertStrictEquals(again(`${"a".repeat(39)}\ud83d\ude00`), `${"a".repeat(39)}\ud83d\ude00`);
});

Deno.test("cbor: what JSON cannot carry comes back as it was", () => {
  const value = {
    nothing: undefined,
    list: [undefined, null, true, false],
    map: new Map<unknown, unknown>([[1, "a"], ["1", "b"], [{ key: 1 }, new Map()], [NaN, 0]]),
    set: new Set<unknown>([1, "1", 1n, undefined]),
    date: new Date(1_700_000_000_123),
    never: new Date(NaN),
    pattern: /a\/b+/giu,
    empty: new RegExp(""),
    constructor: "x",
    "": 0,
    10: "ten",
  };
  assertEquals(across(value), value);
  assertEquals(Object.keys(across(value)), Object.keys(value));
  assertEquals(again(Object.assign(Object.create(null), { a: 1 })), { a: 1 });
});

Deno.test("cbor: every date comes back to the millisecond", () => {
  for (const most of [1, 1e4, 1e9, 1e12, 8.64e15]) {
    for (let i = 0; i <= 1000; i++) {
      const time = Math.round(most * i / 1000);
      assertStrictEquals(again(new Date(time)).getTime(), time);
      assertStrictEquals(again(new Date(0 - time)).getTime(), 0 - time);
    }
  }
});

Deno.test("cbor: buffers and typed arrays come back in memory of their own", () => {
  const bytes = Uint8Array.from({ length: 17 }, (_, i) => i);
  const types = [Uint8Array, Uint8ClampedArray, Int8Array, Uint16Array, Int16Array, Uint32Array];
  const large = [Int32Array, Float32Array, Float64Array, BigInt64Array, BigUint64Array];
  for (const Type of [...types, ...large]) {
    const array = new Type(bytes.slice(0, 16).buffer);
    const back = across({ array, odd: "x" }).array;
    assertInstanceOf(back, Type);
    assertEquals(back, array);
    assertEquals(back.buffer.byteLength, 16);
  }
  const part = new Float32Array(new Float32Array([1, 2, 3, 4]).buffer, 4, 2);
  assertEquals(again(part), new Float32Array([2, 3]));
  assertEquals(again(bytes.buffer), bytes.buffer);
  assertInstanceOf(again(bytes.buffer), ArrayBuffer);
  const view = again(new DataView(bytes.buffer, 3, 4));
  assertEquals([view.byteLength, view.byteOffset, view.getUint8(0)], [4, 0, 3]);
  assertEquals(again<Uint8Array>(new Uint8Array(new SharedArrayBuffer(2))), new Uint8Array(2));
});

Deno.test("cbor: errors come back with class, name, text, stack and cause", () => {
  for (
    const Type of [Error, EvalError, RangeError, ReferenceError, SyntaxError, TypeError, URIError]
  ) {
    const error = new Type("no", { cause: { code: 1n } });
    const back = across(error);
    assertInstanceOf(back, Type);
    const { name, message, stack, cause } = error;
    assertEquals([back.name, back.message, back.stack, back.cause], [name, message, stack, cause]);
    assertEquals(Object.keys(back), []);
  }
  class NotFound extends RangeError {
    override name = "NotFound";
  }
  const back = again(new NotFound("x"));
  assertInstanceOf(back, RangeError);
  assertEquals([back.name, back.message, "cause" in back], ["NotFound", "x", false]);
  const many = again(new AggregateError([new Error("a"), 2], "both"));
  assertInstanceOf(many, AggregateError);
  assertEquals([many.message, many.errors[0].message, many.errors[1]], ["both", "a", 2]);
  assertEquals((read("d81b8165" + "4572726f72") as Error).stack, "Error");
});

Deno.test("cbor: one object in several places is one, also within itself", () => {
  const date = new Date(0);
  const map = new Map<string, unknown>();
  const cause: Record<string, unknown> = {};
  const error = new Error("x", { cause });
  const list: unknown[] = [error];
  const value: Record<string, unknown> = { map, error, list, dates: [date, date, new Date(0)] };
  const pattern = /a/g;
  const set = new Set<unknown>([value, list, map, pattern]);
  Object.assign(value, { self: value, set, pattern });
  list.push(list);
  map.set("set", new Set([error])).set("value", value);
  cause.value = value;
  const back = across(value);
  const there = back.map as typeof map;
  assertStrictEquals(back.self, back);
  assertStrictEquals((back.list as unknown[])[1], back.list);
  assertStrictEquals((back.list as unknown[])[0], back.error);
  assertStrictEquals(there.get("value"), back);
  assertStrictEquals([...there.get("set") as typeof set][0], back.error);
  const members = [back, back.list, there, back.pattern];
  [...back.set as typeof set].forEach((each, i) => assertStrictEquals(each, members[i]));
  assertStrictEquals(((back.error as Error).cause as typeof cause).value, back);
  const [one, same, other] = back.dates as Date[];
  assertStrictEquals(one, same);
  assert(one !== other);
});

Deno.test("cbor: a map, a set and an error within themselves are refused", () => {
  const map = new Map<unknown, unknown>();
  map.set("m", { map });
  const set = new Set<unknown>();
  set.add([set]);
  const error = new Error("x");
  error.cause = error;
  const of = (value: unknown) => assertThrows(() => cbor.encode(value), TypeError).message;
  assertStringIncludes(of({ map }), '$.map.get("m").map, an instance of Map within itself');
  assertStringIncludes(of({ set }), "$.set{0}[0], an instance of Set within itself");
  assertStringIncludes(of([error]), "$[0].cause, an instance of Error within itself");
  for (const hex of ["d81cd9010281d81d00", "d81cd90103a101d81d00", "d81ca26161d81d000101"]) {
    assertThrows(() => read(hex), Error, hex.startsWith("d81cd9") ? "within itself" : "too late");
  }
});

Deno.test("cbor: of many objects, those that are shared come back as one", () => {
  const objects = Array.from({ length: 2000 }, (_, id) => ({ id, next: undefined as unknown }));
  objects.forEach((each, i) => each.next = objects[(i * 7 + 1) % objects.length]);
  const back = again(objects);
  back.forEach((each, i) => assertStrictEquals(each.next, back[(i * 7 + 1) % back.length]));
  // Few objects as well.
  for (const count of [14, 15, 16, 17]) {
    const few = Array.from({ length: count }, () => ({}));
    const twice = again([...few, ...few]);
    for (let i = 0; i < count; i++) assertStrictEquals(twice[i], twice[i + count]);
    assertEquals(new Set(twice).size, count);
  }
});

Deno.test("cbor: what it cannot carry is refused, with the path to it", () => {
  class Point {}
  const refused: [unknown, string][] = [
    [{ users: [0, { born: () => 1 }] }, "$.users[1].born, a function"],
    [Symbol("s"), "$, a symbol"],
    [[new Point()], "$[0], an instance of Point"],
    [{ "a b": new WeakMap() }, '$["a b"], an instance of WeakMap'],
    [new Map([["k", [Object(1)]]]), '$.get("k")[0], an instance of Number'],
    [new Map([[{}, Symbol.iterator]]), "$.get(…), a symbol"],
    [{ s: new Set([1, new Promise(() => {})]) }, "$.s{1}, an instance of Promise"],
    // deno-lint-ignore no-sparse-arrays
    [[1, , 2], "$[1], a hole"],
    [{ a: { ["__proto__"]: 1 } }, "$.a.__proto__, a property of that name"],
    [{ "\ud800": 1 }, '$["\\ud800"], a name with a lone surrogate'],
    [{ t: "\ud800" }, "$.t, a text with a lone surrogate"],
    [{ t: "a".repeat(100) + "\udc00" }, "$.t, a text with a lone surrogate"],
    [new SharedArrayBuffer(1), "$, an instance of SharedArrayBuffer"],
    [{ e: new Error("x", { cause: () => 1 }) }, "$.e.cause, a function"],
    [new AggregateError([1, Symbol()], "x"), "$.errors[1], a symbol"],
  ];
  using port = Port.create<unknown>({ codec: cbor });
  for (const [value, must] of refused) {
    const { message } = assertThrows(() => port.write(value), TypeError);
    assertEquals(message, `Cannot write message: CBOR cannot carry ${must}`);
  }
  assertThrows(() => port.write(undefined), TypeError, "Cannot write undefined: ");
  assertThrows(
    () =>
      port.write({
        get a() {
          throw new RangeError("own");
        },
      }),
    RangeError,
    "own",
  );
  port.write("still"); // nothing of the message before was written
  using there = Port.attach<unknown>(port.memory, { codec: cbor });
  assertEquals(there.read(), "still");
});

Deno.test("cbor: 1,024 levels cross, one more is refused", () => {
  const nested = (count: number): unknown => {
    let value: unknown = 1;
    for (let i = 0; i < count; i++) value = i % 2 === 0 ? [value] : { a: value };
    return value;
  };
  assertEquals(JSON.stringify(across(nested(1024))), JSON.stringify(nested(1024)));
  assertThrows(() => cbor.encode(nested(1025)), TypeError, "nested too deeply");
  // A value that others refer to has an additional tag.
  const chain = (count: number) => {
    const all: unknown[][] = [[]];
    while (all.length < count) all.unshift([all[0]]);
    return [all[0], all];
  };
  again(chain(500));
  assertThrows(() => cbor.encode(chain(520)), TypeError, "nested too deeply");
});

Deno.test("cbor: what others write is understood", () => {
  assertEquals(read("a201020304"), new Map([[1, 2], [3, 4]]));
  assertEquals(read("a2616101f502"), new Map<unknown, unknown>([["a", 1], [true, 2]]));
  assertEquals(read("d9d9f79f01bf6161ffff".replace("6161ff", "616101ff")), [1, { a: 1 }]);
  assertEquals(read("1bffffffffffffffff"), 2n ** 64n - 1n);
  assertEquals(read("3b001fffffffffffff"), -(2n ** 53n));
  assertEquals([read("1b0000000000000001"), read("3b0000000000000001")], [1n, -2n]);
  assertEquals(read("c074323031332d30332d32315432303a30343a30305a"), new Date(1363896240000));
  assertEquals(read("d84144000100ff"), new Uint16Array([1, 255]));
  assertEquals(read("d8524840091eb851eb851f"), new Float64Array([3.14]));
  assertEquals(read("d9524a6161"), /a/);
  assertEquals([read("c11b0000000000000002"), read("c13b0000000000000002")], [
    new Date(2000),
    new Date(-3000),
  ]);
  assertEquals(read("825f4101420203ff7f61616162ff"), [Uint8Array.of(1, 2, 3), "ab"]);
  assertEquals(read("d81ca161617f6162ff"), { a: "b" });
  assertEquals(read("82d81ca1f5d9d9f701d81d00"), [new Map([[true, 1]]), new Map([[true, 1]])]);
  const [one, other] = read("82d81c80d81d1b0000000000000000") as unknown[];
  assert(Array.isArray(one) && one === other);
  assertThrows(() => read("a1695f5f70726f746f5f5f01"), Error, "__proto__");
  assertEquals(
    read("a2695f5f70726f746f5f5e010203"),
    new Map<unknown, unknown>([["__proto_^", 1], [2, 3]]),
  );
  assertEquals([read("f93c00"), read("f97c00"), read("f90001")], [1, Infinity, 2 ** -24]);
});

Deno.test("cbor: a getter may write on another port while a value is being written", () => {
  const value = {
    get inner() {
      return again({ deep: [new Date(0)] });
    },
    behind: 1,
  };
  assertEquals(across(value), { inner: { deep: [new Date(0)] }, behind: 1 });
});

Deno.test("cbor: a reader without it drops the message, and one with it needs nothing else", () => {
  using here = Port.create<unknown>({ codec: cbor });
  using there = Port.attach<unknown>(here.memory);
  here.write(new Date(0));
  here.write("next");
  for (let i = 0; i < 2; i++) {
    const { code } = assertThrows(() => there.read(), MessageError, "codec 5");
    assertEquals(code, "message.codec");
  }
  there.write({ json: true });
  assertEquals(here.read(), { json: true });
});

Deno.test("cbor: messages larger than a ring, posted, in parts and many at once", async () => {
  using here = Port.create<unknown>({ codec: cbor, capacity: 4096 });
  using there = Port.attach<unknown>(here.memory, { codec: cbor });
  const values = [new Float64Array(5000).fill(0.5), new Map([[1, new Set([2])]]), 1n];
  for (const value of values) void here.postMessage(value);
  for (const value of values) assertEquals(await there.readAsync({ timeout: 1000 }), value);
  writeMany(there, [new Date(1), new Date(2)]);
  assertEquals([here.read(), here.read()], [new Date(1), new Date(2)]);
});
