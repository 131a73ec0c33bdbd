/**
 * Turns the TypeScript modules into the scripts of the npm package, with esbuild.
 *
 * @module
 */
import * as esbuild from "esbuild";
import { type Entry, globalPath } from "./build_entries.ts";
import type { PackageFile } from "./build_package.ts";

// Node 20 has all of it, and private names stay private.
const TARGET = "es2022";

const OPTIONS = {
  bundle: true,
  write: false,
  target: TARGET,
  platform: "neutral",
  charset: "ascii",
  legalComments: "none",
  logLevel: "silent",
} satisfies esbuild.BuildOptions;

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
  });
  return { path: globalPath(entry), text };
}

/** Bundles into one text. */
export async function bundleText(options: esbuild.BuildOptions): Promise<string> {
  const { outputFiles = [] } = await esbuild.build({ ...OPTIONS, ...options });
  const [file] = outputFiles;
  if (file === undefined || outputFiles.length > 1) {
    throw new Error(`Expected one file of the bundler, got ${outputFiles.length}`);
  }
  return file.text;
}

/** Ends the process that all builds share; without this, ours does not end either. */
export function stopBundler(): Promise<void> {
  return esbuild.stop();
}
