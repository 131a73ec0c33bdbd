/**
 * A `writeMany` that cannot write all values writes those before the failed one, and says how many.
 */

import { assert, assertEquals, assertThrows } from "@std/assert";
import type { Codec } from "../codec/codec.ts";
import { assertCode, pattern, pipe } from "../testing/fixture.ts";
import type { Reader, Writer } from "./ends.ts";
import { Port } from "../port/port.ts";
import { failEndpoint } from "../wait/state.ts";
import { abandon, claim } from "../more/lend.ts";
import { readMany, writeMany, writtenOf } from "../more/many.ts";

const WAIT = { timeout: 5000 };

/** Values that JSON cannot carry; `write` throws an error for each of them. */
const refused: Record<string, () => unknown> = {
  "undefined": () => undefined,
  "a function": () => () => {},
  "a BigInt": () => 1n,
  "a value that contains itself": () => {
    const value: { self?: unknown } = {};
    value.self = value;
    return value;
  },
  "a getter that throws": () => ({
    get bad() {
      throw new Error("no");
    },
  }),
  "a getter of toJSON that throws": () => ({
    get toJSON() {
      throw new Error("no");
    },
  }),
  "a toJSON that throws what is no error": () => ({
    toJSON() {
      throw "no";
    },
  }),
  "a proxy that throws": () =>
    new Proxy({}, {
      get() {
        throw new Error("no");
      },
    }),
};

for (const [name, make] of Object.entries(refused)) {
  Deno.test(`writeMany writes what stands before ${name}`, () => {
    for (const before of [0, 1, 3, 16, 17, 40]) {
      const { writer, reader } = pipe({ capacity: 4096 });
      const values: unknown[] = Array.from({ length: before }, (_, index) => ({ index }));
      assertEquals(thrownBy(() => writeMany(writer, [...values, make(), "behind"])), [
        thrownBy(() => writer.write(make()))[0],
      ]);
      assertEquals(writtenOf(writer), before);
      assertEquals(before === 0 ? [] : readMany(reader, 100, { timeout: 0 }), values);
      writeMany(writer, ["next"]);
      assertEquals([writtenOf(writer), reader.tryRead()], [1, "next"]);
    }
  });
}

Deno.test("writeMany writes what stands before an element that cannot be got", () => {
  for (const before of [0, 1, 3, 20]) {
    const { writer, reader } = pipe({ capacity: 4096 });
    const values = Array.from({ length: before + 2 }, (_, index) => index);
    Object.defineProperty(values, before, {
      get() {
        throw new RangeError("not there");
      },
    });
    assertThrows(() => writeMany(writer, values), RangeError, "not there");
    assertEquals(writtenOf(writer), before);
    for (let index = 0; index < before; index++) assertEquals(reader.tryRead(), index);
    assertEquals(reader.tryRead(), undefined);
  }
});

Deno.test("writeMany of bytes, text and a codec of one's own writes what stands before", () => {
  const own: Codec<number> = {
    code: 200,
    encode(value) {
      if (value === 2) throw new Error("no twos");
      return Uint8Array.of(value);
    },
    decode: ([value]) => value!,
  };
  const cases = [
    [{ codec: "bytes" as const }, [Uint8Array.of(1), Uint8Array.of(2), "text"]],
    [{ codec: "text" as const }, ["a", "b", "\ud800"]],
    [{ codec: own }, [0, 1, 2]],
  ] as const;
  for (const [options, values] of cases) {
    const { writer, reader } = pipe(options);
    assert(thrownBy(() => writeMany(writer, [...values, values[0]])).length === 1);
    assertEquals(writtenOf(writer), 2);
    assertEquals(readMany(reader, 10), values.slice(0, 2));
    assertEquals(reader.tryRead(), undefined);
  }
});

Deno.test("writeMany says how many it has written until its time is up, and can go on", () => {
  for (const capacity of [256, 1024, 4096]) {
    const { writer, reader } = pipe({ capacity });
    const values = Array.from(
      { length: 500 },
      (_, index) =>
        index % 11 === 0 ? pattern(index % 110) : { index, text: "x".repeat(index % 50) },
    );
    const seen: unknown[] = [];
    for (let done = 0, rounds = 0; done < values.length; rounds++) {
      assert(rounds < 5000, "it does not go on");
      try {
        writeMany(writer, values.slice(done), { timeout: done % 3 });
      } catch (error) {
        assertEquals((error as { code?: string }).code, "wait.timeout");
      }
      done += writtenOf(writer);
      seen.push(...drain(reader));
    }
    assertEquals(seen, values);
  }
});

Deno.test("writeMany has written nothing where it is refused, and all where it returns", () => {
  const refusals: ((writer: Writer) => void)[] = [
    (writer) => assertThrows(() => writeMany(writer, [1], { timeout: -1 }), RangeError),
    (writer) => assertThrows(() => writeMany(writer, [1], { signal: AbortSignal.abort() })),
    (writer) => {
      claim(writer, 1);
      assertThrows(() => writeMany(writer, [1]), TypeError, "a claim is open");
      abandon(writer);
    },
    (writer) => {
      writer.close();
      assertCode(() => writeMany(writer, [1]), "pipe.closed");
    },
  ];
  const { writer } = pipe({ capacity: 1024 });
  assertEquals(writtenOf(writer), 0);
  for (const refuse of refusals) {
    writeMany(writer, [1, 2, 3]);
    assertEquals(writtenOf(writer), 3);
    refuse(writer);
    assertEquals(writtenOf(writer), 0);
  }
});

Deno.test("writeMany counts what was published before its peer failed, or this end closed", () => {
  {
    const { segment, writer, reader } = pipe({ capacity: 256 });
    const values = [1, 2, {
      toJSON() {
        failEndpoint(segment, 1);
        return "x".repeat(400);
      },
    }];
    assertCode(() => writeMany(writer, values), "peer.failed");
    assertEquals([writtenOf(writer), reader.tryRead(), reader.tryRead()], [2, 1, 2]);
  }
  using here = Port.create<unknown>({ capacity: 1024 });
  using there = Port.attach(here.memory);
  const values = [1, 2, { toJSON: () => here.close() }];
  assertCode(() => writeMany(here, values), "pipe.closed");
  assertEquals(writtenOf(here), 0); // they were not published, and so are dropped
  assertCode(() => there.read(WAIT), "peer.closed");
});

/** Reads what is there, and leaves out the report of a message that was given up. */
function drain(reader: Reader): unknown[] {
  const some: unknown[] = [];
  for (;;) {
    try {
      const value = reader.tryRead();
      if (value === undefined) return some;
      some.push(value);
    } catch (error) {
      assertEquals((error as { code?: string }).code, "message.cancelled");
    }
  }
}

/** What a call throws, in an array; an empty array if it does not throw. */
function thrownBy(call: () => void): unknown[] {
  try {
    call();
    return [];
  } catch (error) {
    return [error instanceof Error ? `${error.name}: ${error.message}` : error];
  }
}
