import { assert, assertEquals, assertThrows } from "@std/assert";
import { loadClauses } from "../static/coverage.ts";
import { IMPLEMENTATIONS, loadMutants, MutantError, parseMutant } from "./mutant.ts";
import { misfit } from "./tree.ts";

const DIFF = `diff --git a/impl-ts/src/ring/ring.ts b/impl-ts/src/ring/ring.ts
--- a/impl-ts/src/ring/ring.ts
+++ b/impl-ts/src/ring/ring.ts
@@ -1,2 +1,2 @@
 a
-b
+c
`;
const HEADER = "clause: ring.publish\nfault: tail before payload\n";
const ROOT = new URL("../../", import.meta.url).pathname.replace(/\/$/, "");

Deno.test("parseMutant: the header, and whose files it changes", () => {
  const mutant = parseMutant("one", `${HEADER}race: yes\n\n${DIFF}`);
  const { name, implementation, clause, fault, isRace, equivalent, files } = mutant;
  assertEquals(
    { name, implementation, clause, fault, isRace, equivalent, files },
    {
      name: "one",
      implementation: "typescript",
      clause: "ring.publish",
      fault: "tail before payload",
      isRace: true,
      equivalent: undefined,
      files: ["impl-ts/src/ring/ring.ts"],
    },
  );
  const zig = DIFF.replaceAll("impl-ts/src/ring/ring.ts", "impl-zig/src/ring.zig");
  const other = parseMutant("two", `${HEADER}equivalent: nobody looks\n\n${zig}`);
  assertEquals([other.implementation, other.isRace], ["zig", false]);
  assertEquals(other.equivalent, "nobody looks");
});

Deno.test("parseMutant: refuses what is no mutant, and says why", () => {
  const refused = (patch: string, why: string) =>
    assertThrows(() => parseMutant("one", patch), MutantError, why);
  refused(DIFF, "no header");
  refused(`fault: tail before payload\n\n${DIFF}`, "names no clause");
  refused(`clause: [ring.publish]\nfault: tail first\n\n${DIFF}`, "names no clause");
  refused(`clause: ring.publish\n\n${DIFF}`, "does not say what the fault is");
  refused(`${HEADER}race: often\n\n${DIFF}`, "race is yes or left out");
  refused(`${HEADER}reason: none\n\n${DIFF}`, "no line of a header: reason: none");
  refused(`${HEADER}equivalent:\n\n${DIFF}`, "no line of a header");
  refused(`${HEADER}${HEADER}\n${DIFF}`, "clause twice");
  const kit = DIFF.replaceAll("impl-ts/src/ring/ring.ts", "conformance/kit/seat.ts");
  refused(`${HEADER}\n${kit}`, "changes other files");
  const zig = DIFF.replaceAll("impl-ts/src/ring/ring.ts", "impl-zig/src/ring.zig");
  refused(`${HEADER}\n${DIFF}${zig}`, "changes other files");
});

Deno.test("patches: each names a clause that there is, and applies to the tree", async () => {
  const mutants = await loadMutants(new URL("patches/", import.meta.url));
  const clauses = new Set(loadClauses().map(({ id }) => id));
  const wrong: string[] = [];
  for (const { name, clause, patch } of mutants) {
    if (!clauses.has(clause)) wrong.push(`${name}: there is no clause ${clause}`);
    const why = await misfit(ROOT, patch);
    if (why !== undefined) wrong.push(`${name}: ${why}`);
  }
  assertEquals(wrong, []);
  assert(mutants.length >= 80, `${mutants.length} mutants`);
  for (const each of IMPLEMENTATIONS) {
    const count = mutants.filter(({ implementation }) => implementation === each).length;
    assert(count >= mutants.length / 3, `${count} of them in ${each}`);
  }
});
