// The page says how long its two files to take away are; `places/browser_test.ts` uses the page.

import { assert, assertEquals, assertStringIncludes } from "@std/assert";

/** Lines of code: those with more than a comment. */
async function codeOf(name: string): Promise<number> {
  const text = await Deno.readTextFile(`${import.meta.dirname}/${name}`);
  const bare = text.replaceAll(/\/\*\*[^]*?\*\//g, "").replaceAll(/^ *\/\/.*$/gm, "");
  return bare.split("\n").filter((line) => line.trim() !== "").length;
}

Deno.test("what one takes away from the page of Python has at most 60 lines of code", async () => {
  const counts = await Promise.all(["terminal.js", "python.js"].map(codeOf));
  assert(counts.every((count) => count > 10));
  assert(counts[0]! + counts[1]! <= 60, `${counts}`);
  const page = await Deno.readTextFile(`${import.meta.dirname}/index.html`);
  assertStringIncludes(page, "60 lines to take away");
  // Nothing in them is about this page.
  const texts = await Promise.all(
    ["terminal.js", "python.js"].map((name) => Deno.readTextFile(`${import.meta.dirname}/${name}`)),
  );
  assertEquals(texts.filter((text) => text.includes("document")), []);
});
