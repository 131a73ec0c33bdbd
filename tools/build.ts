/**
 * Makes `dist/npm/`, the npm package, ready for `npm pack`, and prints its sizes; and beside it the
 * packages of the addons for Node, `dist/npm-linux-x64/` for one.
 *
 * All scripts are minified: what runs from `node_modules` is read anew by every thread. Debuggers
 * show the sources by the maps of the modules.
 *
 * @module
 */
import { globalPath, SCRIPTS } from "./build_entries.ts";
import { makePackage, writePackage, writePlatforms } from "./build_package.ts";
import { stopBundler } from "./build_scripts.ts";
import { asksForHelp } from "./programs.ts";
import { run } from "./run.ts";
import { measureAll, type Row, sizeOf, sizeTable } from "./build_sizes.ts";

const OUT = "dist/npm";
const ZIG_TIMEOUT_MS = 10 * 60_000;
const USAGE = `Usage: ./millrace build

Makes the npm package in dist/npm/, ready for npm pack, and beside it the packages of the addons for
Node, dist/npm-linux-x64/ and dist/npm-linux-arm64/. Prints what a bundler makes of its imports,
the limits of these sizes, and their goals.

Exit code 0: they are there. 1: something failed. 2: wrong usage.`;

/** Builds, prints, and returns the exit code. */
async function main(args: string[], root: string): Promise<number> {
  const help = asksForHelp(args);
  if (help || args.length > 0) {
    (help ? console.log : console.error)(USAGE);
    return help ? 0 : 2;
  }
  try {
    console.error("Writing scripts and declarations ...");
    const files = await makePackage(root);
    await writePackage(`${root}/${OUT}`, files);
    console.error("Compiling the addons (about a minute, the first time) ...");
    const zig = ["zig", "build", "node-addon"];
    const options = { cwd: root, timeoutMs: ZIG_TIMEOUT_MS, echo: false };
    const { code, output } = await run(zig, options);
    if (code !== 0) throw new Error(`${zig.join(" ")} failed:\n${output}`);
    const folders = await writePlatforms(root, `${root}/${OUT}`);
    const rows: Row[] = await measureAll(files);
    for (const path of SCRIPTS.map(globalPath)) {
      const { text } = files.find((file) => file.path === path)!;
      rows.push({ name: `${path}, whole`, size: await sizeOf(text) });
    }
    console.log(sizeTable(rows));
    console.log(`${files.length} files in ${OUT}/`);
    for (const folder of folders) {
      const { size } = await Deno.stat(`${folder}/millrace.node`);
      console.log(`the addon, ${size} bytes, in ${folder.slice(root.length + 1)}/`);
    }
    return 0;
  } finally {
    await stopBundler();
  }
}

if (import.meta.main) {
  Deno.exit(await main(Deno.args, await Deno.realPath(`${import.meta.dirname}/..`)));
}
