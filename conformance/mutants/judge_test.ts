import { assert, assertEquals, assertMatch } from "@std/assert";
import { type Failure, type Fate, fateOf, foldRuns, isFailure, type Judged } from "./judge.ts";
import { keyOf, lineOf, neededOf, summaryOf } from "./judge.ts";
import type { Mutant } from "./mutant.ts";

const MUTANT: Mutant = {
  name: "one",
  implementation: "zig",
  clause: "ring.publish",
  fault: "tail before payload",
  isRace: false,
  changes: [],
};

function failure(id: string, ...broken: string[]): Failure {
  return { id, level: "static", carrier: "bytes", status: "fail", broken, why: "it differs" };
}

function judged(fate: Fate, more: Partial<Judged> = {}): Judged {
  return { mutant: MUTANT, fate, seconds: 1, ...more };
}

const CAUGHT: Fate = { kind: "caught", by: failure("ring/a", "ring.publish") };
const SURVIVED: Fate = { kind: "survived" };

Deno.test("fateOf: only a case that names the clause has caught it", () => {
  const other = failure("ring/b", "ring.room");
  const own = failure("ring/c", "ring.room", "ring.publish");
  assertEquals(fateOf("ring.publish", [other, own]), { kind: "caught", by: own });
  assertEquals(fateOf("ring.publish", [other]), { kind: "misnamed", by: other });
  assertEquals(fateOf("ring.publish", []), SURVIVED);
});

Deno.test("isFailure: a crash and a timeout are failed cases; what was not run is none", () => {
  const all = ["pass", "fail", "declined", "unshown", "error", "timeout", "not_run"] as const;
  assertEquals(all.filter(isFailure), ["fail", "error", "timeout"]);
});

Deno.test("foldRuns: 19 of 20 are enough, 18 are not, and an error always counts", () => {
  assertEquals([1, 10, 20, 40].map(neededOf), [1, 10, 19, 38]);
  const runs = (caught: number) => [
    ...Array<Fate>(caught).fill(CAUGHT),
    ...Array<Fate>(20 - caught).fill(SURVIVED),
  ];
  assertEquals(foldRuns(runs(19), 20), CAUGHT);
  assertEquals(foldRuns(runs(18), 20), SURVIVED);
  // Given up after two misses.
  assertEquals(foldRuns([CAUGHT, SURVIVED, SURVIVED], 20), SURVIVED);
  const error: Fate = { kind: "error", what: "is not built" };
  assertEquals(foldRuns([CAUGHT, error], 1), error);
});

Deno.test("lineOf: who caught it, or what survived, and how often", () => {
  assertMatch(
    lineOf(judged(CAUGHT)),
    /^one +caught by ring\/a bytes \[ring\.publish\] \(1\.0 s\)$/,
  );
  assertMatch(lineOf(judged(SURVIVED)), /SURVIVED \[ring\.publish\]: tail before payload/);
  assertMatch(lineOf(judged(CAUGHT, { runs: 20, caught: 19 })), /, 19 of 20 times/);
  const other: Fate = { kind: "misnamed", by: failure("ring/b", "ring.room") };
  assertMatch(
    lineOf(judged(other)),
    /ANOTHER CLAUSE than \[ring\.publish\].* names \[ring\.room\]/,
  );
  const mutant = { ...MUTANT, equivalent: "nobody looks" };
  assertMatch(lineOf(judged({ kind: "equivalent" }, { mutant })), /equivalent .*nobody looks/);
});

Deno.test("summaryOf: 95 % of those that can be seen, and nothing else wrong", () => {
  const many = (count: number, fate: Fate) => Array<Judged>(count).fill(judged(fate));
  const equivalent = many(3, { kind: "equivalent" });
  const good = summaryOf([...many(19, CAUGHT), ...many(1, SURVIVED), ...equivalent], 0);
  assert(good.isGood);
  assertEquals(good.text, "ok: 19 of 20 caught (95 %); 1 survived; 3 equivalent");
  assertEquals(summaryOf([...many(18, CAUGHT), ...many(1, SURVIVED)], 0).isGood, false);
  const other: Fate = { kind: "misnamed", by: failure("ring/b") };
  assertEquals(summaryOf([...many(99, CAUGHT), judged(other)], 0).isGood, false);
  const error: Fate = { kind: "error", what: "is not built" };
  assertEquals(summaryOf([...many(99, CAUGHT), judged(error)], 0).isGood, false);
  assertEquals(summaryOf(many(20, CAUGHT), 1).isGood, false);
});

Deno.test("keyOf: a case in one place is not the one in another", () => {
  assertEquals(keyOf(failure("ring/a")), "ring/a bytes");
});
