import { assert, assertEquals, assertMatch, assertRejects, assertThrows } from "@std/assert";
import { loadClauses } from "../static/coverage.ts";
import { type Failure, type Fate, fateOf, foldRuns, isFailure, type Judged } from "./judge.ts";
import { keyOf, lineOf, neededOf, summaryOf } from "./judge.ts";
import { IMPLEMENTATIONS, loadMutants, type Mutant, MutantError, parseTable } from "./mutant.ts";
import { plant } from "./mutant.ts";
import { plantedIn, Tree } from "./tree.ts";

const PATH = "typescript/ring.txt";
const FIELDS = "mutant: one\nclause: ring.publish\nfault: tail before payload\n";
const FILE = "file: impl-ts/src/ring/ring.ts\n";
const CHANGE = `${FILE}- b\n+ c\n`;
const ROOT = new URL("../../", import.meta.url).pathname.replace(/\/$/, "");

Deno.test("parseTable: the fields of each row, and what it changes", () => {
  const file = "impl-zig/src/ring/side.zig";
  const change = `file: ${file}\n  if (a) {\n-   b();\n-\n+   c();\n`;
  const other = `mutant: two\nclause: ring.room\nfault: no room\nequivalent: nobody looks\n`;
  const [one, two, ...rest] = parseTable(
    "zig/ring.txt",
    `${FIELDS}race: yes\n${change}\n${other}${change}file: impl-zig/src/wait/endpoint.zig\n- d\n`,
  );
  assertEquals(rest, []);
  const changes = [{ file, before: ["if (a) {", "  b();", ""], after: ["if (a) {", "  c();"] }];
  assertEquals(one, {
    name: "one",
    implementation: "zig",
    clause: "ring.publish",
    fault: "tail before payload",
    isRace: true,
    equivalent: undefined,
    changes,
  });
  assertEquals([two?.name, two?.isRace, two?.equivalent], ["two", false, "nobody looks"]);
  const last = { file: "impl-zig/src/wait/endpoint.zig", before: ["d"], after: [] };
  assertEquals(two?.changes, [...changes, last]);
});

Deno.test("parseTable: refuses what is no mutant, and says why", () => {
  const refused = (row: string, why: string, path = PATH) =>
    assertThrows(() => parseTable(path, row), MutantError, why);
  const without = (field: string) =>
    FIELDS.replace(new RegExp(`^${field}: .*\\n`, "m"), "") + CHANGE;
  refused(without("mutant"), "has no name");
  refused(without("clause"), "no clause of ring");
  refused(without("fault"), "does not say what the fault is");
  refused(FIELDS + CHANGE, "no clause of frame", "typescript/frame.txt");
  refused(`${FIELDS}race: often\n${CHANGE}`, "race is yes or left out");
  refused(`${FIELDS}reason: none\n${CHANGE}`, "no line of a row: reason: none");
  refused(`${FIELDS}equivalent:\n${CHANGE}`, "no line of a row");
  refused(`${FIELDS}- b\n${CHANGE}`, "no line of a row: - b");
  refused(`${FIELDS}${CHANGE}race: yes\n`, "no line of a row: race: yes");
  refused(`${FIELDS}fault: another\n${CHANGE}`, "fault twice");
  refused(FIELDS, "changes nothing");
  refused(`${FIELDS}${FILE}  b\n`, "changes nothing in impl-ts/src/ring/ring.ts");
  refused(`${FIELDS}${FILE}+ b\n`, "adds lines, and does not say where");
  refused(`${FIELDS}${CHANGE}file: conformance/kit/seat.ts\n- b\n`, "kit/seat.ts is not its");
  refused(FIELDS + CHANGE, "ring.ts is not its", "zig/ring.txt");
  refused(FIELDS + CHANGE, "is no table", "rust/ring.txt");
  refused(FIELDS + CHANGE, "is no table", "zig/ring.patch");
});

Deno.test("plant: lines at any indentation, of which there must be one place", () => {
  const change = (before: string[], after: string[]) => ({ file: "ring.ts", before, after });
  const text = "if (a) {\n    b();\n\n    if (c) {\n      b(d);\n    }\n}\nb();\n";
  const planted = "if (a) {\n    b();\n\n    while (c) {\n\n      e();\n    }\n}\nb();\n";
  const after = ["while (c) {", "", "  e();", "}"];
  assertEquals(plant(text, change(["if (c) {", "  b(d);", "}"], after)), planted);
  assertEquals(plant(text, change(["b();", "", "if (c) {"], [])).split("\n").length, 6);
  const refused = (before: string[], why: string) =>
    assertThrows(() => plant(text, change(before, [])), MutantError, why);
  refused(["b();"], "found 2 times in ring.ts: b();");
  refused(["f();"], "found 0 times in ring.ts: f();");
  // Whole lines, and the second is further in than the first.
  refused(["(d);"], "found 0 times");
  refused(["if (c) {", "b(d);"], "found 0 times in ring.ts: if (c) { / b(d);");
});

Deno.test("tables: each row names a clause that there is, and fits the code", async () => {
  const mutants = await loadMutants(new URL("./", import.meta.url));
  const clauses = new Set(loadClauses().map(({ id }) => id));
  const wrong: string[] = [];
  for (const mutant of mutants) {
    const { name, clause } = mutant;
    if (!clauses.has(clause)) wrong.push(`${name}: there is no clause ${clause}`);
    await plantedIn(ROOT, mutant).catch(({ message }) => wrong.push(`${name}: ${message}`));
  }
  assertEquals(wrong, []);
  assertEquals(new Set(mutants.map(({ name }) => name)).size, mutants.length, "a name twice");
  assert(mutants.length >= 80, `${mutants.length} mutants`);
  for (const each of IMPLEMENTATIONS) {
    const count = mutants.filter(({ implementation }) => implementation === each).length;
    assert(count >= mutants.length / 3, `${count} of them in ${each}`);
  }
});

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

const TREE_PATH = "impl-ts/src/ring/ring.ts";

function mutantOf(...pairs: [before: string, after: string][]): Mutant {
  return {
    name: "one",
    implementation: "typescript",
    clause: "ring.publish",
    fault: "a word",
    isRace: false,
    changes: pairs.map(([before, after]) => ({
      file: TREE_PATH,
      before: [before],
      after: [after],
    })),
  };
}

/** A copy of a repository of one file, and a function that reads that file in the copy. */
async function withTree(act: (tree: Tree, read: () => Promise<string>) => Promise<void>) {
  const root = await Deno.makeTempDir();
  try {
    await new Deno.Command("git", { args: ["init", "--quiet"], cwd: root }).output();
    await Deno.mkdir(`${root}/impl-ts/src/ring`, { recursive: true });
    await Deno.writeTextFile(`${root}/${TREE_PATH}`, "one\ntwo\nthree\n");
    const tree = await Tree.copy(root);
    try {
      await act(tree, () => Deno.readTextFile(`${tree.root}/${TREE_PATH}`));
    } finally {
      await tree.remove();
    }
    await assertRejects(() => Deno.stat(tree.root), Deno.errors.NotFound);
    assertEquals(await Deno.readTextFile(`${root}/${TREE_PATH}`), "one\ntwo\nthree\n");
  } finally {
    await Deno.remove(root, { recursive: true });
  }
}

Deno.test("Tree: a mutant is planted in the copy alone, and taken out again", async () => {
  await withTree(async (tree, read) => {
    assertEquals(await tree.with(mutantOf(["two", "2"], ["three", "3"]), read), "one\n2\n3\n");
    assertEquals(await read(), "one\ntwo\nthree\n");
    await assertRejects(() => tree.with(mutantOf(["two", "2"]), () => Promise.reject(Error("x"))));
    assertEquals(await read(), "one\ntwo\nthree\n");
  });
});

Deno.test("Tree: a mutant that does not fit is an error, and changes nothing", async () => {
  await withTree(async (tree, read) => {
    const stale = mutantOf(["two", "2"], ["drei", "3"]);
    await assertRejects(() => tree.with(stale, read), Error, `found 0 times in ${TREE_PATH}: drei`);
    assertEquals(await read(), "one\ntwo\nthree\n");
  });
});
