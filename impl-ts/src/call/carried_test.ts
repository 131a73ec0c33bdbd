/**
 * The types refuse what calls and pools do not carry: each of these lines must not compile, which
 * the check of types sees. None of them runs.
 */

import { type Pool, work } from "../pool/pool.ts";
import { cbor } from "../codec/cbor.ts";
import { Port } from "../port/port.ts";
import { type Carried, type Lost, type Remote, remote } from "./call.ts";

interface Tree {
  readonly children: readonly Tree[];
  readonly parent?: Tree;
  readonly data: { readonly bytes: Uint8Array; born: Date };
}
interface Shape {
  readonly name: string;
  area(): number;
}
type Json = null | boolean | number | string | Json[] | { [key: string]: Json };

/** Fails to compile unless both types are the same. */
function same<A, B>(_: [A] extends [B] ? [B] extends [A] ? true : false : false): void {}

Deno.test("Carried: what calls carry is as it was, and what they do not says why", () => {
  same<Carried<Tree>, Tree>(true);
  same<Carried<Json>, Json>(true);
  same<Carried<unknown>, unknown>(true);
  same<Lost<Shape | undefined | [Date, Uint8Array]>, never>(true);
  // deno-lint-ignore no-explicit-any
  same<Lost<any>, never>(true);
  same<Lost<Map<string, number>>, ", an instance of Map">(true);
  same<Lost<{ a: { b: [{ c: Float32Array }] } }>, ".a.b[].c, an instance of Float32Array">(true);
  same<
    Lost<{ a?: ReadonlySet<Tree>; 0: Int8Array }>,
    ".a, an instance of Set" | ".0, an instance of Int8Array"
  >(true);
  same<
    Carried<{ file: ArrayBuffer }>,
    "JSON cannot carry $.file, an instance of ArrayBuffer: use the codec cbor"
  >(true);
});

const api = {
  add: (a: number, b: number) => a + b,
  strip: (job: { row: number; pixels: Uint8Array }) => job.pixels,
  search: (query: { words: Set<string> }) => query.words.size,
  inner: { index: (): Map<string, number> => new Map() },
  *rows(count: number): Generator<{ bytes: Uint8Array }> {
    for (; count > 0; count--) yield { bytes: new Uint8Array(1) };
  },
};

Deno.test("remote: arguments and results that JSON would lose do not compile", () => {
  const check = (port: Port<unknown>, whole: Port<ReturnType<typeof cbor.decode>>) => {
    const far: Remote<typeof api> = remote<typeof api>(port);
    void far.add(1, 2).then((sum: number) => sum);
    void far.strip({ row: 1, pixels: new Uint8Array(1) }).then((bytes: Uint8Array) => bytes);
    for (const { bytes } of far.sync.iterate.rows(1)) void bytes.length;
    // @ts-expect-error JSON cannot carry $.words, an instance of Set
    void far.search({ words: new Set() });
    // @ts-expect-error The same, with a deadline.
    void far.with({ timeout: 1 }).search({ words: new Set() });
    // @ts-expect-error JSON cannot carry $, an instance of Map
    void far.inner.index().then((index) => index.get("a"));
    const carried = remote<typeof api>(whole);
    void carried.search({ words: new Set() }).then((count: number) => count);
    void carried.with({ timeout: 1 }).inner.index().then((index) => index.get("a"));
    const generic = <Api extends object>(port: Port<unknown>): Remote<Api> => remote<Api>(port);
    void generic<typeof api>(port).add(1, 2);
  };
  void check;
});

Deno.test("Pool: values and results that JSON would lose do not compile", () => {
  const handlers = {
    strip: ({ pixels }: { row: number; pixels: Uint8Array }) => ({ pixels }),
    search: (query: { words: Set<string> }) => query.words.size,
    index: (_: number): Map<string, number> => new Map(),
    any: (value: unknown) => value,
  };
  const plain = work(handlers);
  const texts = work(handlers, { codec: "text", maxMessageSize: 1000 });
  const whole = work(handlers, { codec: cbor });
  const check = async (
    pool: Pool<typeof plain>,
    other: Pool<typeof texts>,
    able: Pool<typeof whole>,
  ) => {
    const { pixels } = await pool.run({ row: 1, pixels: new Uint8Array(1) }, { name: "strip" });
    void pixels.length;
    await pool.run(new Map(), { name: "any" }); // of which the type knows nothing
    // @ts-expect-error JSON cannot carry $.words, an instance of Set
    await pool.run({ words: new Set() }, { name: "search" });
    // @ts-expect-error The same.
    pool.map([{ words: new Set() }], { name: "search" });
    // @ts-expect-error The same of a worker whose codec is one of this library.
    await other.run({ words: new Set() }, { name: "search" });
    // @ts-expect-error JSON cannot carry $, an instance of Map
    (await pool.run(1, { name: "index" })).get("a");
    (await able.run(1, { name: "index" })).get("a");
    await able.run({ words: new Set<string>() }, { name: "search" });
  };
  void check;
});
