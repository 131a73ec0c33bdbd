import { assertEquals } from "@std/assert";
import { run } from "../../tools/run.ts";
import { LOUD, scenariosFor } from "./scenarios.ts";

for (const name of scenariosFor("deno")) {
  Deno.test(`Deno plays ${name}`, async () => {
    const command = [Deno.execPath(), "run", "-A", "deno_main.ts", name];
    const options = { cwd: import.meta.dirname!, timeoutMs: 60_000, echo: false };
    const { code, output, timedOut } = await run(command, options);
    const said = LOUD.includes(name) ? output.split("\n").slice(-2).join("\n") : output;
    assertEquals([said, code, timedOut], ["played\n", 0, false], output);
  });
}
