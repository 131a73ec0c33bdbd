import { assert } from "@std/assert";

Deno.test("the examples in the doc comments run", async () => {
  const files = [...Deno.readDirSync(import.meta.dirname!)].map(({ name }) => name)
    .filter((name) => name.endsWith(".ts") && !/(_test|^fixture|_fixture)\.ts$/.test(name));
  const command = new Deno.Command(Deno.execPath(), {
    // The files themselves have no tests. Unchecked, because what Deno puts around an example
    // imports every name of the file, and fails at `noUnusedLocals`.
    args: ["test", "--doc", "--no-check", "-A", ...files],
    cwd: import.meta.dirname!,
    env: { NO_COLOR: "1" },
    stdout: "piped",
    stderr: "piped",
  });
  const { code, stdout, stderr } = await command.output();
  const text = new TextDecoder().decode(stdout) + new TextDecoder().decode(stderr);
  assert(code === 0, text);
  const passed = Number(/(\d+) passed/.exec(text)?.[1]);
  assert(passed >= 8, text);
});
