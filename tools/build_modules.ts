/**
 * Turns the TypeScript modules into the scripts of the npm package.
 *
 * @module
 */
import * as esbuild from "esbuild";
import { ENTRIES, type Entry, globalPath, modulePath } from "./build_entries.ts";
import type { PackageFile } from "./build_package.ts";
import { bundleText, OPTIONS } from "./build_scripts.ts";

const SOURCES = "impl-ts/src";

/**
 * The entries as ES modules, with their source maps, which hold the sources. What two of them need
 * stands in one module: a class must exist once, or `instanceof` fails between the entries. They
 * are minified, since a fresh thread spends most of its start on reading them; and so an entry that
 * few import is made behind the others, on what the package itself exports, instead of cutting that
 * into more modules (measured in Node 24: from 4.6 to 6.4 ms).
 */
export async function bundleModules(
  root: string,
  entries: readonly Entry[],
): Promise<PackageFile[]> {
  const [main] = entries as [Entry];
  const late = entries.filter(({ taken }) => taken);
  const values = await readTaken(root, main, late);
  const groups = await Promise.all([
    bundle(root, entries.filter(({ taken }) => !taken), giveTaken(root, main, values)),
    ...late.map((entry) => bundle(root, [entry], take(root, entry, main, values))),
  ]);
  return groups.flat();
}

/** Those that share what they have in common, or one that takes it. */
async function bundle(
  root: string,
  entries: readonly Entry[],
  plugin: esbuild.Plugin,
): Promise<PackageFile[]> {
  const { outputFiles } = await esbuild.build({
    ...OPTIONS,
    absWorkingDir: root,
    entryPoints: Object.fromEntries(entries.map(({ name, source }) => [name, source])),
    outdir: `${root}/out`,
    format: "esm",
    minify: true,
    plugins: [plugin, await keepClassNames(root)],
    // What is installed beside the package is imported from there.
    packages: "external",
    sourcemap: "linked",
    splitting: entries.length > 1,
    chunkNames: "shared",
  });
  return outputFiles.map(({ path, text }) => ({ path: path.slice(`${root}/out/`.length), text }));
}

/** A value that the module of the package gives to entries that are made behind it. */
interface Taken {
  /** The module that has it, below the sources. */
  module: string;
  /** Its name there. */
  name: string;
  /** Its name as the package exports it: its own, or one that no declaration has. */
  outer: string;
}

/** Finds what the modules of entries import from those that they take. */
async function readTaken(
  root: string,
  main: Entry,
  entries: readonly Entry[],
): Promise<Taken[]> {
  const shown = await import(`${root}/${main.source}`);
  const found = new Map<string, Taken>();
  for (const { source, taken } of entries) {
    for (const path of await modulesOf(root, source, taken!)) {
      const text = await Deno.readTextFile(`${root}/${path}`);
      for (const [, names, target] of text.matchAll(/^import \{([^}]*)\} from "([^"]+)";$/gm)) {
        const module = moduleAt(root, target!, `${root}/${path}`);
        if (!taken!.test(module)) continue;
        const all = await import(`${root}/${SOURCES}/${module}`);
        for (const name of names!.split(",").map((each) => each.trim())) {
          if (name === "" || name.startsWith("type ")) continue;
          const outer = name in shown && shown[name] === all[name] ? name : `$${name}`;
          found.set(`${module} ${name}`, { module, name, outer });
        }
      }
    }
  }
  return [...found.values()];
}

/** The modules that an entry has of its own, from the root of the repository. */
async function modulesOf(root: string, source: string, taken: RegExp): Promise<string[]> {
  const { metafile } = await esbuild.build({
    ...OPTIONS,
    absWorkingDir: root,
    entryPoints: [source],
    outdir: `${root}/out`,
    format: "esm",
    packages: "external",
    metafile: true,
    plugins: [{
      name: "without-taken",
      setup(build) {
        build.onResolve({ filter: /^\.\.?\// }, ({ path, resolveDir }) => {
          return taken.test(moduleAt(root, path, `${resolveDir}/`))
            ? { path, external: true }
            : undefined;
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

/** Adds to the module of the package what others take from there. */
function giveTaken(root: string, { source }: Entry, values: readonly Taken[]): esbuild.Plugin {
  const lines = values.filter(({ name, outer }) => name !== outer).map(({ module, name, outer }) =>
    `export { ${name} as ${outer} } from "${root}/${SOURCES}/${module}";`
  );
  const namespace = "giver";
  return {
    name: namespace,
    setup(build) {
      build.onResolve({ filter: /./ }, ({ path, kind }) => {
        if (kind !== "entry-point" || !path.endsWith(source)) return undefined;
        return { path: `${root}/${source}`, namespace };
      });
      build.onLoad({ filter: /./, namespace }, ({ path }) => ({
        contents: [`export * from "${path}";`, ...lines].join("\n"),
        resolveDir: root,
      }));
    },
  };
}

/** Takes it from there. */
function take(
  root: string,
  { taken }: Entry,
  main: Entry,
  values: readonly Taken[],
): esbuild.Plugin {
  const specifier = `./${modulePath(main)}`;
  const namespace = "taker";
  return {
    name: namespace,
    setup(build) {
      build.onResolve({ filter: /^\.\.?\//, namespace: "file" }, ({ path, resolveDir }) => {
        const module = moduleAt(root, path, `${resolveDir}/`);
        return taken!.test(module) ? { path: module, namespace, sideEffects: false } : undefined;
      });
      build.onResolve({ filter: /./, namespace }, () => ({ path: specifier, external: true }));
      build.onLoad({ filter: /./, namespace }, ({ path }) => {
        const own = values.filter(({ module }) => module === path);
        const names = own.map(({ name, outer }) => `${outer} as ${name}`);
        return { contents: `export { ${names} } from "${specifier}";` };
      });
    },
  };
}

/** An entry as one script that assigns its global: for classic workers, and pages without tools. */
export async function bundleGlobal(root: string, entry: Entry): Promise<PackageFile> {
  const text = await bundleText({
    absWorkingDir: root,
    stdin: {
      contents: `import * as all from "./${entry.source}"; globalThis.${entry.globalName} = all;`,
      resolveDir: root,
    },
    format: "iife",
    minify: true,
    plugins: [await keepClassNames(root)],
  });
  return { path: globalPath(entry), text };
}

/**
 * Gives the classes that are exported their names at run time too, which the short name of a
 * binding takes away: `port.constructor.name` is what a debugger shows.
 */
async function keepClassNames(root: string): Promise<esbuild.Plugin> {
  const classes = new Set<string>();
  for (const { source } of ENTRIES) {
    for (const value of Object.values(await import(`${root}/${source}`))) {
      if (typeof value === "function" && /^class\b/.test(String(value))) classes.add(value.name);
    }
  }
  const head = /^export (?:abstract )?class (\w+)[^{]*\{/gm;
  return {
    name: "class-names",
    setup(build) {
      build.onLoad({ filter: /\/src\/.*\.ts$/ }, async ({ path }) => {
        const contents = (await Deno.readTextFile(path)).replace(head, (text, name) => {
          return classes.has(name) ? `${text} static name = "${name}";` : text;
        });
        return { contents, loader: "ts" };
      });
    },
  };
}
