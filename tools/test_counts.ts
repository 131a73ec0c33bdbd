/**
 * Reads how many tests passed from what the test runners print, and decides what that means.
 *
 * A part counts as passed only on the runner's own word and a clean exit. A runner that crashed,
 * hung, ran nothing, or answered from a cache, has not tested.
 *
 * @module
 */
import type { Outcome } from "./run.ts";

/** Numbers of tests. */
export interface Counts {
  passed: number;
  failed: number;
  skipped: number;
}

/** Counts, with the tests that failed, and why they are not the runner's own where they are not. */
export interface Verdict extends Counts {
  notes: string[];
}

/** The counts of `deno test`: `FAILED | 3 passed (1 step) | 1 failed | 2 ignored (8ms)`. */
export function denoCounts(output: string): Counts | undefined {
  // The last one: a test may run `deno test` itself and show its output.
  const line = output.match(/^(?:ok|FAILED) \| \d+ passed.*$/gm)?.at(-1);
  if (line === undefined) return undefined;
  const count = (word: string) => Number(new RegExp(`\\| (\\d+) ${word}\\b`).exec(line)?.[1] ?? 0);
  // What a filter leaves out was not run either.
  const skipped = count("ignored") + count("filtered out");
  return { passed: count("passed"), failed: count("failed"), skipped };
}

/**
 * The counts of `zig build test --summary all`. A test program whose output is passed on closes
 * with `All 4 tests passed.` or `2 passed; 1 skipped; 1 failed.`; the others are in the last line:
 * `Build Summary: 3/5 steps succeeded (1 failed); 2/4 tests passed (1 skipped, 1 crashed)`.
 *
 * A crash, a leak, an error log or a compile error fails a step and no test, so failed steps count
 * where they are more than the failed tests.
 */
export function zigCounts(output: string): Counts | undefined {
  const line = output.match(/^Build Summary: .*$/gm)?.at(-1);
  const [steps, tests = ""] = line?.split(";") ?? [];
  if (steps === undefined) return undefined;
  const [, passed, total] = /(\d+)\/(\d+) tests passed/.exec(tests) ?? [];
  const counts = { passed: Number(passed ?? 0), failed: 0, skipped: countOf(tests, "skipped") };
  counts.failed = Number(total ?? 0) - counts.passed - counts.skipped;
  for (const [, all] of output.matchAll(/^All (\d+) tests passed\.$/gm)) {
    counts.passed += Number(all);
  }
  for (const [text] of output.matchAll(/^\d+ passed; \d+ skipped; \d+ failed\.$/gm)) {
    counts.passed += countOf(text, "passed");
    counts.skipped += countOf(text, "skipped");
    counts.failed += countOf(text, "failed");
  }
  return {
    passed: counts.passed,
    failed: Math.max(counts.failed, countOf(steps, "failed")),
    // A whole run that this machine cannot execute.
    skipped: counts.skipped + countOf(steps, "skipped"),
  };
}

/** The number before a word, 0 where it does not occur. */
function countOf(text: string, word: string): number {
  return Number(new RegExp(`(\\d+) ${word}\\b`).exec(text)?.[1] ?? 0);
}

/** The counts of `./millrace test mutants`: `FAILED: 101 of 110 caught (91.8 %); 9 survived`. */
export function mutantCounts(output: string): Counts | undefined {
  const [, state, caught, seen] = output.match(/^(ok|FAILED): (\d+) of (\d+) caught .*$/m) ?? [];
  if (state === undefined) return undefined;
  // A good run may miss a few.
  const failed = state === "ok" ? 0 : Math.max(1, Number(seen) - Number(caught));
  return { passed: Number(caught), failed, skipped: 0 };
}

/** Run steps that Zig answered from its cache: their tests passed some other day. */
export function zigCachedRuns(output: string): number {
  return output.match(/^[ |+-]*run .*\bcached\b/gm)?.length ?? 0;
}

/** Who runs tests and counts them. */
export type TestRunner = "deno" | "zig" | "mutants";

const COUNTS: Readonly<Record<TestRunner, (output: string) => Counts | undefined>> = {
  deno: denoCounts,
  zig: zigCounts,
  mutants: mutantCounts,
};

/** How many failed tests a verdict names. */
const NAMED_COUNT = 20;

/**
 * Which tests failed: of `deno test`, the list that it closes with; of a Zig test program whose
 * output is passed on, the lines such as `3/3 ring_test.test.a pad...FAIL (TestUnexpectedResult)`;
 * of the mutants, the list of mutants that were not caught.
 */
export function failedTests(runner: TestRunner, output: string): string[] {
  if (runner === "mutants") {
    const list = output.split(/^not caught as they must be:$/m)[1]?.split("\n\n")[0] ?? "";
    return [...list.matchAll(/^(\w+) /gm)].map(([, name]) => name!);
  }
  if (runner === "zig") {
    return [...output.matchAll(/^\d+\/\d+ (.*)\.\.\.FAIL\b/gm)].map(([, name]) => name!);
  }
  const list = output.split(/^ FAILURES $/m).slice(1).at(-1) ?? "";
  return [...list.matchAll(/^(\S.*? => .+:\d+:\d+)$/gm)].map(([name]) => name);
}

/** What tests have to say beside their counts, in lines such as `summary: 3 from the cache`. */
function summaries(output: string): string[] {
  return [...output.matchAll(/^summary: (.+)$/gm)].map(([, text]) => text!);
}

/** What an outcome and the counts in it amount to. */
export function judge(
  runner: TestRunner,
  outcome: Outcome,
  requireAll: boolean,
): Verdict {
  const counts = COUNTS[runner](outcome.output);
  const notes = summaries(outcome.output);
  const verdict: Verdict = { ...(counts ?? { passed: 0, failed: 0, skipped: 0 }), notes };
  const fail = (note: string, failed = 1) => {
    verdict.failed += failed;
    verdict.notes.push(note);
  };
  // Where none did, such a list is of tests that a test has run.
  const failed = verdict.failed > 0 ? failedTests(runner, outcome.output) : [];
  verdict.notes.push(...failed.slice(0, NAMED_COUNT).map((name) => `failed: ${name}`));
  if (failed.length > NAMED_COUNT) {
    verdict.notes.push(`failed: ${failed.length - NAMED_COUNT} more`);
  }
  const cached = runner === "zig" ? zigCachedRuns(outcome.output) : 0;
  if (outcome.timedOut) fail(`killed after ${outcome.seconds.toFixed(0)} s`);
  else if (counts === undefined) fail(`ended with ${outcome.code}, without counts`);
  else if (cached > 0) {
    fail(`${cached} test runs came from Zig's cache: build.zig must pass their output on`);
  } else if (outcome.code !== 0 && counts.failed === 0) {
    fail(`ended with ${outcome.code}, though no test failed`);
  } else if (counts.passed + counts.failed === 0) fail("ran no tests");
  if (requireAll && verdict.skipped > 0) {
    const skipped = verdict.skipped;
    verdict.skipped = 0;
    fail(`${skipped} skipped, which counts as failed here`, skipped);
  }
  return verdict;
}

/** What a part amounts to whose program this machine does not have: one skip. */
export function judgeAbsent(program: string, requireAll: boolean): Verdict {
  const notes = [`not run: there is no ${program}`];
  return { passed: 0, failed: requireAll ? 1 : 0, skipped: requireAll ? 0 : 1, notes };
}

/** Whether this run is the gate, for which a skipped test is a failed one. */
export function requiresAll(): boolean {
  const set = (name: string) => !["", "0", "false"].includes(Deno.env.get(name) ?? "");
  return set("CI") || set("MILLRACE_REQUIRE_ALL");
}

/** The sum, as the last line of a run says it. */
export function summaryLine(parts: Counts[]): string {
  const sum = (count: (part: Counts) => number) =>
    parts.reduce((total, part) => total + count(part), 0);
  const skipped = sum((part) => part.skipped);
  const line = `${sum((part) => part.passed)} passed, ${sum((part) => part.failed)} failed`;
  return skipped > 0 ? `${line}, ${skipped} skipped` : line;
}
