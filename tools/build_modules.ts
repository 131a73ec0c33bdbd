/**
 * Turns the TypeScript modules into the scripts of the npm package.
 *
 * @module
 */
import * as esbuild from "esbuild";
import { FIRST, type First, markEarly, readEarly } from "./build_early.ts";
import { entriesOf, type Entry, globalPath, modulePath } from "./build_entries.ts";
import type { PackageFile } from "./build_package.ts";
import { bundleText, OPTIONS } from "./build_scripts.ts";

const SOURCES = "impl-ts/src";

/**
 * The entries as ES modules, with their source maps, which hold the sources. They are minified,
 * since a fresh thread spends most of its start on reading them; and each is one file with what it
 * stands on: a further file took 0.8 ms of the 4 that the import took in a fresh worker (measured:
 * Node 24; in Deno 2.9 of 1.8). So an entry that few import is made after the others, on what the
 * package itself exports: a class must exist once, or `instanceof` fails between the entries. The
 * drop-in has classes of its own, and exports those of its errors.
 *
 * The names of properties stay as they are. To shorten the 250 that are neither public nor of the
 * platform would make `{ Port }` 4 % smaller, 2 % when gzipped, and its import no shorter.
 */
export async function bundleModules(
  root: string,
  entries: readonly Entry[],
): Promise<PackageFile[]> {
  const values = await readTaken(root, entries);
  const groups = await Promise.all(entries.map((entry) => bundle(root, entry, entries, values)));
  return groups.flat();
}

/** One of them, which gives to others, or takes from them. */
async function bundle(
  root: string,
  entry: Entry,
  entries: readonly Entry[],
  values: readonly Taken[],
): Promise<PackageFile[]> {
  const first = FIRST[entry.name];
  const { outputFiles } = await esbuild.build({
    ...OPTIONS,
    absWorkingDir: root,
    entryPoints: { [entry.name]: entry.source },
    outdir: `${root}/out`,
    format: "esm",
    minify: first === undefined,
    plugins: [give(root, entry, values), take(root, entry, entries, values)],
    // What is installed beside the package is imported from there.
    packages: "external",
    sourcemap: first === undefined ? "linked" : "inline",
  });
  if (first !== undefined) return await minifyEarly(outputFiles[0]!.text, modulePath(entry), first);
  return outputFiles.map(({ path, text }) => ({ path: path.slice(`${root}/out/`.length), text }));
}

/** Minifies a module whose map is in it, with the functions marked that run first. */
async function minifyEarly(text: string, path: string, first: First): Promise<PackageFile[]> {
  const { bundle: _bundle, write: _write, ...options } = OPTIONS;
  const marked = markEarly(text, await readEarly(text, first));
  const { code: minified, map } = await esbuild.transform(coverPure(marked), {
    ...options,
    format: "esm",
    minify: true,
    sourcemap: "external",
  });
  const code = uncoverPure(minified);
  return [
    { path: `${path}.map`, text: map },
    { path, text: `${code}//# sourceMappingURL=${path}.map\n` },
  ];
}

/**
 * Puts calls in the place of the comments that say of the value of a variable that to make it has
 * no effects. The bundler drops these comments where it minifies, and then those who bundle the
 * package could not leave out what they do not use.
 */
export function coverPure(text: string): string {
  return text.replaceAll(
    /^(var [\w$]+ = )\/\* @__PURE__ \*\/ (new )?([\w$.]+)\(/gm,
    (_, start, makes, name) => `${start}${makes ? "$purely_makes__" : "$is_purely_"}(${name})(`,
  );
}

/** Puts the comments back. All that follows stays in its column. */
export function uncoverPure(text: string): string {
  return text
    .replaceAll(/\$purely_makes__\(([\w$.]+)\)/g, "/*#__PURE__*/new $1")
    .replaceAll(/\$is_purely_\(([\w$.]+)\)/g, "/*#__PURE__*/$1");
}

/** A value that an entry gives to those that are made after it. */
interface Taken {
  giver: Entry;
  taker: Entry;
  /** The module that has it, below the sources. */
  module: string;
  /** Its name there. */
  name: string;
  /** Its name as the entry exports it: its own, or one that no declaration has. */
  outer: string;
}

/** Finds what the modules of entries import from those that they take. */
async function readTaken(root: string, entries: readonly Entry[]): Promise<Taken[]> {
  const found = new Map<string, Taken>();
  const given = new Map<Entry, unknown[]>();
  for (const taker of entries.filter(({ taken }) => taken)) {
    for await (const { module, name } of importsOf(root, taker)) {
      const giver = entries.find((entry) => entry.name === giverOf(taker, module));
      if (giver === undefined || (await enumsOf(root, module)).has(name)) continue;
      const shown = await import(`${root}/${giver.source}`);
      const { [name]: value } = await import(`${root}/${SOURCES}/${module}`);
      const values = given.get(giver) ?? [];
      given.set(giver, values);
      if (!values.includes(value)) values.push(value);
      // Short, as everybody reads them who imports the giver.
      const index = values.indexOf(value);
      const outer = name in shown && shown[name] === value ? name : `$${index.toString(36)}`;
      found.set(`${taker.name} ${module} ${name}`, { giver, taker, module, name, outer });
    }
  }
  return [...found.values()];
}

/** The values that the modules of an entry import from others, by the modules' paths and names. */
async function* importsOf(
  root: string,
  entry: Entry,
): AsyncGenerator<{ module: string; name: string }> {
  for (const path of await modulesOf(root, entry)) {
    const text = await Deno.readTextFile(`${root}/${path}`);
    for (const [, names, target] of text.matchAll(/^import \{([^}]*)\} from "([^"]+)";$/gm)) {
      const module = moduleAt(root, target!, `${root}/${path}`);
      for (const each of names!.split(",").map((each) => each.trim())) {
        const [name] = each.split(" as ");
        if (name && !name.startsWith("type ")) yield { module, name };
      }
    }
  }
}

/**
 * The enums of a module, by their names: each entry has its own copy, as the bundler puts their
 * members where they are used.
 */
async function enumsOf(root: string, module: string): Promise<Map<string, string>> {
  const text = await Deno.readTextFile(`${root}/${SOURCES}/${module}`);
  const found = text.matchAll(/^export const enum (\w+) \{[^]*?^\}/gm);
  return new Map([...found].map(([whole, name]) => [name!, whole]));
}

/** The name of the entry from which another one takes a module. */
function giverOf({ taken = {} }: Entry, module: string): string | undefined {
  return Object.entries(taken).find(([, pattern]) => pattern.test(module))?.[0];
}

/** The modules that an entry has of its own, from the root of the repository. */
async function modulesOf(root: string, entry: Entry): Promise<string[]> {
  const { metafile } = await esbuild.build({
    ...OPTIONS,
    absWorkingDir: root,
    entryPoints: [entry.source],
    outdir: `${root}/out`,
    format: "esm",
    packages: "external",
    metafile: true,
    plugins: [{
      name: "without-taken",
      setup(build) {
        build.onResolve({ filter: /^\.\.?\// }, ({ path, resolveDir }) => {
          const giver = giverOf(entry, moduleAt(root, path, `${resolveDir}/`));
          return giver === undefined ? undefined : { path, external: true };
        });
      },
    }],
  });
  return Object.keys(metafile.inputs);
}

/** The path below the sources of a module that another place names. */
function moduleAt(root: string, path: string, from: string): string {
  return new URL(path, `file://${from}`).pathname.slice(`${root}/${SOURCES}/`.length);
}

/** Adds to an entry what others take from there. */
function give(root: string, entry: Entry, values: readonly Taken[]): esbuild.Plugin {
  const namespace = "giver";
  return {
    name: namespace,
    setup(build) {
      build.onResolve(
        { filter: /./ },
        ({ kind }) =>
          kind === "entry-point" ? { path: `${root}/${entry.source}`, namespace } : undefined,
      );
      build.onLoad({ filter: /./, namespace }, ({ path }) => {
        const own = values.filter(({ giver, name, outer }) => giver === entry && name !== outer);
        const lines = new Map(own.map(({ module, name, outer }) => [
          outer,
          `export { ${name} as ${outer} } from "${root}/${SOURCES}/${module}";`,
        ]));
        const contents = [`export * from "${path}";`, ...lines.values()].join("\n");
        return { contents, resolveDir: root };
      });
    },
  };
}

/** Takes it from there. */
function take(
  root: string,
  entry: Entry,
  entries: readonly Entry[],
  values: readonly Taken[],
): esbuild.Plugin {
  const namespace = "taker";
  return {
    name: namespace,
    setup(build) {
      build.onResolve({ filter: /^\.\.?\//, namespace: "file" }, ({ path, resolveDir }) => {
        const module = moduleAt(root, path, `${resolveDir}/`);
        const giver = giverOf(entry, module);
        return giver === undefined ? undefined : { path: module, namespace, sideEffects: false };
      });
      build.onResolve({ filter: /./, namespace }, ({ path }) => ({ path, external: true }));
      build.onLoad({ filter: /./, namespace }, async ({ path }) => {
        const own = values.filter(({ taker, module }) => taker === entry && module === path);
        const from = modulePath(entries.find(({ name }) => name === giverOf(entry, path))!);
        const names = own.map(({ name, outer }) => `${outer} as ${name}`);
        const lines = [...(await enumsOf(root, path)).values()];
        if (names.length > 0) lines.push(`export { ${names} } from "./${from}";`);
        return { contents: lines.join("\n"), loader: "ts" };
      });
    },
  };
}

/**
 * The entries of a global as one script that assigns it: for classic workers, and pages without
 * tools.
 */
export async function bundleGlobal(root: string, entry: Entry): Promise<PackageFile> {
  const globalName = entry.globalName!;
  const parts = entriesOf(globalName);
  const lines = parts.map(({ source }, index) => `import * as part${index} from "./${source}";`);
  const all = parts.map((_, index) => `...part${index}`);
  const text = await bundleText({
    absWorkingDir: root,
    stdin: {
      contents: [...lines, `globalThis.${globalName} = { ${all} };`].join("\n"),
      resolveDir: root,
    },
    format: "iife",
    minify: true,
  });
  return { path: globalPath(entry), text };
}
