/**
 * Scripts for places that run no TypeScript from many files.
 *
 * @module
 */

import { createRequire } from "node:module";
import { fileURLToPath } from "node:url";
import type { PluginBuild } from "esbuild";
import { moduleOf } from "../../../tools/build_libraries.ts";
import { bundleText } from "../../../tools/build_scripts.ts";

const HERE = import.meta.dirname!;
const ROOT = fileURLToPath(new URL("../../../", import.meta.url));
const CACHE = /[/\\]npm[/\\]/;

/** Bundles a text of imports, whose paths are relative to this folder, into one module. */
export function bundle(contents: string): Promise<string> {
  return bundleText({
    stdin: { contents, resolveDir: HERE, sourcefile: `${HERE}/entry.ts` },
    format: "esm",
    external: ["node:*"],
    // One module of many: none of them is the program.
    define: { "import.meta.main": "false" },
    plugins: [{ name: "packages", setup: resolvePackages }],
  });
}

/** Finds packages where Deno has put them: there is no folder `node_modules` to look into. */
function resolvePackages(build: PluginBuild): void {
  build.onResolve({ filter: /^[^./]/ }, ({ path, importer, kind }) => {
    if (kind === "entry-point" || path.startsWith("node:")) return undefined;
    const isOurs = importer.startsWith(ROOT) && !CACHE.test(importer);
    // The import map speaks for our files, and a package for its own.
    if (!isOurs) return { path: createRequire(importer).resolve(path) };
    return { path: moduleOf(path, ROOT) ?? fileURLToPath(import.meta.resolve(path)) };
  });
}
