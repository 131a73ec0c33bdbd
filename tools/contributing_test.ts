import { assert, assertEquals } from "@std/assert";

const ROOT = await Deno.realPath(`${import.meta.dirname}/..`);

Deno.test("the walk in CONTRIBUTING.md names functions that are in its files", async () => {
  const text = await Deno.readTextFile(`${ROOT}/CONTRIBUTING.md`);
  const [, section] = text.split("### The walk of one value\n");
  const spans = [...section!.split("\n### ")[0]!.matchAll(/`([^`]+)`/g)].map(([, span]) => span!);
  const paths = spans.filter((span) => /^\w+\/\w+\.ts$/.test(span));
  const sources = await Promise.all(
    [...new Set(paths)].map((path) => Deno.readTextFile(`${ROOT}/impl-ts/src/${path}`)),
  );
  const isThere = (span: string) => {
    const [owner, method] = span.split(".");
    return sources.some((source) =>
      method === undefined
        ? source.includes(`function ${owner}(`) || source.includes(`class ${owner} `)
        : source.includes(`class ${owner}`) && new RegExp(`^ .*\\b${method}[(<]`, "m").test(source)
    );
  };
  const WORDS = ["tail", "onmessage", "Send", "impl-ts/src/"];
  const names = spans.filter((span) => !paths.includes(span) && !WORDS.includes(span));
  assert(names.length > 20, `${names.length}`);
  assertEquals(names.filter((name) => !isThere(name)), []);
});

Deno.test("the table of changes in CONTRIBUTING.md names files that exist", async () => {
  const text = await Deno.readTextFile(`${ROOT}/CONTRIBUTING.md`);
  const section = text.split("## Where do I change it?\n")[1]!.split("\n## ")[0]!;
  assert(section.split("\n").length <= 40);
  const paths = [...section.matchAll(/`([\w./-]+)`/g)].map(([, span]) => span!)
    .filter((span) => /^[\w.-]+\/|^(?:deno\.json|CHANGELOG\.md)$/.test(span));
  assert(paths.length > 30, `${paths.length}`);
  // Any noun will do that has all of them.
  const present = await Promise.all(paths.map((path) => isThere(path.replace("NOUN", "ring"))));
  assertEquals(paths.filter((_, index) => !present[index]), []);
});

async function isThere(path: string): Promise<boolean> {
  try {
    await Deno.stat(`${ROOT}/${path}`);
    return true;
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return false;
    throw error;
  }
}
