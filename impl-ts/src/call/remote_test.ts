/** Remote objects among code that looks at whatever it gets: loggers, JSON, templates, `await`. */

import { assertEquals } from "@std/assert";
import { inspect } from "node:util";
import { remote, serve } from "./call.ts";
import { turns, withRaw } from "./fixture.ts";
import { ports } from "../port/fixture.ts";

/** What the peer serves. */
const api = { math: { add: (a: number, b: number) => a + b }, *rows() {} };

Deno.test("a remote object answers locally what the language asks any object for", async () => {
  const [port, raw] = withRaw();
  using _port = port;
  const far = remote<typeof api>(port);
  const parts = [far, far.sync, far.iterate, far.notify, far.sync.iterate, far.with({}), far.math];
  for (const part of [...parts, far.math.add, far.sync.math, far.iterate.rows] as object[]) {
    const name = part === far.math || part === far.sync.math ? " math" : "";
    assertEquals(await part, part);
    assertEquals(JSON.stringify({ part }), "{}");
    if (name !== "") assertEquals(`${part}`, `[remote${name}]`);
    assertEquals(
      [`${part}`, part + "", part.toString(), part.toLocaleString()].map((text) =>
        text.startsWith("[remote")
      ),
      Array(4).fill(true),
    );
    assertEquals(part.valueOf() === part, true);
    assertEquals(part.constructor, undefined);
    const symbols = [Symbol.toPrimitive, Symbol.toStringTag, Symbol.iterator, inspect.custom];
    for (const symbol of symbols) assertEquals(Reflect.get(part, symbol), undefined);
    assertEquals(typeof Deno.inspect(part), "string");
    assertEquals(typeof Deno.inspect({ part }, { showProxy: true }), "string");
    assertEquals(typeof inspect(part, { showProxy: true, depth: 5 }), "string");
    assertEquals(typeof inspect([part]), "string");
    assertEquals(Object.prototype.toString.call(part), "[object Function]");
    assertEquals(Number.isNaN(Number(part)), true);
    assertEquals([part instanceof Error, part instanceof Promise], [false, false]);
    assertEquals(await Promise.all([part, (async () => await part)()]), [part, part]);
  }
  await turns();
  assertEquals(raw.take(), []); // nothing was called
});

Deno.test("methods of other names go on being called, at any depth", async () => {
  const [here, there] = ports();
  using _here = here;
  using _there = there;
  const inherited = { name: () => "name", call: () => "call", catch: () => "catch" };
  serve(there, { ...inherited, deep: { sync: () => "sync", length: () => "length" } });
  type Api = typeof inherited & { deep: { sync(): string; length(): string } };
  const far = remote<Api>(here);
  assertEquals(await Promise.all([far.name(), far.call(), far.catch()]), ["name", "call", "catch"]);
  assertEquals(await Promise.all([far.deep.sync(), far.deep.length()]), ["sync", "length"]);
});
