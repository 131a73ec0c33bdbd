// The cases of streams: that they are what their generator makes and what their schema says, and
// what implementations make of each, however the transport cuts.

import { assert, assertEquals } from "@std/assert";
import { Ajv2020 } from "ajv/2020";
import { isInvalid, settingOf } from "./case.ts";
import schema from "./cases.schema.json" with { type: "json" };
import { arriving, type Cut, type OpenStream, play } from "./driver.ts";
import { loadStreamCases, makeStreamFile } from "./make_cases.ts";
import { TypeScriptEndpoint } from "./typescript.ts";

const cases = loadStreamCases();
const testees: Record<string, OpenStream> = {
  TypeScript: (own, limit) => new TypeScriptEndpoint(own, limit),
};

Deno.test("stream cases: the file is what conformance/stream/make_cases.ts writes", () => {
  const found = Deno.readTextFileSync(new URL("cases.jsonl", import.meta.url));
  assert(found === makeStreamFile(), "conformance/stream/cases.jsonl is stale");
});

Deno.test("stream cases: each is as the schema says, with its change too", () => {
  const validate = new Ajv2020({ allErrors: true, strict: false }).compile(schema);
  for (const entry of cases.values()) {
    assert(validate(entry), `${entry.id}: ${JSON.stringify(validate.errors?.slice(0, 3))}`);
  }
  for (const entry of [...cases.values()].filter(isInvalid)) {
    const { id, about, clauses, expect } = entry;
    const changed = { id, about, clauses, ...settingOf(entry, cases), expect };
    assert(validate(changed), `${id}: ${validate.errors?.[0]?.message}`);
  }
});

Deno.test("stream cases: ids are unique, and each operation has its result", () => {
  assertEquals(cases.size, new Set(cases.keys()).size);
  for (const entry of cases.values()) {
    assert(entry.id.startsWith("stream/"), entry.id);
    assertEquals(settingOf(entry, cases).operations.length, entry.expect.results.length, entry.id);
  }
});

for (const [name, open] of Object.entries(testees)) {
  Deno.test(`stream cases: ${name}, in one piece, and byte by byte`, async (test) => {
    for (const entry of cases.values()) {
      await test.step(entry.id, async () => {
        const setting = settingOf(entry, cases);
        for (const pieces of [Infinity, 1, 16, 7]) {
          const problems = await play(open, setting, entry.expect.results, { pieces });
          assertEquals(problems, [], `in pieces of ${pieces}`);
        }
      });
    }
  });

  Deno.test(`stream cases: ${name}, cut in two at every byte`, async () => {
    for (const entry of cases.values()) {
      const setting = settingOf(entry, cases);
      for (let two = 1; two < arriving(setting); two++) {
        const problems = await play(open, setting, entry.expect.results, { two } satisfies Cut);
        assertEquals(problems, [], `${entry.id}, cut at byte ${two}`);
      }
    }
  });
}

Deno.test("stream cases: whoever overlooks the change of an invalid case fails it", async () => {
  for (const entry of [...cases.values()].filter(isInvalid)) {
    const unchanged = settingOf(cases.get(entry.from)!, cases);
    const open = testees.TypeScript!;
    const found = await play(open, unchanged, entry.expect.results, { pieces: Infinity })
      .catch((error) => [error.message]);
    // One whose result is that of the valid case shows that the change does no harm.
    const isSame = JSON.stringify(entry.expect) ===
      JSON.stringify(cases.get(entry.from)!.expect);
    assertEquals(found.length > 0, !isSame, entry.id);
  }
});
