import { assert, assertEquals, assertNotEquals } from "@std/assert";
import { listFiles, readTexts } from "./files.ts";
import { absentEntries, circleProblems, importProblems } from "./imports.ts";
import { proseProblems } from "./prose.ts";
import { lineProblems, nameProblems, textProblems, tidyProblems } from "./tidy.ts";

const ROOT = `${import.meta.dirname}/..`;

Deno.test("tidy: the repository keeps the house rules", async () => {
  const problems = tidyProblems(await readTexts(ROOT, await listFiles(ROOT)));
  if (problems.length > 0) throw new Error(`${problems.length} problems\n${problems.join("\n")}`);
});

Deno.test("tidy: ./millrace runs the tasks of deno.json and no others", async () => {
  const script = await Deno.readTextFile(`${ROOT}/millrace`);
  const accepted = [...script.matchAll(/^ {2}([a-z |]+)\) .*;;$/gm)]
    .flatMap((match) => match[1]!.split(" | "));
  const { tasks } = JSON.parse(await Deno.readTextFile(`${ROOT}/deno.json`));
  assertEquals(accepted.sort(), Object.keys(tasks).sort());
  const told = [...script.matchAll(/^ {2}([a-z]+) {2,}\S/gm)].map((match) => match[1]);
  assertEquals(told, Object.keys(tasks));
});

Deno.test("tidy: what describes the build has functions of at most 70 lines", async () => {
  const long: string[] = [];
  for (const path of ["build.zig", "impl-zig/build_repository.zig"]) {
    const text = await Deno.readTextFile(`${ROOT}/${path}`);
    const bodies = [...text.matchAll(/^( *)(?:pub )?fn (\w+)[^]*?^\1}$/gm)];
    assertNotEquals(bodies, [], path);
    for (const [body, , name] of bodies) {
      if (body.split("\n").length > 70) long.push(`${path}: ${name}`);
    }
  }
  assertEquals(long, []);
});

Deno.test("tidy: .gitattributes marks what programs write, and nothing else", async () => {
  const texts = await readTexts(ROOT, await listFiles(ROOT));
  const written = texts.filter(({ path, text }) =>
    /^(?:\/\/!?|#) Generated from /.test(text) ||
    /^conformance\/(?:cases\/.*|inspect\/golden\/.*|stream\/cases\.jsonl)$|\.lock$/.test(path)
  );
  const paths = texts.map(({ path }) => path);
  const command = ["check-attr", "-z", "linguist-generated", "--", ...paths];
  const { stdout } = await new Deno.Command("git", { args: command, cwd: ROOT }).output();
  // For each file: its path, the attribute, and `set` or `unspecified`.
  const said = new TextDecoder().decode(stdout).split("\0");
  const marked = paths.filter((_, index) => said[3 * index + 2] === "set");
  assertEquals(marked, written.map(({ path }) => path));
});

Deno.test("tidy: what is to be run can be run", async () => {
  for (const path of ["millrace", ".ci/run"]) {
    const { mode } = await Deno.stat(`${ROOT}/${path}`);
    assertEquals((mode ?? 0) & 0o111, 0o111, path);
  }
});

Deno.test("nameProblems: snake_case, and only what is expected at the top", () => {
  for (
    const path of [
      "README.md",
      "impl-zig/src/wait/spin.zig",
      ".ci/run",
      ".gitignore",
      "build.zig.zon",
      "tools/std/assert.d.ts",
      "conformance/README.md",
    ]
  ) assertEquals(nameProblems(path), []);
  assertEquals(nameProblems("notes.md"), [
    "notes.md: notes.md is not expected at the top of the tree",
  ]);
  assertEquals(nameProblems("tools/myTool.ts"), [
    "tools/myTool.ts: myTool.ts is not in snake_case",
  ]);
  assertEquals(nameProblems("tools/my-tool.ts"), [
    "tools/my-tool.ts: my-tool.ts is not in snake_case",
  ]);
  assertEquals(nameProblems("spec/a b/c.md"), ["spec/a b/c.md: a b is not in snake_case"]);
});

Deno.test("textProblems: one line break at the end, and 1,000 lines at most", () => {
  const problems = (text: string, path = "tools/a.ts") => textProblems({ path, text });
  assertEquals(problems("a\n"), []);
  assertEquals(problems(""), []);
  assertEquals(problems("a"), ["tools/a.ts: no line break at the end"]);
  assertEquals(problems("a\n\n"), ["tools/a.ts: empty lines at the end"]);
  assertEquals(problems("a\n".repeat(1_000)), []);
  assertEquals(problems("a\n".repeat(1_001)), ["tools/a.ts: 1001 lines, more than 1000"]);
  assertEquals(problems("a\n".repeat(1_001), "spec/layout.json"), []);
  assertEquals(problems("// Generated from spec/layout.json by x\n" + "a\n".repeat(1_001)), []);
  const filled = (count: number) =>
    `/* generated: enum a */\n${"a\n".repeat(count)}/* /generated */\n`;
  assertEquals(problems("a\n".repeat(996) + filled(300) + filled(300)), []);
  assertEquals(problems(filled(300) + "a\n".repeat(997) + filled(300)), [
    "tools/a.ts: 1001 lines, more than 1000",
  ]);
});

Deno.test("lineProblems: columns, spaces and tabs", () => {
  const problems = (text: string, path = "tools/a.ts") => lineProblems({ path, text });
  const wide = "x".repeat(101);
  assertEquals(problems("é".repeat(100)), []);
  assertEquals(problems(`\n${wide}`), ["tools/a.ts:2: 101 columns, more than 100"]);
  assertEquals(problems(wide, "a.md"), ["a.md:1: 101 columns, more than 100"]);
  assertEquals(problems(`| ${wide} |`, "a.md"), []);
  assertEquals(problems(wide, "spec/layout.json"), []);
  assertEquals(problems("a "), ["tools/a.ts:1: space at the end"]);
  assertEquals(problems("a\r\n"), ["tools/a.ts:1: space at the end"]);
  assertEquals(problems("\ta"), ["tools/a.ts:1: a tab"]);
  assertEquals(problems("\ta", "impl-zig/include/makefile"), []);
});

Deno.test("lineProblems: unfinished work, paths of a machine, hosts of registries", () => {
  const problems = (text: string) => lineProblems({ path: "a.ts", text });
  assertEquals(problems("// TO" + "DO: later"), ["a.ts:1: unfinished: TO" + "DO"]);
  assertEquals(problems("// TO" + "DOS"), []);
  for (const path of ["/ro" + "ot/x", "/wo" + "rk/main", "file:///ho" + "me/me", "cd /ro" + "ot"]) {
    assertEquals(problems(path), ["a.ts:1: names a path of one machine"], path);
  }
  for (const path of ["src/ro" + "ot.zig", "./ho" + "me/x", "/ro" + "ot.zig", "/wo" + "rkers/a"]) {
    assertEquals(problems(path), [], path);
  }
  assertEquals(problems("https://registry.npm" + "js.org/"), [
    "a.ts:1: names the host of a registry",
  ]);
});

Deno.test("proseProblems: words that make a reader guess, in comments and Markdown", () => {
  const problems = (text: string, path = "a.md") =>
    proseProblems({ path, text }).map((problem) => problem.split(": ").slice(0, 2).join(": "));
  for (
    const [text, words] of [
      ["The frame behind it.", "behind"],
      ["Everything, but for pads.", "but for"],
      ["One of those that wait.", "of those that"],
      ["Among those who wait.", "Among those who"],
      ["It opens files, where there are such.", "such"],
      ["It leaves less than 16 bytes free behind it.", "behind"],
    ] as const
  ) {
    assertEquals(problems(text), [`a.md:1: ${words}`]);
    for (const path of ["a.ts", "a.js", "a.zig"]) {
      assertEquals(problems(`\n// ${text}`, path), [`${path}:2: ${words}`]);
      assertEquals(problems(`const a = b; // ${text}`, path), [`${path}:1: ${words}`]);
    }
    assertEquals(problems(`/**\n * ${text}\n */`, "a.ts"), [`a.ts:2: ${words}`]);
    assertEquals(problems(`const a = '${text}';`, "a.ts"), []);
    assertEquals(problems(text, "a.json"), []);
    assertEquals(problems(`\`${text}\` and "${text}"`), []);
    assertEquals(problems(`\`\`\`ts\n${text}\n\`\`\``), []);
    // A clause.
    assertEquals(problems(`\`\`\`\n${text}\n\`\`\``), [`a.md:2: ${words}`]);
  }
  assertEquals(problems("/// All, but\n/// for one.", "a.zig"), ["a.zig:1: but for"]);
  assertEquals(problems("/**\n * One of\n * those that wait.\n */", "a.ts"), [
    "a.ts:2: of those that",
  ]);
  for (
    const text of [
      "[stream.behind] It cites a clause; `endpoint.behind` and endpoint.behind are names.",
      "A writer that dies leaves a claim behind. It may leave\nthem behind.",
      "Nothing is left behind.",
      "A reader falls behind, lags far behind, and is 16 bytes behind the writer.",
      "It is there, but for instance not yet; a type, but for which there is no value.",
      "It waits not for room but for a message.",
      "The least of those. Of the endpoints that wait, and those that do not.",
      "Such files, as such, and words such as these.",
    ]
  ) assertEquals(problems(text), [], text);
});

Deno.test("absentEntries: the orders list only what exists", async () => {
  assertEquals(absentEntries(await listFiles(ROOT)), []);
  const absent = absentEntries(["impl-ts/src/memory/layout.ts", "impl-zig/src/wait/spin_test.zig"]);
  const isAbsent = (entry: string) => absent.includes(entry);
  assertEquals(isAbsent("impl-ts/src/memory/layout"), false);
  assert(["impl-ts/src/wait/", "impl-zig/src/memory/layout", "impl-zig/src/wait/"].every(isAbsent));
});

Deno.test("circleProblems: types may be imported in a circle, values not", () => {
  const circles = (...texts: string[]) =>
    circleProblems(texts.map((text, index) => ({ path: `impl-ts/src/pipe/${index}.ts`, text })));
  const value = (index: number) => `import { type A, b } from "./${index}.ts";`;
  const types = (index: number) =>
    `import { type A, type B as C } from "./${index}.ts";\nimport type { D } from "./${index}.ts";`;
  assertEquals(circles(value(1), types(0)), []);
  assertEquals(circles(value(1), value(2), `${types(0)}\n${types(1)}`), []);
  assertEquals(circles(value(1), value(2), `import {\n  a,\n  type B,\n} from "./0.ts";`), [
    [0, 1, 2].map((index) => `impl-ts/src/pipe/${index}.ts`).join(", ") +
    ": need one another by value",
  ]);
  assertEquals(circles(value(1), `export { a } from "./0.ts";`).length, 1);
  // What an import in a comment names is not loaded.
  assertEquals(circles(value(1), ` * import { a } from "./0.ts";`), []);
});

Deno.test("importProblems: a file imports only what stands below it", () => {
  const ts = (file: string, text: string) => importProblems({ path: `impl-ts/src/${file}`, text });
  const zig = (file: string, text: string) =>
    importProblems({ path: `impl-zig/src/${file}`, text });
  const below = 'import { a } from "../wait/wait.ts";\nexport * from "../memory/layout.ts";';
  assertEquals(ts("ring/ring.ts", below), []);
  assertEquals(ts("wait/wait.ts", 'import {\n  a,\n} from "../ring/ring.ts";'), [
    "impl-ts/src/wait/wait.ts:3: imports ../ring/ring.ts, which stands above it",
  ]);
  assertEquals(ts("wait/wait.ts", 'export { a } from "../ring/ring.ts";').length, 1);
  assertEquals(ts("wait/wait.ts", 'const a = await import("../ring/ring.ts");').length, 1);
  assertEquals(ts("wait/wait.ts", 'type A = import("../ring/ring.ts").A;').length, 1);
  assertEquals(ts("ring/frame.ts", 'import "./ring.ts";'), []);
  assertEquals(ts("ring/ring.ts", 'import "./frame.ts";'), []);
  assertEquals(ts("error.ts", 'import "./memory/layout.ts";'), []);
  assertEquals(ts("error.ts", 'import "./memory/segment.ts";').length, 1);
  assertEquals(ts("memory/layout.ts", 'import "./segment.ts";').length, 1);
  assertEquals(ts("call/error.ts", 'import "../error.ts";\nimport "../port/port.ts";'), []);
  assertEquals(ts("call/call.ts", 'import "../mod.ts";').length, 1);
  assertEquals(ts("compat/mw.ts", 'import "../port/port.ts";\nimport "node:fs";'), []);
  assertEquals(ts("port/port.ts", 'import "../compat/mw.ts";').length, 1);
  assertEquals(zig("ring/side.zig", 'const f = @import("frame.zig");\n_ = @import("std");'), []);
  assertEquals(zig("wait/spin.zig", 'const f = @import("../ring/frame.zig");'), [
    "impl-zig/src/wait/spin.zig:1: imports ../ring/frame.zig, which stands above it",
  ]);
  assertEquals(zig("memory/segment.zig", 'const f = @import("../wait/state.zig");'), []);
  assertEquals(zig("wait/state.zig", 'const f = @import("../memory/segment.zig");').length, 1);
  assertEquals(zig("root.zig", 'const f = @import("call/call.zig");'), []);
  assertEquals(zig("wait/state.zig", '// Tests.\n_ = @import("../root.zig");').length, 1);
  assertEquals(zig("wait/state.zig", '\n// Tests.\n_ = @import("../root.zig");'), []);
});

Deno.test("importProblems: an implementation imports nothing from outside", () => {
  const ts = (file: string, text: string) => importProblems({ path: `impl-ts/src/${file}`, text });
  for (
    const target of ["npm:ajv@8", "node:fs", "@std/assert", "../../../tools/a.ts", "../../x.ts"]
  ) {
    assertEquals(ts("ring/ring.ts", `import { a } from "${target}";`), [
      `impl-ts/src/ring/ring.ts:1: imports ${target}, which lies outside of impl-ts/src/`,
    ]);
  }
  // One library, of one entry, by its own name.
  assertEquals(ts("codec/cbor_carry.ts", 'import { Tag } from "cbor-x/decode";'), []);
  assertEquals(ts("meter/tally.ts", 'import { build } from "hdr-histogram-js";'), []);
  for (const target of ["cbor-xy", "npm:cbor-x", "ajv"]) {
    assertEquals(ts("codec/cbor.ts", `import { a } from "${target}";`).length, 1);
  }
  assertEquals(ts("codec/codec.ts", 'import { Tag } from "cbor-x/decode";').length, 1);
  assertEquals(ts("ring/ring_test.ts", 'import { a } from "@std/assert";'), []);
  assertEquals(ts("ring/ring.ts", 'import { a } from "./ring_test.ts";').length, 1);
  assertEquals(ts("testing/fixture.ts", 'import { a } from "@std/assert";'), []);
  assertEquals(ts("ring/ring.ts", 'import { a } from "../testing/fixture.ts";').length, 1);
  assertEquals(ts("ring/ring.ts", ' * import { a } from "jsr:@millrace/millrace";'), []);
  for (const path of ["gadget.ts", "gadget/ring.ts", "testing/ring.ts"]) {
    assertEquals(ts(path, ""), [
      `impl-ts/src/${path}: has no place in the order of tools/imports.ts`,
    ]);
  }
  assertEquals(ts("ring/ring.ts", 'import "../gadget.ts";'), [
    "impl-ts/src/ring/ring.ts:1: imports ../gadget.ts, which has no place in the order of " +
    "tools/imports.ts",
  ]);
  assertEquals(importProblems({ path: "tools/a.ts", text: 'import "npm:ajv@8";' }), []);
});
