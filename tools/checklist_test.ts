import { assert, assertEquals, assertStringIncludes } from "@std/assert";
import { makeChecklist } from "./checklist.ts";
import { ROLES } from "./clauses.ts";
import { listFiles, readTexts } from "./files.ts";

const chapter = (path: string, ...lines: string[]) => ({
  path,
  text: ["```", ...lines, "```", ""].join("\n"),
});

Deno.test("makeChecklist: each duty stands under its role, with a link to its chapter", () => {
  const page = makeChecklist([
    chapter("spec/ring.md", "[ring.a] A writer MUST do | so.", "", "[ring.b] A reader MAY rest."),
    chapter("spec/file.md", "[segment.file_c] A writer MUST\nwait."),
    { path: "README.md", text: "```\n[ring.d] A writer MUST not be here.\n```\n" },
  ]);
  const writer = page.slice(page.indexOf("## Writer"), page.indexOf("## Reader"));
  assertEquals(writer.trim().split("\n").slice(2), [
    "| clause | duty |",
    "| --- | --- |",
    "| [`ring.a`](ring.md) | A writer MUST do \\| so. |",
    "| [`segment.file_c`](file.md) | A writer MUST wait. |",
  ]);
  assert(!page.includes("ring.d"));
});

Deno.test("makeChecklist: the chapters give every role its duties", async () => {
  const root = `${import.meta.dirname}/..`;
  const page = makeChecklist(await readTexts(root, await listFiles(root)));
  const sections = page.split("\n## ").slice(1);
  assertEquals(sections.length, ROLES.length);
  for (const section of sections) assertStringIncludes(section, "](", section.split("\n")[0]);
});
