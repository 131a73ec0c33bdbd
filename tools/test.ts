/**
 * Runs all tests of the repository, or those of the parts that are named.
 *
 * The last line is `N passed, N failed`, with `, N skipped` after it where tests were skipped; the
 * numbers are the runners' own, and the tests that failed are named above it. With `CI=true` or
 * `MILLRACE_REQUIRE_ALL=1`, a skipped test counts as failed: what a machine without a browser may
 * leave out, the gate must not. With `--all` the tests see `MILLRACE_TEST_ALL=1`, and those that
 * take many minutes run at their full length; Zig's run in more places than this one; and faults
 * are planted in both implementations, which `mutants`, as the first word, does alone.
 *
 * Types are not checked here but by `./millrace check`. Parts run side by side, one more than there
 * are processors, since each waits now and then; and while they do, Zig compiles what they ask for,
 * minutes long with cold caches. Of the parts that run, the first shows what it prints; what the
 * others print is shown at their end, if they failed. If nothing is shown for a while, a line says
 * what is running.
 *
 * @module
 */
import { runBeside } from "./beside.ts";
import { asksForHelp, findProgram } from "./programs.ts";
import { endOnSignals, type Outcome, run } from "./run.ts";
import { type Running, sayWhatRuns } from "./running.ts";
import { judge, judgeAbsent, requiresAll, summaryLine } from "./test_counts.ts";
import type { TestRunner, Verdict } from "./test_counts.ts";

/** Tests that one command runs; parts of one name run together. */
interface Part {
  name: string;
  runner: TestRunner;
  command: string[];
  /** It runs after all others. */
  isLast?: boolean;
  /** Only with `--all`. */
  isLong?: boolean;
  /** It is run alone where its name comes first, and what stands after that is its own. */
  takesWords?: boolean;
  /** A program without which the part cannot run. */
  needs?: string;
}

const ROOT = `${import.meta.dirname}/..`;
const DENO_TEST = [Deno.execPath(), "test", "-A", "--no-check"];
const NODE = ["impl-ts/places/node_test.ts", "impl-ts/places/node_host_test.ts"];
const BUN = "impl-ts/places/bun_test.ts";
const BROWSER = "impl-ts/places/browser_test.ts";
/** All of our ports on all carriers: as long as everything else of the kit together. */
const MATRIX = "conformance/kit_test.ts";
/**
 * In the order in which they begin: what takes longest first, so that none is left alone; before it
 * one that prints much, since that is shown.
 */
const PARTS: Part[] = [
  {
    name: "typescript",
    runner: "deno",
    command: [...DENO_TEST, `--ignore=${[...NODE, BUN, BROWSER]}`, "impl-ts"],
  },
  { name: "kit", runner: "deno", command: [...DENO_TEST, MATRIX] },
  { name: "spec", runner: "deno", command: [...DENO_TEST, "tools", "spec"] },
  { name: "kit", runner: "deno", command: [...DENO_TEST, `--ignore=${MATRIX}`, "conformance"] },
  { name: "bench", runner: "deno", command: [...DENO_TEST, "bench"] },
  // The WebAssembly and the library that come from it, in JavaScript hosts, in wasmtime and in C.
  { name: "zig", runner: "deno", command: [...DENO_TEST, "impl-zig"] },
  { name: "node", runner: "deno", command: [...DENO_TEST, ...NODE] },
  { name: "zig", runner: "zig", command: zigBuild("test") },
  { name: "zig", runner: "zig", command: zigBuild("test-musl", "test-race"), isLong: true },
  ...["aarch64", "riscv64"].map((arch): Part => ({
    name: "zig",
    runner: "zig",
    command: zigBuild(`test-${arch}`),
    isLong: true,
    ...(Deno.build.arch !== arch && { needs: `qemu-${arch}` }),
  })),
  { name: "browser", runner: "deno", command: [...DENO_TEST, BROWSER] },
  { name: "bun", runner: "deno", command: [...DENO_TEST, BUN] },
  {
    name: "mutants",
    runner: "mutants",
    command: [Deno.execPath(), "run", "-A", "--no-check", "conformance/mutants/main.ts"],
    isLong: true,
    isLast: true,
    takesWords: true,
  },
];

const USAGE = `Usage: ./millrace test [--all] [part...]
       ./millrace test mutants [--help] [word...]

Runs all tests, or the parts that are named, and ends with the line "N passed, N failed".

  typescript   the implementation in TypeScript, in Deno; its guide
  node         the npm package and the scenarios, in the pinned Node and the system's
  bun          the scenarios, in Bun
  browser      the scenarios and examples, in Chromium and Firefox
  spec         the tools of the repository, and the models, which Spin checks
  bench        the demo, and every benchmark for a moment
  kit          the conformance kit, and all of our ports by it
  zig          the implementation in Zig, natively, as WebAssembly and from C

  --all        what takes many minutes too: models and fuzzing at full length, Zig on other
               processors and under ThreadSanitizer, mutants
  mutants      plants faults in both implementations, and counts those that the kit catches

A test that this machine cannot run is skipped; with CI=true that counts as failed. Parts run side
by side, and with empty caches Zig compiles beside them at first.

Exit code 0: all passed. 1: some failed. 2: wrong usage. 130: interrupted.`;

function zigBuild(...steps: string[]): string[] {
  return ["zig", "build", ...steps, "--summary", "all"];
}

/** A part that is run alone, with words of its own: as long as somebody may want it to run. */
const ALONE_MS = 12 * 60 * 60_000;
// Four times what the slowest part takes on two cores with cold caches: only a hang gets there.
const timeoutMs = () => (Deno.env.has("MILLRACE_TEST_ALL") ? 120 : 20) * 60_000;

/** One more than there are processors: with more, what measures times would wait for its turn. */
const BESIDE = Math.min(navigator.hardwareConcurrency + 1, 4);
/** What the parts would compile when they come to it, one after the other. */
const COMPILE = ["nice", "-n", "5", "zig", "build", "programs", "-j1"];

type Times = Pick<Outcome, "seconds" | "processorSeconds">;

interface Row extends Verdict, Times {
  name: string;
}

function timesOf({ seconds, processorSeconds }: Times): string {
  const processor = processorSeconds === undefined
    ? ""
    : ` (${processorSeconds.toFixed(1)} s of a processor)`;
  return `${seconds.toFixed(1)} s${processor}`;
}

function format(rows: Row[]): string {
  const number = (value: number) => String(value).padStart(8);
  return [
    "part           passed  failed skipped seconds processor",
    ...rows.map(({ name, passed, failed, skipped, seconds, processorSeconds, notes }) =>
      [
        name.padEnd(13) + number(passed) + number(failed) + number(skipped) +
        seconds.toFixed(1).padStart(8) + (processorSeconds?.toFixed(1) ?? "-").padStart(10),
        ...notes.map((note) => `  ${name}: ${note}`),
      ].join("\n")
    ),
  ].join("\n");
}

/** Runs one part. Without `echo`, what it prints is shown at its end, and only where it failed. */
async function runPart(
  { name, runner, command, needs }: Part,
  echo: boolean,
  running: Running,
): Promise<Row> {
  const shown = command.map((word) => word === Deno.execPath() ? "deno" : word).join(" ");
  if (echo) console.log(`\n== ${name}: ${shown}`);
  if (needs !== undefined && await findProgram([needs]) === undefined) {
    const verdict = judgeAbsent(needs, requiresAll());
    console.log(`== ${name}: ${verdict.notes[0]}`);
    return { name, seconds: 0, processorSeconds: 0, ...verdict };
  }
  const end = running.begin(name);
  const outcome = await run(command, { cwd: ROOT, timeoutMs: timeoutMs(), echo });
  end();
  const verdict = judge(runner, outcome, requiresAll());
  if (!echo && verdict.failed > 0) console.log(`\n== ${name}: ${shown}\n${outcome.output}`);
  const beside = echo ? "" : `, by ${shown}`;
  console.log(`== ${name}: ${summaryLine([verdict])}, ${timesOf(outcome)}${beside}`);
  const { seconds, processorSeconds } = outcome;
  return { name, seconds, processorSeconds, ...verdict };
}

/** Runs the parts side by side, and after them those that are to be last. Rows are in order. */
async function runAll(parts: Part[]): Promise<Row[]> {
  let isEchoing = false;
  const running = sayWhatRuns();
  const job = (part: Part) => async (): Promise<Row> => {
    const echo = !isEchoing;
    isEchoing ||= echo;
    const row = await runPart(part, echo, running);
    if (echo) isEchoing = false;
    return row;
  };
  const compile = async (): Promise<undefined> => {
    console.log("== zig: compiling what the parts ask for, beside them");
    // What fails to compile fails again where it is used.
    const end = running.begin("compiling");
    const compiled = await run(COMPILE, { cwd: ROOT, timeoutMs: timeoutMs(), echo: false });
    end();
    console.log(`== zig: compiled what the parts ask for: ${timesOf(compiled)}`);
  };
  const [first, ...rest] = parts.filter(({ isLast }) => !isLast).map(job);
  const last = parts.filter(({ isLast }) => isLast).map(job);
  // A part alone compiles what it needs, and no more.
  const jobs = first === undefined ? [] : rest.length === 0 ? [first] : [first, compile, ...rest];
  const rows = [...await runBeside<Row | undefined>(jobs, BESIDE), ...await runBeside(last, 1)];
  return rows.filter((row) => row !== undefined);
}

/** Runs the parts that are named, or all, and returns the exit code. */
async function main(words: string[]): Promise<number> {
  if (words[0] !== "mutants" && asksForHelp(words)) {
    console.log(USAGE);
    return 0;
  }
  const alone = PARTS.find(({ name, takesWords }) => takesWords && name === words[0]);
  if (alone !== undefined) {
    endOnSignals();
    const command = [...alone.command, ...words.slice(1)];
    return (await run(command, { cwd: ROOT, timeoutMs: ALONE_MS, echo: true })).code;
  }
  const names = words.filter((word) => word !== "--all");
  const isAll = names.length < words.length;
  if (isAll) Deno.env.set("MILLRACE_TEST_ALL", "1");
  const unknown = names.filter((name) => !PARTS.some((part) => part.name === name));
  if (unknown.length > 0) {
    const known = [...new Set(PARTS.map((part) => part.name))].join(", ");
    console.error(`Unknown part: ${unknown.join(", ")}. The parts are ${known}; see --help.`);
    return 2;
  }
  endOnSignals();
  const rows = await runAll(
    PARTS.filter(({ name, isLong = false }) =>
      (names.length === 0 || names.includes(name)) && (isAll || !isLong)
    ),
  );
  console.log(`\n${format(rows)}\n\n${summaryLine(rows)}`);
  return rows.some((row) => row.failed > 0) ? 1 : 0;
}

if (import.meta.main) Deno.exit(await main(Deno.args));
