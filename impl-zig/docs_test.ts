// The reference: `zig build docs` makes it, and everything that the module offers is described.

import { assert, assertEquals, assertGreater } from "@std/assert";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { run } from "../tools/run.ts";

const ROOT = fileURLToPath(new URL("../", import.meta.url));
const SOURCES = `${ROOT}impl-zig/src`;

/** What can be seen from outside of a file, and whether a doc comment stands above it. */
interface Declaration {
  name: string;
  described: boolean;
  /** Where it comes from, if it is another file's: the path as the import has it. */
  from?: { file: string; name: string };
  /** The names in it, if it is a type. */
  members: Declaration[];
}

/** The declarations of a source file at this depth, by their indentation. */
function declarations(lines: string[], depth = 0): Declaration[] {
  const indentation = "    ".repeat(depth);
  const found: Declaration[] = [];
  lines.forEach((line, index) => {
    const match = /^( *)pub (?:inline |noinline |export )?(?:const|fn|var) (@"\w+"|\w+)/.exec(line);
    if (match?.[1] !== indentation) return;
    const own = lines.slice(index + 1);
    const end = own.findIndex((other) => other.startsWith(`${indentation}}`));
    const isType = /= (extern |packed )?(struct|enum|union)\b.*\{$/.test(line);
    const [, file, name = ""] = /= @import\("([\w./]+\.zig)"\)(?:\.(\w+))?;/.exec(line) ?? [];
    found.push({
      name: match[2] as string,
      described: lines[index - 1]?.trimStart().startsWith("///") ?? false,
      ...(file === undefined ? {} : { from: { file, name } }),
      members: isType && end >= 0 ? declarations(own.slice(0, end), depth + 1) : [],
    });
  });
  return found;
}

async function linesOf(file: string): Promise<string[]> {
  return (await Deno.readTextFile(`${SOURCES}/${file}`)).split("\n");
}

/**
 * What is not described of a declaration, which stands in a file of this folder, however many files
 * it was handed through.
 */
async function undescribed(item: Declaration, path: string, folder = ""): Promise<string[]> {
  const members = item.members.filter(({ described }) => !described)
    .map(({ name }) => `${path}.${name}`);
  if (item.from === undefined) return item.described ? members : [path, ...members];
  const file = join(folder, item.from.file);
  const lines = await linesOf(file);
  // A whole file: what stands at its top describes it, and its names are its members.
  if (item.from.name === "") {
    return [
      ...(item.described || lines[0]?.startsWith("//!") ? [] : [path]),
      ...declarations(lines).filter(({ described, from }) => !described && from === undefined)
        .map(({ name }) => `${path}.${name}`),
    ];
  }
  const target = declarations(lines).find(({ name }) => name === item.from?.name);
  assert(target, `${path}: ${file} has no ${item.from.name}`);
  const described = target.described || item.described;
  return await undescribed({ ...target, described }, path, dirname(file));
}

Deno.test("root.zig: everything that it offers is described, with its members", async () => {
  const offered = declarations(await linesOf("root.zig"));
  assertGreater(offered.length, 25);
  const missing = await Promise.all(offered.map((item) => undescribed(item, item.name)));
  assertEquals(missing.flat(), []);
});

Deno.test("root.zig: the check sees what is not described", async () => {
  const lines =
    "/// A type.\npub const T = struct {\n    pub fn f() void {}\n};\npub fn g() void {}";
  const missing = await Promise.all(
    declarations(lines.split("\n")).map((item) => undescribed(item, item.name)),
  );
  assertEquals(missing.flat(), ["T.f", "g"]);
});

Deno.test("zig build docs: makes a reference with the public nouns in it", async () => {
  const folder = await Deno.makeTempDir({ prefix: "millrace-docs-" });
  try {
    const command = ["zig", "build", "docs", "--prefix", folder];
    const outcome = await run(command, { cwd: ROOT, timeoutMs: 10 * 60_000, echo: false });
    assertEquals(outcome.code, 0, outcome.output);
    for (const name of ["index.html", "main.js", "main.wasm"]) {
      assertGreater((await Deno.stat(`${folder}/docs/${name}`)).size, 1000);
    }
    // The page reads this archive, and shows what it finds in it.
    const archive = new TextDecoder().decode(await Deno.readFile(`${folder}/docs/sources.tar`));
    for (const { name, from } of declarations(await linesOf("root.zig"))) {
      assert(archive.includes(`pub const ${name} = `), `${name} is missing`);
      assert(from === undefined || archive.includes(`millrace/${from.file}`), from?.file);
    }
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
});
