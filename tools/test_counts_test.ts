import { assertEquals } from "@std/assert";
import {
  denoCounts,
  failedTests,
  judge,
  judgeAbsent,
  mutantCounts,
  summaryLine,
  zigCachedRuns,
  zigCounts,
} from "./test_counts.ts";

// Printed by Deno 2.9.8 and Zig 0.17.0, colours removed.
const DENO_OK = "running 1 test\nx ... ok (1ms)\n\nok | 1 passed (1 step) | 0 failed (6ms)\n";
const DENO_MIXED = "FAILED | 1 passed (1 step) | 2 failed (1 step) | 3 ignored (1 step) (8ms)\n";
const ZIG_OK = `Build Summary: 5/5 steps succeeded; 2/3 tests passed (1 skipped)
test success
+- run test 1 pass, 1 skip (2 total) 4ms MaxRSS:4M
|  +- compile test debug native cached 3ms MaxRSS:42M
`;
const ZIG_CACHED = `Build Summary: 5/5 steps succeeded
test success
+- run test cached
|  +- compile test debug native cached 3ms MaxRSS:42M
+- run ring test cached
`;
const ZIG_MIXED =
  "Build Summary: 3/9 steps succeeded (1 skipped, 1 failed); 2/7 tests passed (1 skipped, " +
  "2 failed, 1 crashed, 1 timed out)\n";
const ZIG_COMPILE = "Build Summary: 2/5 steps succeeded (1 failed)\ntest transitive failure\n";
const ZIG_LEAK = "Build Summary: 3/5 steps succeeded (1 failed); 1/1 tests passed\n";

function outcome(output: string, code = 0, timedOut = false) {
  return { output, code, timedOut, seconds: 2, processorSeconds: 1 };
}

Deno.test("denoCounts: reads the last closing line, and only a closing line", () => {
  assertEquals(denoCounts(DENO_OK), { passed: 1, failed: 0, skipped: 0 });
  assertEquals(denoCounts(DENO_MIXED), { passed: 1, failed: 2, skipped: 3 });
  assertEquals(denoCounts(DENO_MIXED + DENO_OK), { passed: 1, failed: 0, skipped: 0 });
  const filtered = "ok | 1 passed (1 step) | 0 failed | 2 filtered out (6ms)";
  assertEquals(denoCounts(filtered), { passed: 1, failed: 0, skipped: 2 });
  assertEquals(denoCounts("error: No test modules found"), undefined);
  assertEquals(denoCounts("it is ok | 1 passed | 0 failed"), undefined);
});

const MUTANTS = `  1/3 one caught by ring/a bytes [ring.publish] (1.0 s)

not caught as they must be:
two        SURVIVED [ring.room]: the reserve is used (9.0 s)
three      ERROR: is not built (0.1 s)

12.0 s
FAILED: 1 of 3 caught (33.3 %); 1 survived; 1 errors
`;

Deno.test("mutantCounts: the closing line, and those that were not caught", () => {
  assertEquals(mutantCounts(MUTANTS), { passed: 1, failed: 2, skipped: 0 });
  assertEquals(failedTests("mutants", MUTANTS), ["two", "three"]);
  const few = "ok: 99 of 100 caught (99 %); 1 survived\n";
  assertEquals(mutantCounts(few), { passed: 99, failed: 0, skipped: 0 });
  const stale = "FAILED: 3 of 3 caught (100 %); 2 cases fail without a fault\n";
  assertEquals(mutantCounts(stale), { passed: 3, failed: 1, skipped: 0 });
  assertEquals(mutantCounts("interrupted"), undefined);
});

// With the output of the test program passed on, and so without counts in the summary.
const ZIG_PASSED_ON = `67/67 segment_test.test.the largest segment...OK
All 67 tests passed.
Build Summary: 3/3 steps succeeded
test success
`;
const ZIG_PASSED_ON_MIXED = `1/3 t.test.good...OK
2/3 t.test.skip...SKIP
3/3 t.test.bad...FAIL (Bad)
1 passed; 1 skipped; 1 failed.
Build Summary: 1/3 steps succeeded (1 failed)
`;

Deno.test("zigCounts: the closing lines of test programs", () => {
  assertEquals(zigCounts(ZIG_PASSED_ON), { passed: 67, failed: 0, skipped: 0 });
  assertEquals(zigCounts(ZIG_PASSED_ON_MIXED), { passed: 1, failed: 1, skipped: 1 });
});

Deno.test("zigCounts: tests that failed, crashed or hung; steps where no test did", () => {
  assertEquals(zigCounts(ZIG_OK), { passed: 2, failed: 0, skipped: 1 });
  assertEquals(zigCounts(ZIG_MIXED), { passed: 2, failed: 4, skipped: 2 });
  assertEquals(zigCounts(ZIG_COMPILE), { passed: 0, failed: 1, skipped: 0 });
  assertEquals(zigCounts(ZIG_LEAK), { passed: 1, failed: 1, skipped: 0 });
  assertEquals(zigCounts("error: no build.zig file found"), undefined);
});

// With spaces at both ends, as the list of failures is headed.
const FAILURES = " FAILURES ";
const DENO_FAILURES = `${FAILURES}

an inner run => ./x_test.ts:1:6

FAILED | 0 passed | 1 failed (8ms)

the first error => ./tools/x_test.ts:7:6
error: Error: boom => ./tools/x_test.ts:1:1

${FAILURES}

a name => with an arrow => ./tools/x_test.ts:7:6
outer ... a step => ./tools/x_test.ts:9:3

FAILED | 1 passed | 1 failed (1 step) (8ms)
`;

Deno.test("failedTests: the names with which the runners close, and only those", () => {
  assertEquals(failedTests("deno", DENO_FAILURES), [
    "a name => with an arrow => ./tools/x_test.ts:7:6",
    "outer ... a step => ./tools/x_test.ts:9:3",
  ]);
  assertEquals(failedTests("deno", DENO_OK), []);
  assertEquals(failedTests("zig", ZIG_PASSED_ON_MIXED), ["t.test.bad"]);
  assertEquals(failedTests("zig", ZIG_PASSED_ON), []);
});

Deno.test("judge: names tests that failed, of very many the first", () => {
  const list = Array.from({ length: 22 }, (_, i) => `t${i} => ./x_test.ts:${i}:1`);
  const output = `${FAILURES}\n\n${list.join("\n")}\n\nFAILED | 0 passed | 22 failed (8ms)\n`;
  const { failed, notes } = judge("deno", outcome(output, 1), false);
  assertEquals([failed, notes.length, notes[0]], [22, 21, "failed: t0 => ./x_test.ts:0:1"]);
  assertEquals(notes.at(-1), "failed: 2 more");
  assertEquals(judge("deno", outcome(output + DENO_OK), false).notes, []);
});

Deno.test("zigCachedRuns: counts runs, not compilations", () => {
  assertEquals(zigCachedRuns(ZIG_CACHED), 2);
  assertEquals(zigCachedRuns(ZIG_OK), 0);
});

Deno.test("judge: believes a runner that ends as it says", () => {
  assertEquals(judge("deno", outcome(DENO_OK), true), {
    passed: 1,
    failed: 0,
    skipped: 0,
    notes: [],
  });
  assertEquals(judge("deno", outcome(DENO_MIXED, 1), false).failed, 2);
  assertEquals(judge("zig", outcome(ZIG_OK), false).skipped, 1);
});

Deno.test("judge: passes on what tests say in a line of its own", () => {
  const said = "summary: 3 of 7 from the cache\nno summary: 4\nsummary: \n";
  assertEquals(judge("deno", outcome(said + DENO_OK), true).notes, ["3 of 7 from the cache"]);
});

Deno.test("judge: counts one failure where a runner does not tell of any", () => {
  const notes = (verdict: { failed: number; notes: string[] }) => [verdict.failed, verdict.notes];
  assertEquals(notes(judge("deno", outcome("error: boom", 1), false)), [
    1,
    ["ended with 1, without counts"],
  ]);
  assertEquals(notes(judge("deno", outcome(DENO_OK, 1), false)), [
    1,
    ["ended with 1, though no test failed"],
  ]);
  assertEquals(notes(judge("deno", outcome("ok | 0 passed | 0 failed (0ms)"), false)), [
    1,
    ["ran no tests"],
  ]);
  assertEquals(notes(judge("deno", outcome(DENO_OK, 143, true), false)), [
    1,
    ["killed after 2 s"],
  ]);
});

Deno.test("judge: does not take Zig's cache for a run", () => {
  const verdict = judge("zig", outcome(ZIG_CACHED), false);
  assertEquals([verdict.passed, verdict.failed, verdict.notes.length], [0, 1, 1]);
});

Deno.test("judge: a skip is a failure where everything is required", () => {
  const verdict = judge("deno", outcome(DENO_MIXED, 1), true);
  assertEquals([verdict.passed, verdict.failed, verdict.skipped], [1, 5, 0]);
  assertEquals(verdict.notes, ["3 skipped, which counts as failed here"]);
});

Deno.test("judgeAbsent: a part that this machine cannot run is a skip, and seen", () => {
  const notes = ["not run: there is no qemu-aarch64"];
  assertEquals(judgeAbsent("qemu-aarch64", false), { passed: 0, failed: 0, skipped: 1, notes });
  assertEquals(judgeAbsent("qemu-aarch64", true), { passed: 0, failed: 1, skipped: 0, notes });
});

Deno.test("summaryLine: names skips only where there are some", () => {
  const part = { passed: 2, failed: 1, skipped: 0 };
  assertEquals(summaryLine([part, part]), "4 passed, 2 failed");
  assertEquals(summaryLine([part, { ...part, skipped: 3 }]), "4 passed, 2 failed, 3 skipped");
  assertEquals(summaryLine([]), "0 passed, 0 failed");
});
