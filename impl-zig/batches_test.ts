// The page of batches: its program in C prints what its program in TypeScript posts, as a batch and
// one by one. What it says of Zig, `readme_test.ts` runs, and of Python `python/tests.py`.

import { assertEquals } from "@std/assert";
import { run } from "../tools/run.ts";
import { block, inFolder, ROOT, succeed } from "./readme_fixture.ts";

/** Bounds each process; neither waits for anything but the other. */
const TIMEOUT_MS = 60_000;

Deno.test({
  name: "batches: C prints what TypeScript posts in one job, as a batch and without one",
  ignore: Deno.build.os !== "linux",
  fn: () =>
    inFolder(async (folder) => {
      await succeed(ROOT, "zig", "build", "lib");
      await Deno.writeTextFile(`${folder}/reader.c`, block("c batch"));
      await Deno.writeTextFile(`${folder}/poster.ts`, block("ts batch"));
      const imports = {
        "@millrace/millrace": `${ROOT}impl-ts/src/mod.ts`,
        "@millrace/millrace/host": `${ROOT}impl-ts/src/host/mod.ts`,
      };
      await Deno.writeTextFile(`${folder}/deno.json`, JSON.stringify({ imports }));
      const strict = ["-std=c99", "-Wall", "-Wextra", "-Wno-unused-value", "-Werror"];
      const library = [`-I${ROOT}zig-out/include`, `${ROOT}zig-out/lib/libmillrace.a`];
      await succeed(folder, "zig", "cc", ...strict, "reader.c", ...library, "-o", "reader");
      const said = async (...words: string[]) => {
        const options = { cwd: folder, timeoutMs: TIMEOUT_MS, echo: false };
        const poster = [Deno.execPath(), "run", "-A", "--no-check", "poster.ts"];
        const [reader, { code, output }] = await Promise.all([
          run(["./reader", `${folder}/port`], options),
          run([...poster, `${folder}/port`, ...words], options),
        ]);
        assertEquals([reader.code, code], [0, 0], reader.output + output);
        return reader.output;
      };
      assertEquals(await said(), 'of a batch: {"n":1}\nof a batch: {"n":2}\n');
      assertEquals(await said("none"), 'one: {"n":1}\none: {"n":2}\n');
    }),
});
