import { assert, assertEquals, assertThrows } from "@std/assert";
import { loadClauses } from "../static/coverage.ts";
import { IMPLEMENTATIONS, loadMutants, MutantError, parseTable, plant } from "./mutant.ts";
import { plantedIn } from "./tree.ts";

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
