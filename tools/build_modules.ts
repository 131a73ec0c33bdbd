/**
 * Turns the TypeScript modules into the scripts of the npm package.
 *
 * @module
 */
import * as esbuild from "esbuild";
import { ENTRIES, type Entry, globalPath } from "./build_entries.ts";
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
  const { outputFiles } = await esbuild.build({
    ...OPTIONS,
    absWorkingDir: root,
    entryPoints: Object.fromEntries(entries.map(({ name, source }) => [name, source])),
    outdir: `${root}/out`,
    format: "esm",
    minify: true,
    plugins: [await keepClassNames(root)],
    sourcemap: "linked",
    splitting: entries.length > 1,
    chunkNames: "shared",
  });
  return outputFiles.map(({ path, text }) => ({ path: path.slice(`${root}/out/`.length), text }));
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
