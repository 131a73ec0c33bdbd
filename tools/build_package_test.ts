import { assertEquals } from "@std/assert";
import { ENTRIES as ALL, type Entry } from "./build_entries.ts";
import { librariesOf, makePackage, makeUntyped, manifest, readme } from "./build_package.ts";
import { stopBundler } from "./build_scripts.ts";

const ROOT = await Deno.realPath(`${import.meta.dirname}/..`);
const ENTRIES: Entry[] = [
  { subpath: ".", name: "a", source: "impl-ts/src/mod.ts", globalName: "A" },
  { subpath: "./b-c", name: "b-c", source: "impl-ts/src/compat/b_c.ts", globalName: "BC" },
  { subpath: "./d", name: "d", source: "impl-ts/src/d/mod.ts" },
  { subpath: "./e", name: "e", source: "impl-ts/src/e.ts", globalName: "A" },
];

Deno.test("manifest: every entry has types and a module, and every global a script", () => {
  const { exports, optionalDependencies, sideEffects, version } = manifest("1.2.3", ENTRIES);
  assertEquals(version, "1.2.3");
  const addons = { "millrace-linux-x64": "1.2.3", "millrace-linux-arm64": "1.2.3" };
  assertEquals(optionalDependencies, addons);
  assertEquals(exports, {
    ".": { types: "./types/mod.d.ts", default: "./a.js" },
    "./b-c": { types: "./types/compat/b_c.d.ts", default: "./b-c.js" },
    "./d": { types: "./types/d/mod.d.ts", default: "./d.js" },
    "./e": { types: "./types/e.d.ts", default: "./e.js" },
    "./global": "./a.global.js",
    "./b-c/global": "./b-c.global.js",
    "./package.json": "./package.json",
  });
  assertEquals(sideEffects, ["./a.global.js", "./b-c.global.js"]);
});

Deno.test("manifest: what has no global has no script", () => {
  const { globalName: _, ...entry } = ENTRIES[1]!;
  const { exports, sideEffects } = manifest("1.2.3", [ENTRIES[0]!, entry]);
  assertEquals((exports as Record<string, unknown>)["./b-c/global"], undefined);
  assertEquals(sideEffects, ["./a.global.js"]);
});

Deno.test("librariesOf: the packages that are not our own", () => {
  const imports = {
    a: "./src/a.ts",
    "b/c": "npm:b@^1.2.3/c",
    "b/d": "npm:b@^1.2.3/d",
    "@opentelemetry/api": "npm:@opentelemetry/api@^1.10.0",
  };
  assertEquals(librariesOf(imports), {
    dependencies: { b: "^1.2.3" },
    peerDependencies: { "@opentelemetry/api": "^1.10.0" },
    peerDependenciesMeta: { "@opentelemetry/api": { optional: true } },
  });
});

Deno.test("makeUntyped: few entries import a library, the others nothing", async () => {
  const files = await makeUntyped(ROOT).finally(stopBundler);
  const statement = /\b(?:from|import)\s*\(?\s*"([\w@][\w@/-]*)"/g;
  const imports = files.filter(({ path }) => path.endsWith(".js")).map(({ path, text }) => [
    path,
    [...text.matchAll(statement)].map(([, target]) => target!).sort(),
  ]);
  const own = imports.filter(([, targets]) => targets!.length > 0);
  assertEquals(own, [
    ["cbor.js", ["cbor-x/decode", "cbor-x/encode"]],
    ["meter.js", ["hdr-histogram-js"]],
    ["meter-opentelemetry.js", ["@opentelemetry/api"]],
  ]);
});

Deno.test("both registries have the same entries, and one has a script as a module", async () => {
  const { exports } = JSON.parse(await Deno.readTextFile(`${ROOT}/impl-ts/deno.json`));
  const subpaths = ALL.map(({ subpath }): string => subpath);
  assertEquals(Object.keys(exports).sort(), [...subpaths, "./sab-message-port/global"].sort());
});

Deno.test("readme: the name of the package, and no links out of it", () => {
  assertEquals(
    readme('import { Port } from "@millrace/millrace";'),
    'import { Port } from "millrace";',
  );
  assertEquals(
    readme("`@millrace/millrace/x`, `deno add jsr:@millrace/millrace`, `@millrace/millrace`"),
    "`millrace/x`, `deno add jsr:@millrace/millrace`, `@millrace/millrace`",
  );
  assertEquals(
    readme("the [specification](../spec/README.md), a [x](y)"),
    "the specification, a x",
  );
  const kept = "see [MDN](https://example.org/a) and [below](#below)";
  assertEquals(readme(kept), kept);
  const pages = "[a](guide/ports.md#x), [b](../README.md)";
  assertEquals(readme(`${pages}, [c](guide/processes.md)`), `${pages}, c`);
});

Deno.test("makePackage: what package.json and the declarations name is there", async () => {
  const files = await makePackage(ROOT).finally(stopBundler);
  const paths = new Set(files.map(({ path }) => path));
  const text = (path: string) => files.find((file) => file.path === path)!.text;
  const exports = JSON.parse(text("package.json")).exports as Record<string, unknown>;
  const named = Object.values(exports)
    .flatMap((target) => typeof target === "string" ? [target] : Object.values(target as object));
  for (const path of ["./README.md", "./LICENSE", ...named]) {
    assertEquals([path, paths.has(path.slice(2))], [path, true]);
  }
  for (const { path, text } of files.filter(({ path }) => path.endsWith(".d.ts"))) {
    for (const [, target] of text.matchAll(/^(?:import|export) .*"(\..*)";$/gm)) {
      const place = new URL(target!, `file:///${path}`).pathname.slice(1).replace(/\.js$/, ".d.ts");
      assertEquals([path, target, paths.has(place)], [path, target, true]);
    }
  }
});

Deno.test("makePackage: both packages carry the license of the repository", async () => {
  const read = (path: string) => Deno.readTextFile(`${ROOT}/${path}`);
  assertEquals(await read("impl-ts/LICENSE"), await read("LICENSE"));
});
