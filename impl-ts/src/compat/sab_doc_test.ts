import { assert, assertEquals } from "@std/assert";

Deno.test("the examples in the doc comments run", async () => {
  const files = [...Deno.readDirSync(import.meta.dirname!)].map(({ name }) => name)
    .filter((name) => name.endsWith(".ts") && !/(_test|_fixture)\.ts$/.test(name));
  const command = new Deno.Command(Deno.execPath(), {
    // As in the doc test of the directory above.
    args: ["test", "--doc", "--no-check", "-A", ...files],
    cwd: import.meta.dirname!,
    env: { NO_COLOR: "1" },
    stdout: "piped",
    stderr: "piped",
  });
  const { code, stdout, stderr } = await command.output();
  const text = new TextDecoder().decode(stdout) + new TextDecoder().decode(stderr);
  assert(code === 0, text);
  assertEquals(Number(/(\d+) passed/.exec(text)?.[1]), 5, text);
});

Deno.test("the global has what the module has", async () => {
  const module = await import("./sab_message_port.ts");
  assertEquals("SABMessagePortLib" in globalThis, false);
  await import("./sab_message_port_global.ts");
  const { SABMessagePortLib } = globalThis as unknown as { SABMessagePortLib: typeof module };
  const { SABPipe, SABMessagePort, MWChannel } = SABMessagePortLib;
  assert(SABPipe === module.SABPipe && SABMessagePort === module.SABMessagePort);
  assert(MWChannel === module.MWChannel);
});
