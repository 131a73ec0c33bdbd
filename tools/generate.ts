/**
 * Writes everything that comes from `spec/layout.json`: the constants of both implementations and
 * the tables in the chapters; what comes from the static cases, the corpus of the fuzz targets; and
 * the rounds of the digests, unrolled in TypeScript, and compiled from Zig.
 *
 * `deno task generate` writes; with `--check` it compares byte for byte, names every stale file and
 * exits 1. The results are checked in, so that a reader needs no tool to read them, and so that a
 * change of the layout shows in a review as the change of bytes that it is.
 *
 * @module
 */
import { makeChecklist } from "./checklist.ts";
import { emitReasonTexts, fillHeader } from "./emit_c.ts";
import { emitDigest } from "./emit_digest.ts";
import { emitDigestCore } from "./emit_digest_core.ts";
import { emitFuzzCorpus } from "./emit_fuzz_corpus.ts";
import { emitReasonNames, emitTypeScript } from "./emit_typescript.ts";
import { emitZig } from "./emit_zig.ts";
import { fillTables } from "./emit_tables.ts";
import { listFiles, readTexts } from "./files.ts";
import { readLayout } from "./layout.ts";
import { asksForHelp } from "./programs.ts";

const USAGE = `Usage: ./millrace generate [--check | --checklist]

Writes what comes from spec/layout.json: the constants of both implementations, the header for C,
and the tables in the chapters of spec/; from the static cases, the corpus of the fuzz targets; and
the digests in TypeScript, unrolled, and compiled from Zig where its sources have changed.

  --check       writes nothing, and names the files that are not as they must be
  --checklist   writes nothing, and prints all duties of the specification by role, in Markdown

Exit code 0: all are. 1: with --check, some are not; or the layout has a fault. 2: wrong usage.`;

const HEADERS = ["impl-zig/include/millrace.h", "impl-zig/include/millrace_fanout.h"];

/** A file and what it must hold. */
export interface GeneratedFile {
  path: string;
  text: string;
}

/** Everything that the layout below the root, and our static cases, turn into. Reads only. */
export async function generate(root: string): Promise<GeneratedFile[]> {
  const layout = await readLayout(root);
  const files: GeneratedFile[] = [
    { path: "impl-ts/src/memory/layout.ts", text: emitTypeScript(layout) },
    { path: "impl-zig/src/memory/layout.zig", text: emitZig(layout) },
    { path: "impl-zig/wasm_reasons.ts", text: emitReasonNames(layout) },
    { path: "impl-zig/src/c/reasons.zig", text: emitReasonTexts(layout) },
    { path: "impl-zig/src/testing/fuzz_corpus.txt", text: emitFuzzCorpus() },
    { path: "impl-ts/src/digest/blocks.ts", text: emitDigest() },
    { path: "impl-ts/src/digest/core_module.ts", text: await emitDigestCore(root) },
  ];
  for (const path of HEADERS) {
    const header = await Deno.readTextFile(`${root}/${path}`);
    files.push({ path, text: fillHeader(header, layout) });
  }
  const chapters: string[] = [];
  for await (const entry of Deno.readDir(`${root}/spec`)) {
    if (entry.isFile && entry.name.endsWith(".md")) chapters.push(`spec/${entry.name}`);
  }
  const texts = await Promise.all(
    chapters.sort().map(async (path) => ({
      path,
      text: await Deno.readTextFile(`${root}/${path}`),
    })),
  );
  for (const { path, text } of texts) files.push({ path, text: fillTables(text, layout, path) });
  return files;
}

/** The files that do not hold what they must; an absent file is one of them. */
export async function findStale(root: string, files: GeneratedFile[]): Promise<GeneratedFile[]> {
  const stale: GeneratedFile[] = [];
  for (const file of files) {
    if (await readIfPresent(`${root}/${file.path}`) !== file.text) stale.push(file);
  }
  return stale;
}

async function readIfPresent(path: string): Promise<string | undefined> {
  try {
    return await Deno.readTextFile(path);
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return undefined;
    throw error;
  }
}

async function write(root: string, stale: GeneratedFile[]): Promise<void> {
  for (const { path, text } of stale) {
    const full = `${root}/${path}`;
    await Deno.mkdir(full.slice(0, full.lastIndexOf("/")), { recursive: true });
    await Deno.writeTextFile(full, text);
    console.log(`wrote ${path}`);
  }
}

/** Runs the tool and returns its exit code. */
export async function main(args: string[], root: string): Promise<number> {
  const help = asksForHelp(args);
  if (help || args.length > 1 || !["--check", "--checklist"].includes(args[0] ?? "--check")) {
    (help ? console.log : console.error)(USAGE);
    return help ? 0 : 2;
  }
  if (args[0] === "--checklist") {
    console.log(makeChecklist(await readTexts(root, await listFiles(root))).trimEnd());
    return 0;
  }
  let files: GeneratedFile[];
  try {
    files = await generate(root);
  } catch (error) {
    console.error((error as Error).message);
    return 1;
  }
  const stale = await findStale(root, files);
  if (args.length === 0) {
    await write(root, stale);
    console.log(`${files.length} files, ${stale.length} written`);
    return 0;
  }
  for (const file of stale) console.error(`stale: ${file.path} (run ./millrace generate)`);
  console.log(`${files.length} files, ${stale.length} stale`);
  return stale.length === 0 ? 0 : 1;
}

if (import.meta.main) Deno.exit(await main(Deno.args, `${import.meta.dirname}/..`));
