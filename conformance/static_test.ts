// The static cases: that they are what their generator makes and what their schema says, and what
// the implementations make of each.

import { assert, assertEquals } from "@std/assert";
import { Ajv2020 } from "ajv/2020";
import { type Case, isInvalid } from "./reference/case.ts";
import { makeFiles } from "./reference/make_cases.ts";
import { reportsOf, runCase, type Testee } from "./static/driver.ts";
import { loadCases, loadFiles, resolve } from "./static/load.ts";
import { typescript } from "./static/typescript.ts";
import { buildZigTestee } from "./static/zig.ts";

const cases = loadCases();

Deno.test("cases: every file is what conformance/reference/make_cases.ts writes", async () => {
  for (const [name, text] of await makeFiles()) {
    const found = await Deno.readTextFile(new URL(`cases/${name}`, import.meta.url));
    assert(found === text, `conformance/cases/${name} is stale: run make_cases.ts`);
  }
});

Deno.test("cases: the reference encoder shares no code with anybody", async () => {
  const folder = new URL("reference/", import.meta.url);
  for await (const { name } of Deno.readDir(folder)) {
    const text = await Deno.readTextFile(new URL(name, folder));
    for (const [, target] of text.matchAll(/\bfrom "([^"]+)"/g)) {
      assert(target!.startsWith("./"), `conformance/reference/${name} imports ${target}`);
    }
  }
});

Deno.test("cases: every file is as conformance/cases.schema.json says", async () => {
  const schema = await Deno.readTextFile(new URL("cases.schema.json", import.meta.url));
  const validate = new Ajv2020({ allErrors: true, strict: false }).compile(JSON.parse(schema));
  for (const file of loadFiles()) {
    assert(validate(file), `${file.noun}: ${JSON.stringify(validate.errors?.slice(0, 3))}`);
  }
});

Deno.test("conformance/README.md shows cases as they are", async () => {
  const text = await Deno.readTextFile(new URL("README.md", import.meta.url));
  const shown = [...text.matchAll(/```json\n(.*?)```/gs)].map(([, json]) => JSON.parse(json!));
  assert(shown.length >= 4);
  for (const entry of shown as Case[]) assertEquals(entry, cases.get(entry.id));
});

Deno.test("cases: ids are unique, and begin with the noun of their file", () => {
  const seen = new Set<string>();
  for (const { noun, cases } of loadFiles()) {
    for (const { id } of cases) {
      assert(!seen.has(id), `two cases are ${id}`);
      assert(id.startsWith(`${noun}/`), `${id} stands among the cases of ${noun}`);
      seen.add(id);
    }
  }
});

Deno.test("cases: an invalid one differs from its valid one in one field and in what comes", () => {
  for (const entry of cases.values()) {
    resolve(entry, cases);
    if (!isInvalid(entry)) continue;
    const base = cases.get(entry.from) as Case;
    const same = JSON.stringify(base.expect) === JSON.stringify(entry.expect);
    assert(!same, `${entry.id} expects what ${entry.from} expects`);
  }
});

Deno.test("cases: there is one result for each operation", () => {
  for (const entry of cases.values()) {
    const { setting, expect } = resolve(entry, cases);
    if ((expect.result ?? "ok") !== "ok" || setting.operations === undefined) continue;
    assertEquals(expect.results?.length, setting.operations.length, entry.id);
  }
});

Deno.test("cases: whoever overlooks the change of an invalid case fails it", () => {
  for (const entry of cases.values()) {
    const { setting, expect } = resolve(entry, cases);
    if (!isInvalid(entry) || typescript.declines(setting, []) !== undefined) continue;
    const base = resolve(cases.get(entry.from) as Case, cases);
    const problems = runCase({ ...base, expect }, typescript);
    assert(problems.length > 0, `${entry.id} cannot be told from ${entry.from}`);
  }
});

for (const testee of [typescript, await buildZigTestee()]) addTests(testee);

/** One test for each case, so that a failure names it. */
function addTests(testee: Testee): void {
  const declined = new Map<string, number>();
  for (const entry of cases.values()) {
    const resolved = resolve(entry, cases);
    const why = testee.declines(resolved.setting, reportsOf(resolved));
    if (why !== undefined) {
      declined.set(why, (declined.get(why) ?? 0) + 1);
      continue;
    }
    Deno.test(`${testee.name}: ${entry.id} [${entry.clauses[0]}]`, () => {
      assertEquals(runCase(resolved, testee), [], entry.about);
    });
  }
  for (const [why, count] of declined) {
    Deno.test(`${testee.name}: ${count} cases declined: ${why}`, () => {});
  }
}
