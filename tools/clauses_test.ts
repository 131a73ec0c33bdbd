import { assertEquals } from "@std/assert";
import { inspect, readCitations, readClauses, unmarkedNumbers } from "./clauses.ts";
import { keepComments } from "./comments.ts";
import { linkProblems, readLinks } from "./links.ts";

/** A chapter with one fenced block. */
function chapter(body: string, path = "spec/ring.md") {
  return { path, text: `# Ring\n\n\`\`\`\n${body}\n\`\`\`\n` };
}

Deno.test("readClauses: one clause, its place and its keyword", () => {
  const { clauses, problems } = readClauses(
    chapter("[ring.publish] A writer MUST NOT do\nthis.\n\n[ring.more] An endpoint MAY do that."),
  );
  assertEquals(problems, []);
  assertEquals(clauses, [
    {
      id: "ring.publish",
      place: "spec/ring.md:4",
      keyword: "MUST NOT",
      role: "writer",
      body: "A writer MUST NOT do this.",
    },
    {
      id: "ring.more",
      place: "spec/ring.md:7",
      keyword: "MAY",
      role: "endpoint",
      body: "An endpoint MAY do that.",
    },
  ]);
});

Deno.test("unmarkedNumbers: finds hexadecimal that could be taken for something else", () => {
  const found = (text: string) => unmarkedNumbers({ path: "spec/ring.md", text }).length;
  assertEquals(found("The mask `ffff`, the place 1f, and 9e0.\n"), 3);
  assertEquals(found("`0xffff`, 0x1f, 128, `0d 0a`, u32, a face; (1, 2)\n"), 0);
  assertEquals(found("```\n1f  0d 0a\n```\n"), 0);
});

Deno.test("readClauses: refuses a duty of more than 40 words", () => {
  const problems = (words: number) =>
    readClauses(chapter(`[ring.a] A writer MUST do${" so".repeat(words - 4)}.`)).problems;
  assertEquals(problems(40), []);
  assertEquals(problems(41), ["spec/ring.md:4: [ring.a] has 41 words, more than 40"]);
});

Deno.test("readClauses: clauses of files keep the noun of the chapter that they have left", () => {
  const problems = (path: string, id: string) =>
    readClauses({ path, text: `\`\`\`\n[${id}] A writer MUST do.\n\`\`\`\n` }).problems;
  assertEquals(problems("spec/file.md", "segment.file_own"), []);
  assertEquals(problems("spec/segment.md", "segment.file_own"), [
    "spec/segment.md:2: [segment.file_own] stands in the chapter segment",
  ]);
  assertEquals(problems("spec/file.md", "segment.align"), [
    "spec/file.md:2: [segment.align] stands in the chapter file",
  ]);
});

Deno.test("readClauses: refuses no duty, two duties, and another chapter's noun", () => {
  const problems = (body: string) => readClauses(chapter(body)).problems;
  assertEquals(problems("[ring.a] A writer does."), [
    "spec/ring.md:4: [ring.a] has 0 duties, not one",
  ]);
  assertEquals(problems("[ring.a] A writer MUST do\nand MAY rest."), [
    "spec/ring.md:4: [ring.a] has 2 duties, not one",
  ]);
  assertEquals(problems("[pipe.a] A writer MUST do."), [
    "spec/ring.md:4: [pipe.a] stands in the chapter ring",
  ]);
  assertEquals(problems("[ring.a] A writer MUST\nNOT do."), []);
  assertEquals(problems("[ring.a] It MUST do."), [
    'spec/ring.md:4: [ring.a] does not begin with its role: "A writer ..."',
  ]);
  // The empty line ends the clause: what follows is not counted.
  assertEquals(problems("[ring.a] A writer MUST do.\n\nIt MAY rest."), []);
});

Deno.test("readClauses: only fenced blocks without a language define", () => {
  const text = "[ring.a] MUST\n\n```text\n[ring.b] It MUST do.\n```\n";
  assertEquals(readClauses({ path: "spec/ring.md", text }), { clauses: [], problems: [] });
  const open = { path: "spec/ring.md", text: "```\n[ring.a] A writer MUST do.\n" };
  assertEquals(readClauses(open).problems, ["spec/ring.md: a fenced block is never closed"]);
});

Deno.test("keepComments: TypeScript strings, templates and patterns are code", () => {
  const keep = (text: string) => keepComments(text, "typescript").trim().replace(/\s+/g, " ");
  assertEquals(keep('a["// no"]; // yes'), "// yes");
  assertEquals(keep("`// no ${x}`; /* yes\nyes */"), "/* yes yes */");
  assertEquals(keep("x = /[/`'\"]/.test(y); // yes"), "// yes");
  assertEquals(keep("return /`/; // yes"), "// yes");
  assertEquals(keep("a / b; // yes `"), "// yes `");
  assertEquals(keep("'it\\'s // no'; // yes"), "// yes");
  assertEquals(keepComments("a\n// b\n", "typescript"), " \n// b\n");
});

Deno.test("keepComments: raw lines and character literals of Zig are code", () => {
  const keep = (text: string) => keepComments(text, "zig").trim().replace(/\s+/g, " ");
  assertEquals(keep("const s =\n    \\\\ // no\n; // yes"), "// yes");
  assertEquals(keep("const c = '\"'; // yes"), "// yes");
  assertEquals(keep("a /* b; // yes"), "// yes");
});

Deno.test("readCitations: comments and names of tests, not code", () => {
  const ids = (path: string, text: string, language?: "typescript" | "zig") =>
    readCitations({ path, text }, language).map(({ id, place }) => `${place} ${id}`);
  assertEquals(
    ids("a.ts", "// [ring.publish] why\nwords[ring.tail] = [ring.head];", "typescript"),
    ["a.ts:1 ring.publish"],
  );
  assertEquals(ids("a.ts", "// words[ring.tail] moves; see [ring.md](x)", "typescript"), []);
  assertEquals(ids("a.ts", 'Deno.test("[ring.publish] holds", () => {})', "typescript"), [
    "a.ts:1 ring.publish",
  ]);
  assertEquals(ids("a.ts", 'fail("[ring.publish]")', "typescript"), []);
  assertEquals(ids("a.zig", 'test "[ring.publish] holds" {}', "zig"), ["a.zig:1 ring.publish"]);
});

Deno.test("readCitations: prose of Markdown, members of JSON", () => {
  const ids = (path: string, text: string) => readCitations({ path, text }).map(({ id }) => id);
  assertEquals(ids("a.md", "See [ring.a].\n```text\n[ring.b]\n```\n[ring.c](c.md)"), ["ring.a"]);
  assertEquals(ids("a.md", "A clause is `[noun.fact]`."), []);
  // A definition is no citation of itself, but may cite another one.
  assertEquals(ids("a.md", "```\n[ring.a] It MUST do as [ring.b].\n```"), ["ring.b"]);
  const json = '{"clause": "ring.a",\n"clauses": ["ring.b", "ring.c"], "about": "ring.d"}';
  assertEquals(ids("a.json", json), ["ring.a", "ring.b", "ring.c"]);
});

Deno.test("inspect: counts, and names what is defined twice or nowhere", () => {
  const good = [
    chapter("[ring.a] A writer MUST do.\n\n[ring.b] A reader SHOULD do."),
    { path: "impl-ts/src/ring/ring.ts", text: "// [ring.a]\n// [ring.a]\n" },
    { path: "impl-zig/src/ring/side.zig", text: "// [ring.a]\n" },
    { path: "spec/models/wake.pml", text: "/* [ring.a] */\n" },
  ];
  const report = inspect(good);
  assertEquals(report.problems, []);
  assertEquals(report.uncited, ["ring.b"]);
  assertEquals(report.lines, [
    "2 clauses, 1 of them MUST; cited: 1 in TypeScript, 1 in Zig, 1 in models, " +
    "0 in conformance, 0 in chapters",
  ]);
  const bad = inspect([
    ...good,
    chapter("[ring.a] A writer MUST do.", "spec/other/ring.md"),
    { path: "conformance/cases/ring.jsonl", text: '{}\n{"clause":"ring.x"}' },
  ]);
  // Only chapters define: the file in a folder of spec/ does not.
  assertEquals(bad.problems, ["conformance/cases/ring.jsonl:2: [ring.x] is no clause"]);
  const twice = chapter("[ring.a] A writer MUST do.\n\n[ring.a] A writer MUST do.");
  assertEquals(inspect([twice]).problems, [
    "spec/ring.md:6: [ring.a] is defined at spec/ring.md:4 too",
  ]);
});

Deno.test("linkProblems: files, folders and headings, and their absence", () => {
  const files = [
    { path: "README.md", text: "[a](spec/ring.md#the-ring) [b](spec/) [c](https://x.org/y)" },
    { path: "spec/ring.md", text: "# The `Ring`\n[d](../README.md) [e](#the-ring)" },
  ];
  assertEquals(linkProblems(files), []);
  const broken = (text: string) => linkProblems([{ path: "spec/a.md", text }, ...files]);
  assertEquals(broken("[x](rong.md)"), ["spec/a.md:1: the link rong.md leads to no file"]);
  assertEquals(broken("\n[x]: rong.md"), ["spec/a.md:2: the link rong.md leads to no file"]);
  assertEquals(broken("[x](ring.md#b)"), ["spec/a.md:1: the link ring.md#b leads to no heading"]);
  assertEquals(broken("[x](../../a.md)"), [
    "spec/a.md:1: the link ../../a.md leaves the repository",
  ]);
});

Deno.test("readLinks: code is no link", () => {
  assertEquals(readLinks("`[a](b)`\n```\n[c](d)\n```\n[e](f)"), [{ target: "f", line: 5 }]);
});
