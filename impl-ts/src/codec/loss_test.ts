/** What JSON would silently lose, and nobody can have meant, is refused with its path. */

import { assert, assertEquals, assertRejects, assertThrows } from "@std/assert";
import { runInNewContext } from "node:vm";
import { FanoutWriter } from "../fanout/fanout.ts";
import { MailboxWriter } from "../mailbox/mailbox.ts";
import { Port } from "../port/port.ts";
import { SharedProperties } from "../property/property.ts";
import { pipe } from "../testing/fixture.ts";
import { json } from "./json.ts";
import { writeMany } from "../more/many.ts";

const bytes = Uint8Array.of(1, 2, 3);

/** Values at the depth at which ports look, with the path that is to be told. */
const REFUSED: [unknown, string][] = [
  [{ strip: 1, pixels: bytes }, "$.pixels, an instance of Uint8Array"],
  [{ a: 1, b: new Float32Array(2) }, "$.b, an instance of Float32Array"],
  [[1, bytes], "$[1], an instance of Uint8Array"],
  [{ "two words": new Map() }, '$["two words"], an instance of Map'],
  [[new Set([1])], "$[0], an instance of Set"],
  [{ buffer: bytes.buffer }, "$.buffer, an instance of ArrayBuffer"],
  [{ view: new DataView(bytes.buffer) }, "$.view, an instance of DataView"],
  [{ memory: new SharedArrayBuffer(1) }, "$.memory, an instance of SharedArrayBuffer"],
  [
    { file: Object.assign(new (class Buffer extends Uint8Array {})(2), { toJSON: () => 1 }) },
    "file",
  ],
  [new Map([[1, 2]]), "$, an instance of Map"],
  [Float64Array.of(1), "$, an instance of Float64Array"],
  [runInNewContext("({ a: Uint8Array.of(1), b: new Map() })"), "$.a, an instance of Uint8Array"],
  [{ empty: new Uint8Array(0) }, "$.empty"],
];

/** Values that are like those, and that JSON carries. */
const TAKEN: [unknown, unknown][] = [
  [{ 0: 1, 1: 2 }, { 0: 1, 1: 2 }],
  [{ a: {}, b: [{}] }, { a: {}, b: [{}] }],
  [{ born: new Date(0) }, { born: "1970-01-01T00:00:00.000Z" }],
  [{ map: Object.assign(new Map(), { toJSON: () => "own way" }) }, { map: "own way" }],
  [{ own: { map: new Map(), toJSON: () => "own way" } }, { own: "own way" }],
  [Object.create({ inherited: new Map() }, { a: { value: 1, enumerable: true } }), { a: 1 }],
  [
    new (class Point {
      x = 1;
      y = { z: null };
    })(),
    { x: 1, y: { z: null } },
  ],
  [null, null],
];

Deno.test("ports refuse what JSON would lose, with its path", async () => {
  for (const codec of ["json", json()] as const) {
    const { writer, reader } = pipe({ codec, capacity: 4096 });
    using port = Port.create<unknown>({ codec });
    for (const [value, path] of REFUSED) {
      const refuses = (call: () => unknown) => {
        const error = assertThrows(call, TypeError, "JSON cannot carry");
        assert(error.message.includes(path) && error.message.includes("cbor"), error.message);
      };
      refuses(() => writer.write(value));
      refuses(() => writer.tryWrite(value));
      refuses(() => writeMany(writer, [1, 2, value]));
      assertEquals([reader.tryRead(), reader.tryRead(), reader.tryRead()], [1, 2, undefined]);
      await assertRejects(async () => await writer.writeAsync(value), TypeError, path);
      await assertRejects(async () => await port.postMessage(value), TypeError, path);
    }
    for (const [value, expected] of TAKEN) {
      writer.write(value);
      writeMany(writer, [value, value]);
      assertEquals([reader.tryRead(), reader.tryRead(), reader.tryRead()], [
        expected,
        expected,
        expected,
      ]);
    }
    assertThrows(() => pipe().writer.write(cyclic()), TypeError);
  }
});

function cyclic(): unknown {
  const value: Record<string, unknown> = { deep: { map: new Map() } };
  value.self = [value, { again: value }];
  return value;
}

Deno.test("fanouts, properties and mailboxes refuse what JSON would lose", () => {
  using fanout = FanoutWriter.create<unknown>({ readers: 1, capacity: 1024 });
  using properties = SharedProperties.create<{ p: unknown }>({ properties: { p: { writer: 0 } } });
  using mailbox = MailboxWriter.attach(new SharedArrayBuffer(256));
  for (const [value, path] of REFUSED) {
    assertThrows(() => fanout.write(value), TypeError, path);
    if (!ArrayBuffer.isView(value)) assertThrows(() => properties.set("p", value), TypeError, path);
    assertThrows(() => mailbox.write(value), TypeError, path);
  }
});
