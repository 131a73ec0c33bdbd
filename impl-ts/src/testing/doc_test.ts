import { assert, assertEquals } from "@std/assert";
import { checkExamples, listSources, runExamples } from "./examples_fixture.ts";

const PACKAGE = `${import.meta.dirname}/../..`;
const SOURCES = `${PACKAGE}/src`;

/** A symbol in what `deno doc --json` prints, as far as it matters here. */
interface Symbol {
  name: string;
  declarations: { jsDoc?: { tags?: { kind: string; doc?: string }[] } }[];
}

Deno.test("every symbol that is exported has an example", async () => {
  const { exports } = JSON.parse(await Deno.readTextFile(`${PACKAGE}/deno.json`));
  let count = 0;
  const lacking: string[] = [];
  for (const [name, path] of Object.entries<string>(exports)) {
    for (const symbol of await documented(`${PACKAGE}/${path}`)) {
      const tags = symbol.declarations.flatMap(({ jsDoc }) => jsDoc?.tags ?? []);
      const has = tags.some(({ kind, doc }) => kind === "example" && doc?.includes("```ts\n"));
      if (!has) lacking.push(`${name}: ${symbol.name}`);
      count++;
    }
  }
  assertEquals(lacking, []);
  assert(count > 80, `only ${count} symbols were found`);
});

async function documented(path: string): Promise<Symbol[]> {
  const { code, stdout } = await new Deno.Command(Deno.execPath(), {
    args: ["doc", "--json", path],
    stderr: "null",
  }).output();
  assertEquals(code, 0, path);
  const { nodes } = JSON.parse(new TextDecoder().decode(stdout));
  return Object.values<{ symbols?: Symbol[] }>(nodes).flatMap(({ symbols }) => symbols ?? []);
}

Deno.test("the examples in the doc comments compile", async () => {
  await checkExamples(SOURCES, listSources(SOURCES));
});

Deno.test("the examples in the doc comments run", async () => {
  // Those folders run their own.
  const files = listSources(SOURCES).filter((path) => !/^(?:host|compat)\//.test(path));
  assert(await runExamples(SOURCES, files) >= 60);
});
