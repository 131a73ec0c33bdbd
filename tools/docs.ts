/**
 * Makes the site in `dist/docs/`: guides, specification, and the references of both languages, from
 * the files of the repository.
 *
 * @module
 */
import { ENTRIES } from "./build_entries.ts";
import { CHECKLIST, makeChecklist } from "./checklist.ts";
import { type Stage, stage } from "./docs_pages.ts";
import { writeSite, ZIG_PAGE } from "./docs_site.ts";
import { writeZigReference } from "./docs_zig.ts";
import { listFiles, readTexts } from "./files.ts";
import { asksForHelp } from "./programs.ts";
import { endOnSignals, run } from "./run.ts";

const OUT = "dist/docs";
const ZIG_TIMEOUT_MS = 10 * 60_000;
const USAGE = `Usage: ./millrace docs [--without-zig]

Makes the site in ${OUT}/: the guides, the specification, the pages of the kit and of the
benchmarks, and the references of TypeScript, of C and of Zig, with a search. Open its index.html:
it needs no server and no network.

  --without-zig  leaves out the reference of Zig, which Zig compiles for

Exit code 0: it is there. 1: something failed, a link that leads nowhere for one. 2: wrong usage.
130: interrupted.`;

/** Writes the pages as the generator wants to read them. */
async function writeStage({ files }: Stage, folder: string): Promise<void> {
  for (const { path, text } of files) {
    const place = `${folder}/${path}`;
    await Deno.mkdir(place.slice(0, place.lastIndexOf("/")), { recursive: true });
    await Deno.writeTextFile(place, text);
  }
}

async function makeZigReference(root: string, prefix: string, to: string): Promise<void> {
  const command = ["zig", "build", "docs", "--prefix", prefix];
  const options = { cwd: root, timeoutMs: ZIG_TIMEOUT_MS, echo: false };
  const { code, output } = await run(command, options);
  if (code !== 0) throw new Error(`${command.join(" ")} failed:\n${output}`);
  await writeZigReference(`${prefix}/docs`, to);
}

/** Which references to make beside the pages. */
export interface References {
  typescript: boolean;
  zig: boolean;
}

/** Makes the site in the folder `out`, and says what it does by `tell`. */
export async function makeDocs(
  root: string,
  out: string,
  references: References,
  tell: (line: string) => void,
): Promise<void> {
  const folder = await Deno.realPath(await Deno.makeTempDir({ prefix: "millrace-docs-" }));
  try {
    tell("Reading the pages ...");
    const files = await readTexts(root, await listFiles(root));
    files.push({ path: CHECKLIST, text: makeChecklist(files) });
    const laid = stage(files, references.zig);
    await writeStage(laid, `${folder}/pages`);
    tell(`Writing ${laid.pages.length} pages and the reference of TypeScript ...`);
    const entries = references.typescript ? ENTRIES : [];
    await writeSite({ root, entries, stage: laid, staged: `${folder}/pages`, out });
    if (!references.zig) return;
    tell("Compiling for the reference of Zig (a minute, the first time) ...");
    await makeZigReference(root, `${folder}/zig`, `${out}/${ZIG_PAGE}`.replace(/\/[^/]*$/, ""));
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}

/** Makes the site, and returns the exit code. */
async function main(args: string[], root: string): Promise<number> {
  const help = asksForHelp(args);
  if (help || args.some((arg) => arg !== "--without-zig")) {
    (help ? console.log : console.error)(USAGE);
    return help ? 0 : 2;
  }
  endOnSignals();
  try {
    const references = { typescript: true, zig: args.length === 0 };
    await makeDocs(root, `${root}/${OUT}`, references, (line) => console.error(line));
  } catch (error) {
    console.error((error as Error).message);
    return 1;
  }
  console.log(`Open ${root}/${OUT}/index.html`);
  return 0;
}

if (import.meta.main) {
  Deno.exit(await main(Deno.args, await Deno.realPath(`${import.meta.dirname}/..`)));
}
