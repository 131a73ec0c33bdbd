/**
 * Runs all tests of the repository, or those of the parts that are named.
 *
 * The last line is `N passed, N failed`, with `, N skipped` behind it where tests were skipped; the
 * numbers are the runners' own. With `CI=true` or `MILLRACE_REQUIRE_ALL=1`, a skipped test counts
 * as failed: what a machine without a browser may leave out, the gate must not. With `--all` the
 * tests see `MILLRACE_TEST_ALL=1`, and those that take many minutes run at their full length.
 *
 * @module
 */
import { endOnSignals, run } from "./run.ts";
import { judge, requiresAll, summaryLine, type Verdict } from "./test_counts.ts";

/** Tests that one command runs; parts of one name run together. */
interface Part {
  name: string;
  runner: "deno" | "zig";
  command: string[];
}

const DENO_TEST = [Deno.execPath(), "test", "-A"];
const NODE = "impl-ts/places/node_test.ts";
const BROWSER = "impl-ts/places/browser_test.ts";
const PARTS: Part[] = [
  { name: "spec", runner: "deno", command: [...DENO_TEST, "tools", "spec"] },
  {
    name: "typescript",
    runner: "deno",
    command: [...DENO_TEST, `--ignore=${NODE},${BROWSER}`, "impl-ts"],
  },
  { name: "node", runner: "deno", command: [...DENO_TEST, NODE] },
  { name: "browser", runner: "deno", command: [...DENO_TEST, BROWSER] },
  { name: "zig", runner: "zig", command: ["zig", "build", "test", "--summary", "all"] },
  // The WebAssembly that comes from it, in JavaScript hosts and in wasmtime.
  { name: "zig", runner: "deno", command: [...DENO_TEST, "impl-zig"] },
  { name: "kit", runner: "deno", command: [...DENO_TEST, "conformance"] },
  { name: "bench", runner: "deno", command: [...DENO_TEST, "bench"] },
];

// Ten times what the slowest part takes on two cores with cold caches: only a hang gets there.
const timeoutMs = () => (Deno.env.has("MILLRACE_TEST_ALL") ? 120 : 20) * 60_000;

interface Row extends Verdict {
  name: string;
  seconds: number;
}

function format(rows: Row[]): string {
  const number = (value: number) => String(value).padStart(8);
  return [
    "part           passed  failed skipped seconds",
    ...rows.map(({ name, passed, failed, skipped, seconds, notes }) =>
      [
        name.padEnd(13) + number(passed) + number(failed) + number(skipped) +
        seconds.toFixed(1).padStart(8),
        ...notes.map((note) => `  ${name}: ${note}`),
      ].join("\n")
    ),
  ].join("\n");
}

/** Runs the parts and returns the exit code. */
async function main(words: string[], root: string): Promise<number> {
  const names = words.filter((word) => word !== "--all");
  if (names.length < words.length) Deno.env.set("MILLRACE_TEST_ALL", "1");
  const unknown = names.filter((name) => !PARTS.some((part) => part.name === name));
  if (unknown.length > 0) {
    const known = [...new Set(PARTS.map((part) => part.name))].join(", ");
    console.error(`Unknown part: ${unknown.join(", ")}. The parts are ${known}.`);
    return 2;
  }
  endOnSignals();
  const rows: Row[] = [];
  for (const { name, runner, command } of PARTS) {
    if (names.length > 0 && !names.includes(name)) continue;
    const shown = command.map((word) => word === Deno.execPath() ? "deno" : word).join(" ");
    console.log(`\n== ${name}: ${shown}`);
    const outcome = await run(command, { cwd: root, timeoutMs: timeoutMs(), echo: true });
    rows.push({ name, seconds: outcome.seconds, ...judge(runner, outcome, requiresAll()) });
    console.log(`== ${name}: ${outcome.seconds.toFixed(1)} s`);
  }
  console.log(`\n${format(rows)}\n\n${summaryLine(rows)}`);
  return rows.some((row) => row.failed > 0) ? 1 : 0;
}

if (import.meta.main) Deno.exit(await main(Deno.args, `${import.meta.dirname}/..`));
