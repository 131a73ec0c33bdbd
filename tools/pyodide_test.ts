import { assertEquals } from "@std/assert";
import { findPyodide } from "./pyodide.ts";

Deno.test("findPyodide: the one of the lock file, with all that a page loads", async () => {
  const { specifiers } = JSON.parse(
    await Deno.readTextFile(`${import.meta.dirname}/toolchain/pyodide.lock`),
  );
  const folder = await findPyodide();
  const { name, version } = JSON.parse(await Deno.readTextFile(`${folder}/package.json`));
  assertEquals(specifiers, { [`npm:${name}@${version}`]: version });
  for (const file of ["pyodide.mjs", "pyodide.asm.wasm", "python_stdlib.zip"]) {
    assertEquals((await Deno.stat(`${folder}/${file}`)).isFile, true, file);
  }
});
