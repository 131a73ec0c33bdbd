/**
 * The one gate before a commit: format, lint, types, generated files, clauses, sizes of bundles,
 * house rules.
 *
 * All steps run, so that one look shows everything that is wrong; the output of a step is shown
 * only when it failed. Types are checked once, beside the other steps: with a cold cache that takes
 * as long as all of them.
 *
 * @module
 */
import { listFiles } from "./files.ts";
import { asksForHelp } from "./programs.ts";
import { endOnSignals, run } from "./run.ts";
import { sayWhatRuns } from "./running.ts";

/** One thing to check, by one command. */
interface Step {
  name: string;
  command: string[];
}

const TIMEOUT_MS = 10 * 60_000;
const USAGE = `Usage: ./millrace check

The gate before a commit. All steps run, and the output of those that failed is shown:

  types               deno check, of everything
  format, lint        deno fmt, zig fmt, deno lint
  documentation       every public symbol has a doc comment
  publishing          the types that the registry wants stated
  generated files     are what ./millrace generate writes
  clauses and links   citations of clauses and links of pages lead to what exists
  cases of clauses    every clause is shown by a case, a test or a model
  sizes               what a bundler makes of the package's imports is within its limits
  house rules         names, lengths of files and lines, order of imports

It changes no file: deno fmt and zig fmt format, ./millrace generate writes.

Exit code 0: all passed. 1: some failed. 2: wrong usage. 130: interrupted.`;

function steps(paths: string[], entries: string[]): Step[] {
  const deno = (...args: string[]) => [Deno.execPath(), ...args];
  const test = (path: string) => deno("test", "-A", "--no-check", path);
  const zig = paths.filter((path) => /\.(zig|zon)$/.test(path));
  return [
    { name: "types", command: deno("check", ".") },
    { name: "format TypeScript", command: deno("fmt", "--check") },
    { name: "format Zig", command: ["zig", "fmt", "--check", ...zig] },
    { name: "lint", command: deno("lint") },
    { name: "documentation", command: deno("doc", "--lint", ...entries) },
    // Refuses types that a user's compiler would have to work out; those that are wrong, the first.
    { name: "publishing", command: deno("publish", "--dry-run", "--allow-dirty", "--no-check") },
    { name: "generated files", command: deno("run", "-A", "tools/generate.ts", "--check") },
    { name: "clauses and links", command: deno("run", "-A", "tools/clauses.ts") },
    { name: "cases of clauses", command: test("conformance/coverage_test.ts") },
    { name: "sizes", command: deno("run", "-A", "--no-check", "tools/build_sizes.ts") },
    { name: "house rules", command: test("tools/tidy_test.ts") },
  ];
}

/** The modules that are published, by their paths. */
async function listEntries(root: string): Promise<string[]> {
  const { exports } = JSON.parse(await Deno.readTextFile(`${root}/impl-ts/deno.json`));
  return Object.values<string>(exports).map((path) => path.replace(/^\./, "impl-ts"));
}

/** Runs all steps and returns the exit code. */
async function main(args: string[], root: string): Promise<number> {
  const help = asksForHelp(args);
  if (help || args.length > 0) {
    (help ? console.log : console.error)(USAGE);
    return help ? 0 : 2;
  }
  endOnSignals();
  const failed: string[] = [];
  const running = sayWhatRuns();
  const check = async ({ name, command }: Step) => {
    const end = running.begin(name);
    const outcome = await run(command, { cwd: root, timeoutMs: TIMEOUT_MS, echo: false });
    end();
    const good = outcome.code === 0 && !outcome.timedOut;
    const word = good ? "ok" : outcome.timedOut ? "TIMED OUT" : "FAILED";
    const { seconds, processorSeconds } = outcome;
    const processors = processorSeconds === undefined ? "" : processorSeconds.toFixed(1) + " s";
    const times = `${seconds.toFixed(1).padStart(6)} s ${processors.padStart(8)}`;
    console.log(`${name.padEnd(18)} ${word.padEnd(6)} ${times}`);
    if (good) return;
    failed.push(name);
    console.log(outcome.output.trimEnd().replace(/^/gm, "    "));
  };
  const [types, ...others] = steps(await listFiles(root), await listEntries(root));
  const checking = check(types!);
  for (const step of others) await check(step);
  await checking;
  console.log(failed.length === 0 ? "all checks passed" : `failed: ${failed.join(", ")}`);
  return failed.length === 0 ? 0 : 1;
}

if (import.meta.main) Deno.exit(await main(Deno.args, `${import.meta.dirname}/..`));
