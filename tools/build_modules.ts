/**
 * Turns the TypeScript modules into the scripts of the npm package.
 *
 * @module
 */
import * as esbuild from "esbuild";
import { ENTRIES, type Entry, globalPath } from "./build_entries.ts";
import type { Names } from "./build_names.ts";
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
    ...shorten(await namesOf(root)),
    absWorkingDir: root,
    entryPoints: Object.fromEntries(entries.map(({ name, source }) => [name, source])),
    outdir: `${root}/out`,
    format: "esm",
    sourcemap: "linked",
    splitting: entries.length > 1,
    chunkNames: "shared",
  });
  return outputFiles.map(({ path, text }) => ({ path: path.slice(`${root}/out/`.length), text }));
}

/** An entry as one script that assigns its global: for classic workers, and pages without tools. */
export async function bundleGlobal(root: string, entry: Entry): Promise<PackageFile> {
  const text = await bundleText({
    ...shorten(await namesOf(root)),
    absWorkingDir: root,
    stdin: {
      contents: `import * as all from "./${entry.source}"; globalThis.${entry.globalName} = all;`,
      resolveDir: root,
    },
    format: "iife",
  });
  return { path: globalPath(entry), text };
}

/** The names in the sources below a root, which are the same for all scripts. */
let found: { root: string; names: Names } | undefined;

async function namesOf(root: string): Promise<Names> {
  if (found?.root !== root) {
    // Not before it is needed: it loads the compiler.
    const { findNames } = await import("./build_names.ts");
    found = { root, names: findNames(root, ENTRIES) };
  }
  return found.names;
}

/** Has everything made short but the names that a user can meet. */
function shorten({ classes, internal }: Names) {
  return {
    minify: true,
    mangleProps: new RegExp(`^(?:${[...internal].join("|")})$`),
    plugins: [keepClassNames(classes)],
  } satisfies esbuild.BuildOptions;
}

/** Gives classes their names at run time too, which a short name of the binding takes away. */
function keepClassNames(classes: ReadonlySet<string>): esbuild.Plugin {
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
