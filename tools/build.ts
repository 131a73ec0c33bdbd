/**
 * Makes `dist/npm/`, the npm package, ready for `npm pack`, and prints its sizes.
 *
 * All scripts are minified: what runs from `node_modules` is read anew by every thread. Debuggers
 * show the sources by the maps of the modules.
 *
 * @module
 */
import { globalPath, SCRIPTS } from "./build_entries.ts";
import { makePackage, writePackage } from "./build_package.ts";
import { stopBundler } from "./build_scripts.ts";
import { IMPORTS, measureImport, type Size, sizeOf } from "./build_sizes.ts";

const OUT = "dist/npm";

function sizeRow(name: string, { minified, gzip }: Size): string {
  const number = (value: number) => value.toLocaleString("en").padStart(10);
  return name.padEnd(54) + number(minified) + number(gzip);
}

/** Builds, prints, and returns the exit code. */
async function main(args: string[], root: string): Promise<number> {
  if (args.length > 0) {
    console.error("Usage: ./millrace build");
    return 2;
  }
  try {
    const files = await makePackage(root);
    await writePackage(`${root}/${OUT}`, files);
    console.log("what a bundler makes of an import, in bytes             minified      gzip");
    for (const each of IMPORTS) {
      const { names, specifier } = each;
      const shown = names === "*" ? "* as all" : `{ ${names} }`;
      console.log(sizeRow(`${shown} from "${specifier}"`, await measureImport(each, files)));
    }
    for (const path of SCRIPTS.map(globalPath)) {
      const { text } = files.find((file) => file.path === path)!;
      console.log(sizeRow(`${path}, whole`, await sizeOf(text)));
    }
    console.log(`${files.length} files in ${OUT}/`);
    return 0;
  } finally {
    await stopBundler();
  }
}

if (import.meta.main) {
  Deno.exit(await main(Deno.args, await Deno.realPath(`${import.meta.dirname}/..`)));
}
