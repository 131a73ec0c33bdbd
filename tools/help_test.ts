// Every task of ./millrace explains itself.

import { assertEquals, assertMatch } from "@std/assert";
import { run } from "./run.ts";

const ROOT = `${import.meta.dirname}/..`;
const { tasks } = JSON.parse(await Deno.readTextFile(`${ROOT}/deno.json`));
const OPTIONS = { cwd: ROOT, timeoutMs: 60_000, echo: false };

Deno.test("--help: every task says how it is used", async () => {
  await Promise.all(
    Object.entries<string>(tasks).map(async ([name, task]) => {
      const command = [Deno.execPath(), ...task.split(" ").slice(1), "--help"];
      const { code, output } = await run(command, OPTIONS);
      assertEquals(code, 0, output);
      assertMatch(output, new RegExp(`^Usage: ./millrace ${name}\\b[^]*\n\n`));
    }),
  );
});

Deno.test("a wrong word is code 2, and the usage", async () => {
  for (const name of ["check", "build", "docs", "generate"]) {
    const command = [Deno.execPath(), "run", "-A", `tools/${name}.ts`, "nonsense"];
    const { code, output } = await run(command, OPTIONS);
    assertEquals(code, 2);
    assertMatch(output, new RegExp(`^Usage: ./millrace ${name}\\b`));
  }
});
