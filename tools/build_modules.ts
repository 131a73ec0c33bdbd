/**
 * Turns the TypeScript modules into the scripts of the npm package.
 *
 * @module
 */
import * as esbuild from "esbuild";
import { ENTRIES, type Entry, globalPath, modulePath } from "./build_entries.ts";
import type { PackageFile } from "./build_package.ts";
import { bundleText, OPTIONS } from "./build_scripts.ts";

/**
 * The entries as ES modules, with their source maps, which hold the sources. What two of them need
 * stands in a module of its own: a class must exist once, or `instanceof` fails between the
 * entries. They are minified, since a fresh thread spends most of its start on reading them.
 */
export async function bundleModules(
  root: string,
  entries: readonly Entry[],
): Promise<PackageFile[]> {
  const groups = [entries.filter((each) => !each.isAlone)];
  for (const each of entries) if (each.isAlone) groups.push([each]);
  const files = await Promise.all(groups.map((group) => bundleGroup(root, group)));
  return files.flat();
}

/** Those that share what they have in common, or one that is alone. */
async function bundleGroup(root: string, entries: readonly Entry[]): Promise<PackageFile[]> {
  const names = await keepClassNames(root);
  const { outputFiles } = await esbuild.build({
    ...OPTIONS,
    absWorkingDir: root,
    entryPoints: Object.fromEntries(entries.map(({ name, source }) => [name, source])),
    outdir: `${root}/out`,
    format: "esm",
    minify: true,
    plugins: entries[0]!.isAlone ? [await shareErrors(root), names] : [names],
    sourcemap: "linked",
    splitting: entries.length > 1,
    chunkNames: "shared",
  });
  return outputFiles.map(({ path, text }) => ({ path: path.slice(`${root}/out/`.length), text }));
}

/** Has the classes of errors be those of the package itself, by which its users know them. */
async function shareErrors(root: string): Promise<esbuild.Plugin> {
  const [main] = ENTRIES as [Entry];
  const all = await import(`${root}/${main.source}`);
  const names = Object.keys(all).filter((name) => all[name].prototype instanceof Error);
  const own = "errors";
  return {
    name: own,
    setup(build) {
      build.onResolve({ filter: /\/error\.ts$/ }, ({ importer, resolveDir }) => {
        if (importer.endsWith(own)) return undefined;
        return { path: `${resolveDir}/${own}`, namespace: own, sideEffects: false };
      });
      build.onResolve({ filter: /^main$/, namespace: own }, () => {
        return { path: `./${modulePath(main)}`, external: true };
      });
      build.onLoad({ filter: /./, namespace: own }, ({ path }) => ({
        contents: `export * from "./error.ts"; export { ${names} } from "main";`,
        resolveDir: path.slice(0, -own.length - 1),
        loader: "ts",
      }));
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
