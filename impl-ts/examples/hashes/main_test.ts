import { assertEquals, assertMatch } from "@std/assert";
import { filesOf, hashAll, tableOf } from "./main.ts";
import { drawRuns } from "./picture.ts";

Deno.test("the example hashes files in their order, with any number of workers", async () => {
  const folder = await Deno.makeTempDir({ prefix: "millrace-hashes-" });
  try {
    await Deno.mkdir(`${folder}/in`);
    const texts = Array.from({ length: 50 }, (_, n) => `${n} `.repeat(n * 10));
    for (const [n, text] of texts.entries()) {
      const name = `${n % 2 === 0 ? "in/" : ""}${String(n).padStart(2, "0")}.txt`;
      await Deno.writeTextFile(`${folder}/${name}`, text);
    }
    const paths = filesOf(folder);
    const expected = await Promise.all(paths.map(async (path) => {
      const hash = await crypto.subtle.digest("SHA-256", await Deno.readFile(path));
      return new Uint8Array(hash).toHex();
    }));
    const one = await hashAll(paths, 1);
    const two = await hashAll(paths, 2);
    assertEquals(one.hashes, expected);
    assertEquals(two.hashes, expected);
    const bytes = texts.reduce((sum, { length }) => sum + length, 0);
    assertEquals([two.run.workers, two.run.files, two.run.bytes], [2, 50, bytes]);
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
});

Deno.test("the example shows its runs as a table and as a picture", () => {
  const run = { workers: 1, files: 100, bytes: 1e6, ms: 1000, service: 8 };
  const runs = [run, { ...run, workers: 2, ms: 500, service: 8.5 }];
  assertEquals(tableOf(runs).split("\n").map((line) => line.trim().split(/ {2,}/)), [
    ["workers", "files/s", "MB/s", "ms each", "times one"],
    ["1", "100", "1.0", "8.000", "1.00"],
    ["2", "200", "2.0", "8.500", "2.00"],
  ]);
  const picture = drawRuns(runs);
  assertMatch(picture, /^<svg [^]*files per second[^]*ms for each file[^]*<\/svg>\n$/);
  assertEquals(picture.match(/<circle /g)?.length, 4);
});
