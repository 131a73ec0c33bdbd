import { assertEquals, assertNotEquals } from "@std/assert";
import { listFiles, readTexts } from "./files.ts";
import { absentNouns, importProblems } from "./imports.ts";
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
    /^conformance\/(?:cases\/.*|inspect\/golden\/.*|stream\/cases\.json)$|\.lock$/.test(path)
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
      "impl-zig/src/c_abi.zig",
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

Deno.test("textProblems: one line break at the end, and 600 lines at most", () => {
  const problems = (text: string, path = "tools/a.ts") => textProblems({ path, text });
  assertEquals(problems("a\n"), []);
  assertEquals(problems(""), []);
  assertEquals(problems("a"), ["tools/a.ts: no line break at the end"]);
  assertEquals(problems("a\n\n"), ["tools/a.ts: empty lines at the end"]);
  assertEquals(problems("a\n".repeat(600)), []);
  assertEquals(problems("a\n".repeat(601)), ["tools/a.ts: 601 lines, more than 600"]);
  assertEquals(problems("a\n".repeat(601), "spec/layout.json"), []);
  assertEquals(problems("// Generated from spec/layout.json by x\n" + "a\n".repeat(601)), []);
  const filled = (count: number) =>
    `/* generated: enum a */\n${"a\n".repeat(count)}/* /generated */\n`;
  assertEquals(problems("a\n".repeat(596) + filled(300) + filled(300)), []);
  assertEquals(problems(filled(300) + "a\n".repeat(597) + filled(300)), [
    "tools/a.ts: 601 lines, more than 600",
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
  assertEquals(problems(wide, "a.patch"), []);
  assertEquals(problems(`+${wide}`, "a.patch"), ["a.patch:1: 102 columns, more than 101"]);
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

Deno.test("absentNouns: the order of the nouns lists only what exists", async () => {
  assertEquals(absentNouns(await listFiles(ROOT)), []);
  const absent = absentNouns(["impl-ts/src/layout.ts", "impl-zig/src/wait_test.zig"]);
  assertEquals([absent.includes("layout"), absent.includes("wait")], [false, true]);
});

Deno.test("importProblems: a file imports only what stands below it", () => {
  const ts = (file: string, text: string) => importProblems({ path: `impl-ts/src/${file}`, text });
  const zig = (file: string, text: string) =>
    importProblems({ path: `impl-zig/src/${file}`, text });
  assertEquals(ts("ring.ts", 'import { a } from "./frame.ts";\nexport * from "./layout.ts";'), []);
  assertEquals(ts("frame.ts", 'import {\n  a,\n} from "./ring.ts";'), [
    "impl-ts/src/frame.ts:3: imports ./ring.ts, which stands above it",
  ]);
  assertEquals(ts("frame.ts", 'export { a } from "./ring.ts";').length, 1);
  assertEquals(ts("frame.ts", 'const a = await import("./ring.ts");').length, 1);
  assertEquals(ts("frame.ts", 'type A = import("./ring.ts").A;').length, 1);
  assertEquals(ts("ring_reader.ts", 'import "./ring.ts";'), []);
  assertEquals(ts("ring.ts", 'import "./ring_reader.ts";'), []);
  assertEquals(ts("frame.ts", 'import "./ring_reader.ts";').length, 1);
  assertEquals(ts("compat/mw.ts", 'import "../port.ts";\nimport "node:fs";'), []);
  assertEquals(ts("port.ts", 'import "./compat/mw.ts";').length, 1);
  assertEquals(zig("ring.zig", 'const f = @import("frame.zig");\n_ = @import("std");'), []);
  assertEquals(zig("frame.zig", 'const f = @import("ring.zig");'), [
    "impl-zig/src/frame.zig:1: imports ring.zig, which stands above it",
  ]);
  assertEquals(zig("root.zig", 'const f = @import("call.zig");'), []);
});

Deno.test("importProblems: an implementation imports nothing from outside", () => {
  const ts = (file: string, text: string) => importProblems({ path: `impl-ts/src/${file}`, text });
  for (const target of ["npm:ajv@8", "node:fs", "@std/assert", "../../tools/a.ts", "../x.ts"]) {
    assertEquals(ts("ring.ts", `import { a } from "${target}";`), [
      `impl-ts/src/ring.ts:1: imports ${target}, which lies outside of impl-ts/src/`,
    ]);
  }
  // One library, of one noun, by its own name.
  assertEquals(ts("cbor_carry.ts", 'import { Tag } from "cbor-x/decode";'), []);
  for (const target of ["cbor-xy", "npm:cbor-x", "ajv"]) {
    assertEquals(ts("cbor.ts", `import { a } from "${target}";`).length, 1);
  }
  assertEquals(ts("codec.ts", 'import { Tag } from "cbor-x/decode";').length, 1);
  assertEquals(ts("ring_test.ts", 'import { a } from "@std/assert";'), []);
  assertEquals(ts("ring.ts", 'import { a } from "./ring_test.ts";').length, 1);
  assertEquals(ts("fixture.ts", 'import { a } from "@std/assert";'), []);
  assertEquals(ts("ring.ts", 'import { a } from "./fixture.ts";').length, 1);
  assertEquals(ts("ring.ts", ' * import { a } from "jsr:@millrace/millrace";'), []);
  assertEquals(ts("gadget.ts", ""), [
    "impl-ts/src/gadget.ts: has no place in the order of tools/imports.ts",
  ]);
  assertEquals(ts("ring.ts", 'import "./gadget.ts";'), [
    "impl-ts/src/ring.ts:1: imports ./gadget.ts, which has no place in the order of " +
    "tools/imports.ts",
  ]);
  assertEquals(importProblems({ path: "tools/a.ts", text: 'import "npm:ajv@8";' }), []);
});
