/**
 * Makes `dist/npm/`, the npm package, ready for `npm pack`, and prints its sizes.
 *
 * The modules stay readable: a bundler minifies them again, and a debugger shows them. The global
 * builds are minified, since nothing comes behind them.
 *
 * @module
 */
import { ENTRIES, globalPath, specifierOf } from "./build_entries.ts";
import { makePackage, writePackage } from "./build_package.ts";
import { minifyEntry, stopBundler } from "./build_scripts.ts";

const OUT = "dist/npm";

async function gzipSize(text: string): Promise<number> {
  const packed = new Blob([text]).stream().pipeThrough(new CompressionStream("gzip"));
  return (await new Response(packed).arrayBuffer()).byteLength;
}

async function sizeRow(name: string, text: string): Promise<string> {
  const size = new TextEncoder().encode(text).length;
  const number = (value: number) => value.toLocaleString("en").padStart(10);
  return name.padEnd(34) + number(size) + number(await gzipSize(text));
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
    console.log("minified, in bytes                      whole      gzip");
    for (const entry of ENTRIES) {
      console.log(await sizeRow(`import "${specifierOf(entry)}"`, await minifyEntry(root, entry)));
      const path = globalPath(entry);
      console.log(await sizeRow(path, files.find((file) => file.path === path)!.text));
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
