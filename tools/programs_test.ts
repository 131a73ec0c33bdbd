import { assertEquals } from "@std/assert";
import { cacheFolder, findProgram } from "./programs.ts";

Deno.test("findProgram: the first name, in the first folder of the path that has it", async () => {
  const before = Deno.env.get("PATH")!;
  const [first, second] = [await Deno.makeTempDir(), await Deno.makeTempDir()];
  try {
    for (const place of [`${first}/b`, `${second}/a`, `${second}/b`]) {
      await Deno.writeTextFile(place, "");
    }
    await Deno.mkdir(`${first}/a`); // A folder is no program.
    Deno.env.set("PATH", `/nowhere:${first}:${second}`);
    assertEquals(await findProgram(["b"]), `${first}/b`);
    assertEquals(await findProgram(["b"], first), `${second}/b`);
    assertEquals(await findProgram(["a", "b"]), `${second}/a`);
    assertEquals(await findProgram(["c"]), undefined);
  } finally {
    Deno.env.set("PATH", before);
    for (const folder of [first, second]) await Deno.remove(folder, { recursive: true });
  }
});

Deno.test("cacheFolder: where ./millrace says, or in the checkout", () => {
  const before = Deno.env.get("MILLRACE_CACHE");
  try {
    Deno.env.set("MILLRACE_CACHE", "/caches");
    assertEquals(cacheFolder("a"), "/caches/a");
    Deno.env.delete("MILLRACE_CACHE");
    assertEquals(cacheFolder("a"), `${import.meta.dirname}/../.zig-cache/a`);
  } finally {
    if (before === undefined) Deno.env.delete("MILLRACE_CACHE");
    else Deno.env.set("MILLRACE_CACHE", before);
  }
});
