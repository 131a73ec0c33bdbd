import { checkPackage, Package, type Problem } from "@arethetypeswrong/core";
import { assertEquals, assertNotEquals } from "@std/assert";
import { publint } from "publint";
import { ENTRIES as ALL, type Entry } from "./build_entries.ts";
import { librariesOf, makePackage, makeUntyped, manifest, readme } from "./build_package.ts";
import type { PackageFile } from "./build_package.ts";
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

/** Made once, for all tests that look at it. */
let made: Promise<PackageFile[]> | undefined;
const wholePackage = () => made ??= makePackage(ROOT).finally(stopBundler);

Deno.test("makePackage: what package.json and the declarations name is there", async () => {
  const files = await wholePackage();
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

Deno.test("publint finds nothing wrong with the package", async () => {
  const files = await wholePackage();
  assertEquals(await lint(files), []);
  const without = files.filter(({ path }) => path !== "types/more/hub.d.ts");
  assertEquals(await lint(without), ["FILE_DOES_NOT_EXIST exports ./hub types"]);
});

Deno.test("attw finds declarations wherever TypeScript looks for modules", async () => {
  const files = await wholePackage();
  // A global has no declarations of its own: they would be those of the module.
  const untyped = ["bundler", "node16-cjs", "node16-esm"].flatMap((kind) => [
    `UntypedResolution ${kind} ./global`,
    `UntypedResolution ${kind} ./sab-message-port/global`,
  ]);
  assertEquals(await attw(files), untyped);
  const without = files.filter(({ path }) => path !== "types/more/hub.d.ts");
  assertNotEquals(await attw(without), untyped);
});

/** What publint has to say, as the code and the place in package.json of each message. */
async function lint(files: PackageFile[]): Promise<string[]> {
  const packed = files.map(({ path, text }) => ({
    name: `package/${path}`,
    data: new TextEncoder().encode(text).buffer,
  }));
  const { messages } = await publint({ pkgDir: "package", strict: true, pack: { files: packed } });
  return messages.map(({ code, path }) => [code, ...path].join(" "));
}

/**
 * What `attw` would print, except two things that hold for every package of modules alone: what
 * does not know `exports` finds no entries, and CommonJS needs a Node that can require a module.
 */
async function attw(files: PackageFile[]): Promise<string[]> {
  const { version } = JSON.parse(files.find(({ path }) => path === "package.json")!.text);
  const tree = files.map(({ path, text }) => [`/node_modules/millrace/${path}`, text]);
  const result = await checkPackage(new Package(Object.fromEntries(tree), "millrace", version));
  if (!result.types) return ["no types"];
  const shown = (problem: Problem) => {
    if (!("entrypoint" in problem)) return JSON.stringify(problem);
    return `${problem.kind} ${problem.resolutionKind} ${problem.entrypoint}`;
  };
  return result.problems.map(shown)
    .filter((line) => !/^CJSResolvesToESM | node10 /.test(line)).sort();
}
