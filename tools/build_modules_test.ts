import { assert, assertEquals, assertThrows } from "@std/assert";
import { ENTRIES, entriesOf, modulePath, SCRIPTS } from "./build_entries.ts";
import { bundleGlobal, bundleModules, coverPure, uncoverPure } from "./build_modules.ts";
import type { PackageFile } from "./build_package.ts";
import { stopBundler } from "./build_scripts.ts";

const ROOT = await Deno.realPath(`${import.meta.dirname}/..`);

const HERE = ENTRIES.filter(({ name }) => !/^(?:cbor|meter)/.test(name));
const built = bundleModules(ROOT, ENTRIES);

/** The sources that a script was made from, by its map. */
function sourcesOf(files: PackageFile[], path: string): string[] {
  return JSON.parse(files.find((file) => file.path === `${path}.map`)!.text).sources;
}

/** Those of the package itself. */
function coreOf(files: PackageFile[]): string[] {
  return sourcesOf(files, "millrace.js")
    .filter((source) => source.endsWith(".ts") && !source.startsWith("giver:")).sort();
}

type Module = Record<string, unknown>;
type Class = { name: string; prototype: object };

/** What is used of the drop-in. */
interface Drop {
  SABPipe: new (role: string, memory: SharedArrayBuffer) => unknown;
  SegmentError: new () => Error;
  MillraceError: new () => Error;
}

/** The classes of a module, by the names under which it exports them. */
function classesOf(module: Module): [string, Class][] {
  return Object.entries(module).filter(([name, value]) =>
    /^[A-Z]/.test(name) && typeof value === "function"
  ) as [string, Class][];
}

/** The members of a prototype, and what may be done with each. */
function membersOf(prototype: object): unknown {
  return Reflect.ownKeys(prototype).map((key) => {
    const { value, get, set, ...flags } = Object.getOwnPropertyDescriptor(prototype, key)!;
    return [String(key), typeof value, typeof get, typeof set, flags];
  }).sort();
}

Deno.test("the package's classes have the names under which they are exported", async () => {
  const classes = (await modules()).flatMap(classesOf);
  assert(classes.length > 20);
  for (const [name, { name: own }] of classes) assertEquals([name, own], [name, name]);
});

Deno.test("what says of a call that it has no effects is kept, in its column", () => {
  const text = `var a = /* @__PURE__ */ f("x"), b = 1;
var c = /* @__PURE__ */ new Map([]);
function g() {
  return /* @__PURE__ */ new Set();
}
`;
  const covered = coverPure(text);
  assert(!/^var.*PURE/m.test(covered), covered);
  const bare = covered.replaceAll(" ", "");
  const back = uncoverPure(bare);
  assertEquals(back.split("\n").slice(0, 2), [
    'vara=/*#__PURE__*/f("x"),b=1;',
    "varc=/*#__PURE__*/new Map([]);",
  ]);
  const ends = (each: string) => each.split("\n").map((line) => line.length);
  assertEquals(ends(back), ends(bare));
});

Deno.test("an entry exports what its module does, and more under no such names", async () => {
  for (const [index, module] of (await modules()).entries()) {
    const { name, source } = HERE[index]!;
    const shown = Object.keys(module).filter((each) => !each.startsWith("$"));
    assertEquals([name, shown], [name, Object.keys(await import(`${ROOT}/${source}`)).sort()]);
  }
});

Deno.test("the classes have the members that their sources have, with the same flags", async () => {
  for (const [index, module] of (await modules()).entries()) {
    const sources = await import(`${ROOT}/${HERE[index]!.source}`);
    for (const [name, { prototype }] of classesOf(module)) {
      const source = sources[name] ?? { prototype };
      assertEquals([name, membersOf(prototype)], [name, membersOf(source.prototype)]);
    }
  }
});

Deno.test("the package's own module has nothing that only others need", async () => {
  const alone = await bundleModules(ROOT, ENTRIES.filter(({ taken }) => taken === undefined));
  assertEquals(coreOf(await built), coreOf(alone));
});

Deno.test("the package itself, and the drop-in, are one file each", async () => {
  for (const name of ["millrace", "sab-message-port"]) {
    const { text } = (await built).find(({ path }) => path === `${name}.js`)!;
    assertEquals(text.match(/\bfrom *"\.|\bimport *["(]/g), null);
  }
});

Deno.test("the drop-in has the classes of the errors that it throws", async () => {
  const index = HERE.findIndex(({ name }) => name === "sab-message-port");
  const { SABPipe, SegmentError, MillraceError } = (await modules())[index] as unknown as Drop;
  const error = assertThrows(() => new SABPipe("w", new SharedArrayBuffer(4)));
  assert(error instanceof SegmentError);
  assert(error instanceof MillraceError);
});

Deno.test("an entry that takes the core has nothing of it but constants", async () => {
  const files = await built;
  const core = coreOf(files);
  assert(core.length > 20);
  let count = 0;
  for (const entry of ENTRIES.filter(({ taken }) => taken?.["millrace"]?.test("port/port.ts"))) {
    const twice = sourcesOf(files, modulePath(entry)).filter((source) => core.includes(source));
    const kept = twice.filter((source) => !source.endsWith("/src/memory/layout.ts"));
    assertEquals([entry.name, kept], [entry.name, []]);
    count++;
  }
  assert(count > 5);
});

Deno.test("what a script sets its global to is all of its entries", async () => {
  for (const entry of SCRIPTS) {
    const { text } = await bundleGlobal(ROOT, entry);
    const scope: Record<string, object> = {};
    new Function("globalThis", text)(scope);
    const names = await Promise.all(
      entriesOf(entry.globalName!).map(({ source }) => import(`${ROOT}/${source}`)),
    );
    assertEquals(Object.keys(scope), [entry.globalName]);
    const wanted = names.flatMap((module) => Object.keys(module)).sort();
    assertEquals(Object.keys(scope[entry.globalName!]!).sort(), wanted);
  }
});

Deno.test.afterAll(stopBundler);

/** The entries, as the package has them, except what stands on a library, which is not here. */
async function modules(): Promise<Module[]> {
  const folder = await Deno.makeTempDir({ prefix: "millrace-names-" });
  try {
    for (const { path, text } of await built) await Deno.writeTextFile(`${folder}/${path}`, text);
    return await Promise.all(HERE.map((entry) => import(`${folder}/${modulePath(entry)}`)));
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}
