import { assert, assertEquals } from "@std/assert";
import { makeUntyped } from "./build_package.ts";
import { stopBundler } from "./build_scripts.ts";
import {
  type Import,
  measureAll,
  measureImport,
  nameOf,
  sizeOf,
  sizeProblems,
  sizeTable,
  statementOf,
} from "./build_sizes.ts";

const ROOT = await Deno.realPath(`${import.meta.dirname}/..`);

Deno.test("sizeOf counts bytes, not letters", async () => {
  const { minified, gzip } = await sizeOf("ä".repeat(1000));
  assertEquals(minified, 2000);
  assert(gzip < 100);
});

const LIMIT = { minified: 1000, gzip: 500 };

Deno.test("statementOf imports some names, or all, or more than what is there", () => {
  const all: Import = { names: "*", specifier: "c", limit: LIMIT };
  assertEquals(statementOf({ ...all, names: "A, B" }), 'export { A, B } from "c";');
  assertEquals(statementOf(all), 'export * from "c";');
  const statement = 'export { D } from "millrace";\nexport * from "c";';
  assertEquals(statementOf({ ...all, over: "D" }), statement);
});

Deno.test("sizeTable shows sizes, limits and goals; of a script, the sizes", () => {
  const all: Import = { names: "*", specifier: "c", over: "D", limit: LIMIT };
  const size = { minified: 900, gzip: 400 };
  const goal = { minified: 800 };
  const rows = [{ name: nameOf(all), size, limit: LIMIT, goal }, { name: "a.js", size }];
  const lines = sizeTable(rows).split("\n").map((line) => line.trim().split(/ {2,}/));
  assertEquals(lines.slice(1), [
    ['+ * as all from "c"', "900", "1,000", "800", "400", "500"],
    ["a.js", "900", "400"],
  ]);
});

Deno.test("sizeProblems: a size above its limit, or a limit far above its size", () => {
  const problems = (minified: number) =>
    sizeProblems([{ name: "a", size: { minified, gzip: 480 }, limit: LIMIT }]);
  assertEquals(problems(1000), []);
  assertEquals(problems(900), []);
  assertEquals(problems(1001), ["a, minified: 1001 bytes, the limit is 1000"]);
  assertEquals(problems(899), ["a, minified: 899 bytes, the limit is 1000; lower it"]);
  assertEquals(sizeProblems([{ name: "a", size: { minified: 1001, gzip: 1 } }]), []);
});

Deno.test("measureImport: what is not imported is dropped", async () => {
  const files = [
    {
      path: "package.json",
      text: '{"exports":{".":{"default":"./a.js"}},"sideEffects":["./other.js"]}',
    },
    { path: "a.js", text: 'export const A = 1; export { B } from "./b.js";' },
    { path: "b.js", text: `globalThis.kept = "${"x".repeat(999)}"; export const B = 2;` },
  ];
  const size = async (names: string, over?: string) => {
    const each = { names, specifier: "millrace", limit: LIMIT, ...(over && { over }) };
    return (await measureImport(each, files)).minified;
  };
  const sizes = [await size("A"), await size("*"), await size("A", "B")];
  await stopBundler();
  assert(sizes[0]! < 100, `${sizes}`);
  assert(sizes[1]! > 999, `${sizes}`);
  assert(sizes[2]! < 100, `${sizes}`);
});

let rows: ReturnType<typeof measureAll> | undefined;

/** The sizes of the package as it is, measured once. */
async function measurePackage(): ReturnType<typeof measureAll> {
  try {
    return await (rows ??= measureAll(await makeUntyped(ROOT)));
  } finally {
    await stopBundler();
  }
}

Deno.test("the package stays within its sizes, and the limits close to them", async () => {
  assertEquals(sizeProblems(await measurePackage()), []);
});

Deno.test("the guide says sizes in thousands, a thousand or a tenth off at most", async () => {
  const measured = await measurePackage();
  const guide = await Deno.readTextFile(`${ROOT}/impl-ts/guide/compared.md`);
  const stated = [...guide.matchAll(/^\| (.*) \| (\d+) kB \| (\d+) kB \|$/gm)];
  assert(stated.length > 9, `${stated.length}`);
  for (const [line, what, ...figures] of stated) {
    const names = [...what!.matchAll(/`(\w+)`/g)].map(([, name]) => name).join(", ") || "*";
    const { minified, gzip } = measured.find((row) => row.names === names)!.size;
    const isClose = [minified, gzip].every((size, column) =>
      Math.abs(size - 1000 * Number(figures[column])) <= Math.max(1000, size / 10)
    );
    assert(isClose, `${line}: it is ${minified}, ${gzip}`);
  }
});
