// The static cases: that they are what their generator makes and what their schema says, and what
// the implementations make of each.

import { assert, assertEquals } from "@std/assert";
import { Ajv2020 } from "ajv/2020";
import schema from "./cases.schema.json" with { type: "json" };
import { type Case, isInvalid, type Payload, type Role } from "./reference/case.ts";
import { makeFiles } from "./reference/make_cases.ts";
import { formOfCbor } from "./reference/cbor.ts";
import { readValues } from "./reference/values.ts";
import { toBytes } from "./static/difference.ts";
import { declined, runCase, type Testee } from "./static/driver.ts";
import { loadCases, loadNoun, NOUNS, resolve } from "./static/load.ts";
import { Connection } from "./kit/connection.ts";
import { nounOf } from "./kit/static_level.ts";
import { LocalLink } from "./kit/worker_link.ts";
import { remoteTestee } from "./static/remote.ts";
import { typescript as adapter } from "./testees/typescript/adapter.ts";
import { LocalGuest } from "./testees/zig/local_link.ts";
import { build } from "./testees/zig/shells_fixture.ts";

const cases = loadCases();
// In this thread, and yet by the protocol.
const typescript = remoteTestee(await Connection.start(new LocalLink(adapter)));
await build(["testee-guest"]);
const guest = new URL("../zig-out/bin/testee_guest.wasm", import.meta.url);
const module = await WebAssembly.compile(await Deno.readFile(guest));
const zig = remoteTestee(await Connection.start(new LocalGuest(module)));

Deno.test("cases: every file is what conformance/reference/make_cases.ts writes", () => {
  const folder = new URL("cases/", import.meta.url);
  const files = makeFiles();
  for (const [name, text] of files) {
    const found = Deno.readTextFileSync(new URL(name, folder));
    assert(found === text, `conformance/cases/${name} is stale: run make_cases.ts`);
  }
  const names = [...Deno.readDirSync(folder)].map(({ name }) => name);
  assertEquals(names.sort(), [...files.keys()].sort());
  assertEquals(names, NOUNS.map((noun) => `${noun}.jsonl`).sort());
});

Deno.test("cases: the reference encoder shares no code with anybody", () => {
  const folder = new URL("reference/", import.meta.url);
  const layout = new URL("../spec/layout.json", import.meta.url).href;
  for (const part of [folder, new URL("nouns/", folder)]) {
    for (const { name } of [...Deno.readDirSync(part)].filter(({ isFile }) => isFile)) {
      const file = new URL(name, part);
      for (const [, target] of Deno.readTextFileSync(file).matchAll(/\bfrom "([^"]+)"/g)) {
        const { href } = new URL(target!, file);
        const isOurs = target!.startsWith(".") && href.startsWith(folder.href);
        assert(isOurs || href === layout, `${file} imports ${target}`);
      }
    }
  }
});

const validate = new Ajv2020({ allErrors: true, strict: false }).compile(schema);

function assertValid(entry: unknown, id: string): void {
  assert(validate(entry), `${id}: ${JSON.stringify(validate.errors?.slice(0, 3))}`);
}

Deno.test("cases: each is as conformance/cases.schema.json says", () => {
  for (const entry of cases.values()) assertValid(entry, entry.id);
});

Deno.test("cases: with its change, every invalid case is still as the schema says", () => {
  for (const entry of [...cases.values()].filter(isInvalid)) {
    const { id, about, clauses, expect } = entry;
    assertValid({ id, about, clauses, ...resolve(entry, cases).setting, expect }, id);
  }
});

Deno.test("cases: what a writer is to write is what its codec says", () => {
  for (const entry of cases.values()) {
    const { setting } = resolve(entry, cases);
    for (const operation of setting.operations ?? []) {
      const payload = "write" in operation
        ? operation.write
        : "claim" in operation
        ? operation.claim
        : undefined;
      if (payload !== undefined) assertEncoded(payload, setting.role, entry.id);
    }
  }
});

/** Every payload here is one that a writer which checks what its caller hands over must take. */
function assertEncoded(payload: Payload, role: Role, id: string): void {
  if (role === "mailbox_writer") return assert(Array.isArray(payload.json), id);
  const { codec = 0 } = payload;
  assert(codec <= 5 || codec >= 128, `${id}: only a relay writes codec ${codec}`);
  if (codec === 4) return void readValues(toBytes(payload));
  if (codec === 5) return void formOfCbor(toBytes(payload));
  if (codec === 0 || codec >= 128) return;
  const text = new TextDecoder("utf-8", { fatal: true }).decode(toBytes(payload));
  const value: unknown = codec === 1 ? text : JSON.parse(text);
  if (codec === 3) assert(Array.isArray(value) && value.length > 0, `${id}: no batch`);
}

Deno.test("conformance/README.md shows cases as they are", async () => {
  const text = await Deno.readTextFile(new URL("README.md", import.meta.url));
  const shown = [...text.matchAll(/```json\n(.*?)```/gs)].map(([, json]) => JSON.parse(json!));
  assert(shown.length >= 4);
  for (const entry of shown as Case[]) assertEquals(entry, cases.get(entry.id));
});

Deno.test("conformance/README.md says what each name in `may_decline` means", async () => {
  const text = await Deno.readTextFile(new URL("README.md", import.meta.url));
  const table = text.slice(text.indexOf("### Declining"), text.indexOf("### Without the kit"));
  const told = [...table.matchAll(/^\| `(\w+)` \|/gm)].map(([, name]) => name);
  const [, ...rows] = told; // Without the head of the table.
  const used = new Set([...cases.values()].flatMap(({ may_decline = [] }) => may_decline));
  assertEquals(rows.toSorted(), [...used].sort());
  assertEquals(rows, schema.properties.may_decline.items.enum);
});

Deno.test("cases: ids are unique, and begin with the noun of their file", () => {
  const seen = new Set<string>();
  for (const noun of NOUNS) {
    for (const { id } of loadNoun(noun)) {
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

Deno.test("cases: whoever overlooks the change of an invalid case fails it", async () => {
  for (const entry of cases.values()) {
    const resolved = resolve(entry, cases);
    const testee = [typescript, zig].find((each) => offers(each, entry));
    if (!isInvalid(entry) || testee === undefined) continue;
    if (declined(resolved, testee) !== undefined) continue;
    const base = resolve(cases.get(entry.from) as Case, cases);
    const { problems } = await runCase({ ...base, expect: entry.expect }, testee);
    assert(problems.length > 0, `${entry.id} cannot be told from ${entry.from}`);
  }
});

for (const testee of [typescript, zig]) addTests(testee);

/** Whether a testee offers the chapter of a case. */
function offers({ nouns }: Testee, { id }: Case): boolean {
  return nouns.includes(nounOf(id));
}

/** One test for each case, so that a failure names it. */
function addTests(testee: Testee): void {
  const counts = new Map<string, number>();
  for (const entry of cases.values()) {
    if (!offers(testee, entry)) continue;
    const resolved = resolve(entry, cases);
    const name = declined(resolved, testee);
    if (name !== undefined) {
      counts.set(name, (counts.get(name) ?? 0) + 1);
      continue;
    }
    Deno.test(`${testee.name}: ${entry.id} [${entry.clauses[0]}]`, async () => {
      assertEquals((await runCase(resolved, testee)).problems, [], entry.about);
    });
  }
  for (const name of testee.lacks) {
    const count = counts.get(name);
    Deno.test(`${testee.name}: ${count} cases declined: ${name}`, () => {
      assert(count !== undefined, `no case may be declined for ${name}`);
    });
  }
}
