import { assert, assertEquals } from "@std/assert";
import { makeUntyped } from "./build_package.ts";
import { stopBundler } from "./build_scripts.ts";
import { IMPORTS, measureImport, sizeOf, statementOf } from "./build_sizes.ts";

const ROOT = await Deno.realPath(`${import.meta.dirname}/..`);

Deno.test("sizeOf counts bytes, not letters", async () => {
  const { minified, gzip } = await sizeOf("ä".repeat(1000));
  assertEquals(minified, 2000);
  assert(gzip < 100);
});

Deno.test("statementOf imports some names, or all", () => {
  const limit = { minified: 0, gzip: 0 };
  assertEquals(statementOf({ names: "A, B", specifier: "c", limit }), 'export { A, B } from "c";');
  assertEquals(statementOf({ names: "*", specifier: "c", limit }), 'export * from "c";');
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
  const size = async (names: string) => {
    const limit = { minified: 0, gzip: 0 };
    return (await measureImport({ names, specifier: "millrace", limit }, files)).minified;
  };
  const sizes = [await size("A"), await size("*")];
  await stopBundler();
  assert(sizes[0]! < 100, `${sizes}`);
  assert(sizes[1]! > 999, `${sizes}`);
});

Deno.test("the package stays within its sizes, and the limits close to them", async () => {
  const files = await makeUntyped(ROOT);
  const problems: string[] = [];
  for (const each of IMPORTS) {
    const size = await measureImport(each, files);
    for (const unit of ["minified", "gzip"] as const) {
      const [is, limit] = [size[unit], each.limit[unit]];
      const share = is / limit;
      if (share > 1 || share < 0.9) {
        problems.push(`${statementOf(each)} ${unit}: ${is} of ${limit}`);
      }
    }
  }
  await stopBundler();
  assertEquals(problems, []);
});
